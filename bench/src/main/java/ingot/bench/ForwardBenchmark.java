package ingot.bench;

import ingot.compiler.Backend;
import ingot.cpu.Autotuner;
import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.ir.IngotException;
import ingot.nn.Gpt;
import ingot.nn.GptConfig;
import ingot.nn.Parameter;
import ingot.runtime.Residency;
import ingot.runtime.StageUpdates;
import ingot.runtime.Visit;
import ingot.train.MemoryBudget;
import ingot.train.RunConfig;
import ingot.train.Start;
import ingot.train.StreamedProgram;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine;

/// A forward pass through a model whose weights were never updated: they are made from the seed, stage by stage, and
/// never stored.
@CommandLine.Command(
        name = "forward",
        description = "A forward pass through a model of any size, with its first weights, within a memory budget.",
        mixinStandardHelpOptions = true)
final class ForwardBenchmark implements Callable<Integer> {
    @CommandLine.Parameters(paramLabel = "CONFIG", description = "such as examples/trillion.yaml")
    private Path file = Path.of("");

    @CommandLine.Option(names = "--layers", defaultValue = "3", description = "only the first layers; 0: all")
    private int layers;

    @CommandLine.Option(names = "--tokens", defaultValue = "16", description = "length of the sequence")
    private int tokens;

    @CommandLine.Option(names = "--memory", defaultValue = "2GiB", description = "what the process may use")
    private String memory = "";

    @CommandLine.Option(names = "--folder", defaultValue = "target/bench-forward", description = "for the store's file")
    private Path folder = Path.of("");

    @Override
    public Integer call() throws IOException {
        if (!Files.isRegularFile(file)) {
            throw new IngotException("bench forward: no such file: " + file);
        }
        String yaml = Files.readString(file);
        RunConfig config = RunConfig.parse(yaml, List.of());
        GptConfig whole = sizes(config);
        if (tokens < 1 || tokens > whole.context()) {
            throw new IngotException("bench forward: --tokens expected 1 to " + whole.context() + ", got " + tokens);
        }
        Gpt all = Gpt.of(whole);
        boolean some = layers > 0 && layers < whole.layers();
        Gpt model = some ? Gpt.of(sizes(RunConfig.parse(yaml, List.of("model.layers=" + layers)))) : all;
        Folders.delete(folder);
        Files.createDirectories(folder);
        try (TilePool pool = new TilePool(Runtime.getRuntime().availableProcessors())) {
            Backend backend = new CpuBackend(pool, Autotuner.ofMachine());
            long begin = System.nanoTime();
            try (StreamedProgram streamed = StreamedProgram.open(
                    model.lossGraph(1, tokens, false),
                    model.parameters(),
                    Start.SEEDED,
                    config.train().seed(),
                    MemoryBudget.of(MemoryBudget.parse(memory)),
                    backend,
                    backend.background(),
                    folder,
                    Watched::new,
                    Sample::print)) {
                pass(streamed, model, all, (System.nanoTime() - begin) / 1e9);
            }
        } finally {
            Folders.delete(folder);
        }
        return 0;
    }

    private static GptConfig sizes(RunConfig config) {
        return config.model().gpt(config.tokenizer().vocabulary());
    }

    private void pass(StreamedProgram streamed, Gpt model, Gpt all, double prepared) throws IOException {
        Sample.print(
                "%,d of %,d weights, %d stages, window %,d MiB, prepared in %.1f s; %s",
                weights(model),
                weights(all),
                streamed.program().stages().size(),
                streamed.window().bytes() >> 20,
                prepared,
                Sample.load());
        MemorySegment x = streamed.executor().input("tokens");
        MemorySegment y = streamed.executor().input("targets");
        for (int t = 0; t < tokens; t++) {
            x.setAtIndex(ValueLayout.JAVA_INT, t, (31 * t + 7) % model.vocabulary());
            y.setAtIndex(ValueLayout.JAVA_INT, t, (31 * t + 38) % model.vocabulary());
        }
        streamed.executor().input("scale").set(ValueLayout.JAVA_FLOAT, 0, 1f / tokens);
        long start = System.nanoTime();
        streamed.executor().run(StageUpdates.NONE);
        double seconds = (System.nanoTime() - start) / 1e9;
        float loss = streamed.executor().output("loss").get(ValueLayout.JAVA_FLOAT, 0);
        Sample.print(
                "loss %.6f (ln of the vocabulary: %.6f), %.1f s, %.2f ns per weight, peak memory %s",
                loss, Math.log(model.vocabulary()), seconds, 1e9 * seconds / weights(model), peak());
        Sample.print("the whole model at this rate: %.1f min", seconds * weights(all) / weights(model) / 60);
    }

    private static long weights(Gpt model) {
        return model.parameters().stream()
                .mapToLong((Parameter parameter) -> parameter.type().shape().elements())
                .sum();
    }

    /// Of the whole process, as the kernel counts it.
    private static String peak() throws IOException {
        Path status = Path.of("/proc/self/status");
        if (!Files.exists(status)) {
            return "unknown";
        }
        return Files.readAllLines(status).stream()
                .filter(line -> line.startsWith("VmHWM"))
                .map(line -> Long.parseLong(line.replaceAll("\\D", "")) / 1024 + " MiB")
                .findFirst()
                .orElse("unknown");
    }

    /// Tells which stage has its turn, some times per pass.
    private static final class Watched implements Residency {
        private final Residency inner;
        private final long start = System.nanoTime();
        private long told = start;

        Watched(Residency inner) {
            this.inner = inner;
        }

        @Override
        public void begin() {
            inner.begin();
        }

        @Override
        public void load(Visit visit, long[] addresses) {
            inner.load(visit, addresses);
            long now = System.nanoTime();
            if (now - told > 10_000_000_000L) {
                told = now;
                Sample.print(
                        "  %,d s: stage %,d, %s",
                        (now - start) / 1_000_000_000L,
                        visit.index(),
                        visit.stage().name());
            }
        }

        @Override
        public void stored(Visit visit) {
            inner.stored(visit);
        }

        @Override
        public void free(Visit visit) {
            inner.free(visit);
        }

        @Override
        public void abandon() {
            inner.abandon();
        }

        @Override
        public void close() {
            inner.close();
        }
    }
}
