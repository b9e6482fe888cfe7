package ingot.bench;

import ingot.compiler.Backend;
import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.ir.IngotException;
import ingot.store.RamStore;
import ingot.train.Digest;
import ingot.train.MemoryBudget;
import ingot.train.Recipe;
import ingot.train.StreamPlan;
import ingot.train.Streamed;
import ingot.train.Trainer;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import picocli.CommandLine;

/// One SHA-256 over weights, moments and losses, whatever the machine does: threads, micro-batches, vector widths; and
/// wherever the state lies, in memory or on disk, with any budget.
///
/// Vector width is decided when a JVM starts, so each is a JVM of its own.
@CommandLine.Command(
        name = "bits",
        description =
                "Trains a 2-layer GPT under many settings and compares the SHA-256 of weights, moments and losses.",
        mixinStandardHelpOptions = true)
final class BitsBenchmark implements Callable<Integer> {
    private static final String DIGEST = "digest ";
    private static final int CHUNK = 4096;
    private static final String ROW = "%-34s %-8s %-12s %s";

    @CommandLine.Option(names = "--steps", defaultValue = "100", description = "steps of every run")
    private int steps;

    @CommandLine.Option(
            names = "--stream",
            description = "instead of machines: the state in memory and on disk, with several budgets")
    private boolean stream;

    @CommandLine.Option(names = "--folder", defaultValue = "target/bench-bits", description = "where the stores lie")
    private Path folder = Path.of("");

    @CommandLine.Option(names = "--one", hidden = true, arity = "2", description = "threads and micro-batch of one run")
    private List<Integer> one = List.of();

    @Override
    public Integer call() throws IOException {
        if (!one.isEmpty()) {
            Recipe recipe = GptSize.TOY.recipe(one.get(1));
            try (TilePool pool = new TilePool(one.get(0))) {
                if (stream) {
                    budgets(new CpuBackend(pool), recipe);
                } else {
                    say("", inMemory(new CpuBackend(pool), recipe));
                }
            }
            return 0;
        }
        Map<String, List<String>> machines = new LinkedHashMap<>();
        machines.put("widest vectors", List.of("--add-modules", "jdk.incubator.vector"));
        if (!stream) {
            machines.put("AVX2", List.of("--add-modules", "jdk.incubator.vector", "-XX:UseAVX=2"));
            machines.put("no vector module", List.of());
        }
        TreeSet<String> digests = new TreeSet<>();
        int rows = 0;
        Sample.print(ROW, stream ? "state" : "machine", "threads", "micro-batch", "SHA-256 after " + steps + " steps");
        for (Map.Entry<String, List<String>> machine : machines.entrySet()) {
            for (int threads : new int[] {1, 2, 3}) {
                for (int microBatch : new int[] {1, 2, GptSize.TOY.batch}) {
                    for (String line : child(machine.getValue(), threads, microBatch)) {
                        String digest = line.substring(line.lastIndexOf(' ') + 1);
                        String state = line.substring(0, line.length() - digest.length());
                        Sample.print(ROW, stream ? state : machine.getKey(), threads, microBatch, digest);
                        digests.add(digest);
                        rows++;
                    }
                }
            }
        }
        Sample.print(
                digests.size() == 1
                        ? "all equal: " + rows + " runs"
                        : digests.size() + " DIFFERENT digests in " + rows + " runs");
        return digests.size() == 1 ? 0 : 1;
    }

    private String inMemory(Backend backend, Recipe recipe) {
        try (RamStore store = new RamStore();
                Trainer trainer = new Trainer(GptSize.TOY.task(), recipe, backend, store)) {
            return digest(trainer);
        }
    }

    /// The same run in memory, and on disk with the least memory, with two and eight times the window, and with all.
    private void budgets(Backend backend, Recipe recipe) throws IOException {
        say("memory", inMemory(backend, recipe));
        Backend background = backend.background();
        StreamPlan all = plan(backend, background, recipe, 1L << 40);
        StreamPlan least = all;
        while (least.leastBytes() < least.budget().bytes()) { // with less memory the program is another one
            least = plan(backend, background, recipe, least.leastBytes());
        }
        long window = least.window().bytes();
        for (long times : new long[] {1, 2, 8, 0}) {
            long bytes = times == 0 ? all.totalBytes() : least.leastBytes() + (times - 1) * window;
            try (Trainer trainer = onDisk(backend, background, recipe, bytes)) {
                StreamPlan plan = Objects.requireNonNull(trainer.streamPlan());
                String name = times == 0 ? "all" : times == 1 ? "minimum" : times + "x";
                String spills = plan.program().memory().spillBytes() > 0 ? ", spills" : "";
                int tiles = plan.program().tiles().size();
                say(
                        "disk, %-8s %4d of %d KiB%s"
                                .formatted(
                                        name,
                                        plan.window().bytes() >> 10,
                                        plan.layout().stateBytes() >> 10,
                                        spills + (tiles > 0 ? ", " + tiles + " tiles" : "")),
                        digest(trainer));
            }
        }
        Folders.delete(folder);
    }

    private StreamPlan plan(Backend backend, Backend background, Recipe recipe, long bytes) throws IOException {
        try (Trainer trainer = onDisk(backend, background, recipe, bytes)) {
            return Objects.requireNonNull(trainer.streamPlan());
        }
    }

    private Trainer onDisk(Backend backend, Backend background, Recipe recipe, long bytes) throws IOException {
        Folders.delete(folder);
        return Trainer.streamed(
                GptSize.TOY.task(),
                recipe,
                backend,
                background,
                new Streamed(folder, MemoryBudget.offHeap(bytes), "bench: bits\n", CHUNK, true, Sample::print));
    }

    private String digest(Trainer trainer) {
        while (trainer.step() < steps) {
            trainer.next();
        }
        trainer.flush();
        return Digest.of(trainer.store(), trainer.losses());
    }

    private static void say(String state, String digest) {
        Sample.print("%s", DIGEST + state + " " + digest);
    }

    /// What follows `digest` in the lines of a child.
    private List<String> child(List<String> machine, int threads, int microBatch) throws IOException {
        List<String> flags = new ArrayList<>(List.of("-Xmx512m", "-XX:+UseSerialGC"));
        flags.addAll(machine);
        List<String> arguments = new ArrayList<>(List.of("bits", "--steps", Integer.toString(steps)));
        arguments.addAll(List.of("--one", Integer.toString(threads), Integer.toString(microBatch)));
        if (stream) {
            arguments.addAll(List.of("--stream", "--folder", folder.toString()));
        }
        Process process = ChildJvm.start(flags, Main.class, arguments);
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        List<String> found = output.lines()
                .filter(line -> line.startsWith(DIGEST))
                .map(line -> line.substring(DIGEST.length()))
                .toList();
        if (found.size() != (stream ? 5 : 1)) {
            throw new IngotException("bench: a run failed: " + output);
        }
        return found;
    }
}
