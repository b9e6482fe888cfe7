package ingot.bench;

import ingot.compiler.Backend;
import ingot.cpu.Autotuner;
import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.store.RamStore;
import ingot.store.StoreLayout;
import ingot.train.MemoryBudget;
import ingot.train.Recipe;
import ingot.train.StreamReport;
import ingot.train.Streamed;
import ingot.train.Trainer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine;

/// What streaming from disk costs: the same steps with the state in memory and on disk, in turn, over tokens per step.
@CommandLine.Command(
        name = "stream",
        description = "Training steps with the state on disk, in turn with the same steps in memory.",
        mixinStandardHelpOptions = true)
final class StreamBenchmark implements Callable<Integer> {
    @CommandLine.Option(names = "--model", defaultValue = "MEDIUM", description = "${COMPLETION-CANDIDATES}")
    private GptSize size = GptSize.MEDIUM;

    @CommandLine.Option(
            names = "--sequences",
            split = ",",
            defaultValue = "2,4,8",
            description = "sequences per step, one line of the curve each")
    private List<Integer> sequences = List.of();

    @CommandLine.Option(names = "--micro-batch", defaultValue = "0", description = "sequences at a time; 0: all")
    private int microBatch;

    @CommandLine.Option(names = "--recompute", description = "compute activations again in the backward")
    private boolean recompute;

    @CommandLine.Option(
            names = "--memory",
            split = ",",
            defaultValue = "512MiB",
            description = "what the models' memory may be, without Java's; several are compared")
    private List<String> memory = List.of();

    @CommandLine.Option(names = "--steps", defaultValue = "3", description = "counted steps of each side")
    private int steps;

    @CommandLine.Option(names = "--warmup", defaultValue = "2", description = "steps before counting")
    private int warmup;

    @CommandLine.Mixin
    private ThreadsOption threads = new ThreadsOption();

    @CommandLine.Option(names = "--folder", defaultValue = "target/bench-stream", description = "where the store lies")
    private Path folder = Path.of("");

    @CommandLine.Option(names = "--bare", description = "also without flushes and checksums: what durability costs")
    private boolean bare;

    @CommandLine.Option(names = "--no-ram", description = "leave out the runs in memory")
    private boolean alone;

    @Override
    public Integer call() throws IOException {
        int cores = threads.count();
        Sample.print(
                "%s: %,d parameters, %d tokens per sequence; %s", size, size.parameters(), size.time, Sample.load());
        try (TilePool pool = new TilePool(cores)) {
            Backend backend = new CpuBackend(pool, Autotuner.ofMachine());
            for (int rows : sequences) {
                for (String budget : memory) {
                    compare(backend, rows, MemoryBudget.offHeap(MemoryBudget.parse(budget)));
                }
            }
        } finally {
            Folders.delete(folder);
        }
        return 0;
    }

    private void compare(Backend backend, int rows, MemoryBudget budget) throws IOException {
        Folders.delete(folder);
        var recipe = size.recipe(rows, microBatch).withRecompute(recompute);
        try (RamStore ram = new RamStore();
                Trainer inMemory = alone ? null : new Trainer(size.task(rows), recipe, backend, ram);
                Trainer onDisk = streamed(backend, rows, recipe, budget, true);
                Trainer unsafe = bare ? streamed(backend, rows, recipe, budget, false) : null) {
            Sample memorySeconds = new Sample();
            Sample diskSeconds = new Sample();
            Sample efficiency = new Sample();
            Sample durability = new Sample();
            StreamReport before = onDisk.streamReport();
            double stolen = 0;
            for (int i = -warmup; i < steps; i++) {
                double memoryTime = inMemory == null ? Double.NaN : seconds(inMemory);
                if (i == 0) {
                    before = onDisk.streamReport();
                    stolen = 0;
                }
                Steal steal = Steal.now();
                double diskTime = seconds(onDisk);
                stolen += steal.seconds();
                double bareTime = unsafe == null ? Double.NaN : seconds(unsafe);
                Sample.print(
                        "%s step %2d: memory %7.3f s, disk %7.3f s%s",
                        i < 0 ? "warm-up" : "counted",
                        i < 0 ? i + warmup : i,
                        memoryTime,
                        diskTime,
                        unsafe == null ? "" : ", without flushes and checksums %7.3f s".formatted(bareTime));
                if (i >= 0) {
                    memorySeconds.add(memoryTime);
                    diskSeconds.add(diskTime);
                    efficiency.add(memoryTime / diskTime);
                    durability.add(diskTime / bareTime);
                }
            }
            StreamReport spent = onDisk.streamReport().minus(before);
            Sample.print(
                    "%,6d tokens  %5.0f MiB  memory %7.3f s  disk %7.3f s  efficiency %.3f (%.3f to %.3f)  per step:"
                            + " read %4.0f MB, written %4.0f MB, stalls: read %.2f s, write %.2f s, commit %.2f s,"
                            + " processor taken by the host %.2f s",
                    rows * size.time,
                    budget.available() / 1048576.0,
                    memorySeconds.median(),
                    diskSeconds.median(),
                    efficiency.median(),
                    efficiency.least(),
                    efficiency.most(),
                    spent.readBytes() / 1e6 / steps,
                    spent.writtenBytes() / 1e6 / steps,
                    spent.readStall() / steps,
                    spent.writeStall() / steps,
                    spent.commitStall() / steps,
                    stolen / steps);
            if (unsafe != null) {
                Sample.print(
                        "        durability costs %.1f %% of a step (%.1f to %.1f)",
                        100 * (durability.median() - 1), 100 * (durability.least() - 1), 100 * (durability.most() - 1));
            }
        }
    }

    private Trainer streamed(Backend backend, int rows, Recipe recipe, MemoryBudget budget, boolean durable)
            throws IOException {
        Path place = folder.resolve(durable ? "durable" : "bare");
        Files.createDirectories(place);
        return Trainer.streamed(
                size.task(rows),
                recipe,
                backend,
                backend.background(),
                new Streamed(place, budget, "bench: stream\n", StoreLayout.CHUNK_ELEMENTS, durable, Sample::print));
    }

    private static double seconds(Trainer trainer) {
        long start = System.nanoTime();
        trainer.next();
        return (System.nanoTime() - start) / 1e9;
    }
}
