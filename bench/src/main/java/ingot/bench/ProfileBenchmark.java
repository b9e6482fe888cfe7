package ingot.bench;

import ingot.compiler.Explain;
import ingot.compiler.Kernel;
import ingot.cpu.Autotuner;
import ingot.cpu.CpuBackend;
import ingot.cpu.Peaks;
import ingot.cpu.TilePool;
import ingot.runtime.Profile;
import ingot.store.RamStore;
import ingot.train.Trainer;
import java.util.concurrent.Callable;
import picocli.CommandLine;

/// Where the time of a training step goes.
@CommandLine.Command(
        name = "profile",
        description = "Time per kernel of a training step, slowest first.",
        mixinStandardHelpOptions = true)
final class ProfileBenchmark implements Callable<Integer> {
    @CommandLine.Option(names = "--model", defaultValue = "SMALL", description = "${COMPLETION-CANDIDATES}")
    private GptSize size = GptSize.SMALL;

    @CommandLine.Option(names = "--steps", defaultValue = "5", description = "profiled steps")
    private int steps;

    @CommandLine.Option(names = "--warmup", defaultValue = "5", description = "steps before")
    private int warmup;

    @CommandLine.Option(names = "--rows", defaultValue = "25", description = "kernels to print")
    private int rows;

    @Override
    public Integer call() {
        try (TilePool pool = new TilePool(Runtime.getRuntime().availableProcessors());
                RamStore store = new RamStore();
                Trainer trainer =
                        new Trainer(size.task(), size.recipe(0), new CpuBackend(pool, Autotuner.ofMachine()), store)) {
            for (int i = 0; i < warmup; i++) {
                trainer.next();
            }
            Profile profile = new Profile();
            trainer.profile(profile);
            long start = System.nanoTime();
            for (int i = 0; i < steps; i++) {
                trainer.next();
            }
            double step = (System.nanoTime() - start) / 1e6 / steps;
            Peaks peaks = Peaks.measure(pool);
            Sample.print(
                    "%s, %.1f ms per step; fma peak %.1f GFLOP/s, copy %.1f GB/s; %s",
                    size, step, peaks.fma(), peaks.copy(), Sample.load());
            list(profile, steps, step, rows);
        }
        return 0;
    }

    /// The kernels that take longest, of `steps` steps of `step` milliseconds each.
    static void list(Profile profile, int steps, double step, int rows) {
        double listed = 0;
        int printed = 0;
        for (Profile.Entry entry : profile.entries()) {
            double each = entry.nanoseconds() / 1e6 / steps;
            listed += each;
            if (printed++ < rows) {
                Sample.print(
                        "%7.2f ms %5.1f %% %4d x  %s", each, 100 * each / step, entry.calls() / steps, describe(entry));
            }
        }
        Sample.print(
                "%7.2f ms %5.1f %% in all %d kernels",
                listed, 100 * listed / step, profile.entries().size());
    }

    /// The kernel, its rate of memory traffic, and for products its rate of arithmetic.
    private static String describe(Profile.Entry entry) {
        Kernel kernel = entry.kernel();
        double seconds = entry.nanoseconds() / 1e9 / entry.calls();
        double bytes = 0;
        for (var layout : kernel.reads()) {
            bytes += layout.type().bytes();
        }
        for (var layout : kernel.writes()) {
            bytes += layout.type().bytes();
        }
        String rate = "%.1f GB/s".formatted(bytes / seconds / 1e9);
        if (kernel instanceof Kernel.Convolution convolution) {
            return "convolution " + convolution.kernel().shape() + " over "
                    + convolution.windows().shape() + "  "
                    + "%.1f GFLOP/s".formatted(Explain.flops(kernel) / seconds / 1e9);
        }
        if (kernel instanceof Kernel.Matmul matmul) {
            rate = "%.1f GFLOP/s".formatted(Explain.flops(kernel) / seconds / 1e9);
            return "matmul " + matmul.a().shape() + " x " + matmul.b().shape()
                    + (matmul.segments() > 1 ? " in " + matmul.segments() + " segments" : "") + "  " + rate;
        }
        return kernel.kind() + " " + kernel.writes().getFirst().shape() + ", "
                + kernel.reads().size() + " reads, " + kernel.writes().size() + " writes  " + rate;
    }
}
