package ingot.bench;

import ingot.autodiff.Gradients;
import ingot.compiler.Compiler;
import ingot.cpu.Autotuner;
import ingot.cpu.CpuBackend;
import ingot.cpu.Peaks;
import ingot.cpu.TilePool;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.runtime.Executor;
import ingot.runtime.StageUpdates;
import ingot.store.RamStore;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine;

/// Convolutions and their gradients against the fma peak, the copy that pads the input included.
@CommandLine.Command(
        name = "convolution",
        description = "fp32 convolutions, forward and both gradients, as a share of the measured fma peak.",
        mixinStandardHelpOptions = true)
final class ConvolutionBenchmark implements Callable<Integer> {
    @CommandLine.Mixin
    private ThreadsOption threads = new ThreadsOption();

    @CommandLine.Option(names = "--runs", defaultValue = "5", description = "rounds")
    private int runs;

    /// Square images and windows.
    private record Case(int batch, int channels, int size, int out, int window, int stride, int groups) {
        Op.Convolution op(Value x, Value kernel) {
            List<Integer> pads = List.of(window / 2, window / 2);
            List<Integer> ones = List.of(1, 1);
            return new Op.Convolution(
                    x, kernel, new Op.Window(List.of(stride, stride), pads, pads, ones, ones), groups, 1, 1);
        }

        @Override
        public String toString() {
            return String.format(
                    Locale.ROOT,
                    "%3d × %4d × %3d² → %4d, %d × %d%s%s",
                    batch,
                    channels,
                    size,
                    out,
                    window,
                    window,
                    stride == 1 ? "" : ", stride " + stride,
                    groups == 1 ? "" : ", " + groups + " groups");
        }
    }

    private enum Kind {
        FORWARD,
        INPUT,
        KERNEL
    }

    @Override
    public Integer call() {
        List<Case> cases = List.of(
                new Case(32, 3, 32, 32, 3, 1, 1),
                new Case(32, 32, 28, 64, 3, 1, 1),
                new Case(32, 64, 14, 128, 3, 2, 1),
                new Case(32, 256, 7, 256, 3, 1, 1),
                new Case(32, 128, 14, 256, 1, 1, 1),
                new Case(32, 128, 14, 128, 3, 1, 128),
                new Case(1, 64, 56, 64, 3, 1, 1),
                new Case(1, 512, 7, 512, 3, 1, 1));
        try (TilePool pool = new TilePool(threads.count())) {
            Sample.print("%d threads; %s", pool.threads(), Sample.load());
            Sample.print("%-52s forward, gradient of the input, of the kernel: share of the fma peak", "");
            for (Case one : cases) {
                StringBuilder line = new StringBuilder();
                for (Kind kind : Kind.values()) {
                    line.append(String.format(Locale.ROOT, "  %.3f", share(one, kind, pool)));
                }
                Sample.print("%-52s%s", one, line);
            }
        }
        return 0;
    }

    private double share(Case one, Kind kind, TilePool pool) {
        GraphBuilder b = new GraphBuilder("convolution");
        Value x = b.input("x", Type.f32(one.batch, one.channels, one.size, one.size));
        Value kernel = b.input("kernel", Type.f32(one.out, one.channels / one.groups, one.window, one.window));
        Value y = b.add(one.op(x, kernel));
        Value result = y;
        if (kind != Kind.FORWARD) {
            Value dy = b.input("dy", y.type());
            result = Gradients.vjp(b, List.of(y), List.of(dy), List.of(kind == Kind.INPUT ? x : kernel))
                    .getFirst();
        }
        b.output("result", result);
        double flops = 2.0 * y.shape().elements() * kernel.shape().elements() / one.out;
        try (RamStore store = new RamStore();
                Executor executor = new Executor(
                        Compiler.inference(b.build()), new CpuBackend(pool, Autotuner.ofMachine()), store)) {
            for (String input : kind == Kind.FORWARD ? List.of("x", "kernel") : List.of("x", "kernel", "dy")) {
                var memory = executor.input(input);
                for (long i = 0; i < memory.byteSize() / 4; i++) {
                    memory.setAtIndex(ValueLayout.JAVA_FLOAT, i, 1 + i % 7);
                }
            }
            int repeats = (int) Math.max(1, 5e9 / flops);
            Sample share = new Sample();
            for (int run = -2; run < runs; run++) {
                Peaks peaks = Peaks.measure(pool);
                long start = System.nanoTime();
                for (int i = 0; i < repeats; i++) {
                    executor.run(StageUpdates.NONE);
                }
                if (run >= 0) {
                    share.add(flops * repeats / (System.nanoTime() - start) / peaks.fma());
                }
            }
            return share.median();
        }
    }
}
