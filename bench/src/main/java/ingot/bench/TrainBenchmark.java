package ingot.bench;

import ingot.cpu.Autotuner;
import ingot.cpu.CpuBackend;
import ingot.cpu.Peaks;
import ingot.cpu.TilePool;
import ingot.store.RamStore;
import ingot.train.Trainer;
import java.io.IOException;
import java.util.concurrent.Callable;
import picocli.CommandLine;

/// Training speed beside libtorch, step by step in turn, on the same machine in the same run.
@CommandLine.Command(
        name = "train",
        description = "Training steps of a GPT, in turn with libtorch through DJL (fetched on first use, 112 MB).",
        mixinStandardHelpOptions = true)
final class TrainBenchmark implements Callable<Integer> {
    @CommandLine.Option(names = "--model", defaultValue = "SMALL", description = "${COMPLETION-CANDIDATES}")
    private GptSize size = GptSize.SMALL;

    @CommandLine.Option(names = "--steps", defaultValue = "7", description = "counted steps of each side")
    private int steps;

    @CommandLine.Option(names = "--warmup", defaultValue = "3", description = "steps before counting")
    private int warmup;

    @CommandLine.Mixin
    private ThreadsOption threads = new ThreadsOption();

    @CommandLine.Option(names = "--no-peer", description = "measure Ingot alone")
    private boolean alone;

    @Override
    public Integer call() throws IOException {
        int cores = threads.count();
        double tokens = (double) size.batch * size.time;
        try (TilePool pool = new TilePool(cores);
                RamStore store = new RamStore();
                Trainer trainer =
                        new Trainer(size.task(), size.recipe(0), new CpuBackend(pool, Autotuner.ofMachine()), store);
                Peer peer = alone ? null : Peer.libtorch(size, cores)) {
            Sample.print(
                    "%s: %,d parameters, batch %d x %d, fp32, %d threads; %s",
                    size, size.parameters(), size.batch, size.time, cores, Sample.load());
            Sample peak = new Sample(); // beside every step, because the clock of a shared machine moves
            Sample ours = new Sample();
            Sample theirs = new Sample();
            Sample ratio = new Sample();
            for (int i = -warmup; i < steps; i++) {
                double limit = Peaks.measure(pool).fma();
                long start = System.nanoTime();
                float loss = trainer.next().loss();
                double mine = (System.nanoTime() - start) / 1e9;
                double other = peer == null ? Double.NaN : peer.step();
                Sample.print(
                        "%s step %2d: ingot %7.3f s (loss %.4f)%s",
                        i < 0 ? "warm-up" : "counted",
                        i < 0 ? i + warmup : i,
                        mine,
                        loss,
                        peer == null ? "" : "   libtorch %7.3f s".formatted(other));
                if (i >= 0) {
                    peak.add(limit);
                    ours.add(mine);
                    theirs.add(other);
                    ratio.add(other / mine);
                }
            }
            Sample.print(
                    "fma peak before each step: median %.1f GFLOP/s (%.1f to %.1f)",
                    peak.median(), peak.least(), peak.most());
            row("ingot", ours, tokens, peak.median());
            if (peer != null) {
                row("libtorch", theirs, tokens, peak.median());
                Sample.print(
                        "ingot / libtorch speed: median %.2f (%.2f to %.2f)",
                        ratio.median(), ratio.least(), ratio.most());
            }
            Sample.print("ingot off-heap memory %.0f MB", trainer.memoryBytes() / 1e6);
        }
        return 0;
    }

    private void row(String name, Sample seconds, double tokens, double peak) {
        double median = seconds.median();
        Sample.print(
                "%-9s median %7.3f s (%.3f to %.3f) = %,8.0f tokens/s = %6.1f GFLOP/s = %.2f of the fma peak",
                name,
                median,
                seconds.least(),
                seconds.most(),
                tokens / median,
                size.flops() / median / 1e9,
                size.flops() / median / 1e9 / peak);
    }
}
