package ingot.bench;

import ingot.cpu.Matmul;
import ingot.cpu.MatmulShape;
import ingot.cpu.Peaks;
import ingot.cpu.TilePool;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine;

/// Matrix products against the fma peak, each measurement of the peak beside one of the product.
@CommandLine.Command(
        name = "gemm",
        description = "fp32 matrix products as a share of the measured fma peak.",
        mixinStandardHelpOptions = true)
final class GemmBenchmark implements Callable<Integer> {
    @CommandLine.Mixin
    private ThreadsOption threads = new ThreadsOption();

    @CommandLine.Option(names = "--runs", defaultValue = "9", description = "rounds")
    private int runs;

    @Override
    public Integer call() {
        int cores = threads.count();
        List<MatmulShape> shapes = List.of(
                MatmulShape.of(384, 768, 768),
                MatmulShape.of(1024, 1024, 1024),
                MatmulShape.of(4096, 1536, 384),
                MatmulShape.of(4096, 384, 1536),
                MatmulShape.of(384, 1536, 4096).withSegments(16),
                MatmulShape.of(1024, 3072, 768),
                MatmulShape.of(1024, 50257, 768));
        try (TilePool pool = new TilePool(cores);
                Arena arena = Arena.ofShared()) {
            Sample.print("%d threads; %s", cores, Sample.load());
            for (MatmulShape shape : shapes) {
                measure(shape, pool, arena);
            }
        }
        return 0;
    }

    private void measure(MatmulShape shape, TilePool pool, Arena arena) {
        Matmul matmul = Matmul.of(shape);
        long a =
                arena.allocate(4L * shape.m() * shape.k(), 64).fill((byte) 0x11).address();
        long b =
                arena.allocate(4L * shape.k() * shape.n(), 64).fill((byte) 0x11).address();
        long c = arena.allocate(4L * shape.m() * shape.n(), 64).address();
        long scratch = arena.allocate(Math.max(64, matmul.scratchBytes(pool.threads())), 64)
                .address();
        int repeats = (int) Math.max(1, 2e10 / shape.flops());
        Sample speed = new Sample();
        Sample share = new Sample();
        for (int run = -2; run < runs; run++) {
            Peaks peaks = Peaks.measure(pool);
            long start = System.nanoTime();
            for (int i = 0; i < repeats; i++) {
                matmul.run(pool, a, b, c, scratch);
            }
            double flops = shape.flops() * repeats / ((System.nanoTime() - start) / 1e9);
            if (run >= 0) {
                speed.add(flops / 1e9);
                share.add(flops / 1e9 / peaks.fma());
            }
        }
        Sample.print(
                "%5d x %5d x %4d %-12s %6.1f GFLOP/s, %.2f of the fma peak (%.2f to %.2f)",
                shape.m(),
                shape.n(),
                shape.k(),
                shape.segments() == 1 ? "" : shape.segments() + " segments",
                speed.median(),
                share.median(),
                share.least(),
                share.most());
    }
}
