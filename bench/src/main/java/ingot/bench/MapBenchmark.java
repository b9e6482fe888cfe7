package ingot.bench;

import ingot.compiler.Backend;
import ingot.compiler.Kernel;
import ingot.compiler.Layout;
import ingot.cpu.CpuBackend;
import ingot.cpu.Peaks;
import ingot.cpu.TilePool;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Type;
import ingot.ir.Value;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine;

/// Pointwise kernels against the copy bandwidth of memory.
@CommandLine.Command(
        name = "map",
        description = "Pointwise kernels as a share of the measured copy bandwidth.",
        mixinStandardHelpOptions = true)
final class MapBenchmark implements Callable<Integer> {
    private static final int ELEMENTS = 16 << 20;

    @CommandLine.Mixin
    private ThreadsOption threads = new ThreadsOption();

    @CommandLine.Option(names = "--runs", defaultValue = "9", description = "rounds")
    private int runs;

    @Override
    public Integer call() {
        int cores = threads.count();
        try (TilePool pool = new TilePool(cores);
                Arena arena = Arena.ofShared()) {
            Backend backend = new CpuBackend(pool);
            Sample.print("%d threads, %,d elements; %s", cores, ELEMENTS, Sample.load());
            measure("scale", scale(), backend, pool, arena);
            measure("residual add", add(), backend, pool, arena);
            measure("bias, gelu", gelu(), backend, pool, arena);
            measure("adamw", adamW(), backend, pool, arena);
        }
        return 0;
    }

    private void measure(String name, Graph body, Backend backend, TilePool pool, Arena arena) {
        Layout layout = Layout.rowMajor(Type.f32(ELEMENTS));
        List<Layout> reads = body.inputs().stream().map(_ -> layout).toList();
        List<Layout> writes = body.outputs().values().stream().map(_ -> layout).toList();
        Backend.Executable code = backend.prepare(new Kernel.Map(body, reads, writes));
        List<Long> addresses = new ArrayList<>();
        for (int i = 0; i < reads.size() + writes.size(); i++) {
            var memory = arena.allocate(4L * ELEMENTS, 64);
            for (long j = 0; j < ELEMENTS; j++) {
                memory.setAtIndex(ValueLayout.JAVA_FLOAT, j, (j % 1024) / 512f - 1);
            }
            addresses.add(memory.address());
        }
        long[] operands = addresses.stream().mapToLong(Long::longValue).toArray();
        long scratch = arena.allocate(Math.max(64, code.scratchBytes()), 64).address();
        double bytes = 4.0 * ELEMENTS * operands.length;
        Sample speed = new Sample();
        Sample share = new Sample();
        for (int run = -4; run < runs; run++) {
            Peaks peaks = Peaks.measure(pool);
            long start = System.nanoTime();
            code.run(operands, scratch);
            double rate = bytes / ((System.nanoTime() - start) / 1e9);
            if (run >= 0) {
                speed.add(rate / 1e9);
                share.add(rate / 1e9 / peaks.copy());
            }
        }
        Sample.print(
                "%-14s %d operands %6.1f GB/s, %.2f of the copy bandwidth (%.2f to %.2f)",
                name, operands.length, speed.median(), share.median(), share.least(), share.most());
    }

    private static Graph scale() {
        GraphBuilder b = new GraphBuilder("scale");
        b.output("0", b.multiply(input(b, 0), 1.5));
        return b.build();
    }

    private static Graph add() {
        GraphBuilder b = new GraphBuilder("add");
        b.output("0", b.add(input(b, 0), input(b, 1)));
        return b.build();
    }

    private static Graph gelu() {
        GraphBuilder b = new GraphBuilder("gelu");
        Value x = b.add(input(b, 0), input(b, 1));
        Value inner = b.multiply(b.add(x, b.multiply(b.multiply(b.multiply(x, x), x), 0.044715)), 0.7978845608028654);
        b.output("0", x);
        b.output("1", b.multiply(b.multiply(x, 0.5), b.add(b.tanh(inner), 1)));
        return b.build();
    }

    private static Graph adamW() {
        GraphBuilder b = new GraphBuilder("adamw");
        Value w = input(b, 0);
        Value g = input(b, 1);
        Value m = b.add(b.multiply(input(b, 2), 0.9), b.multiply(g, 0.1));
        Value v = b.add(b.multiply(input(b, 3), 0.999), b.multiply(b.multiply(g, g), 0.001));
        Value step = b.divide(m, b.add(b.sqrt(b.unary(ingot.ir.Op.UnaryKind.ABS, v)), 1e-8));
        b.output("0", b.subtract(w, b.multiply(step, 1e-3)));
        b.output("1", m);
        b.output("2", v);
        return b.build();
    }

    private static Value input(GraphBuilder b, int index) {
        return b.input(Integer.toString(index), Type.f32(ELEMENTS));
    }
}
