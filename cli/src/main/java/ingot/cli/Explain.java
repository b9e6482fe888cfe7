package ingot.cli;

import ingot.compiler.Kernel;
import ingot.compiler.Layout;
import ingot.compiler.Program;
import ingot.compiler.Step;
import ingot.data.Tokenizer;
import ingot.ir.Graph;
import ingot.ir.Op;
import ingot.ir.Value;
import ingot.nn.Gpt;
import ingot.train.RunConfig;
import ingot.train.TrainingRun;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `ingot explain`.
@Command(
        name = "explain",
        mixinStandardHelpOptions = true,
        header = "Shows what a configuration compiles to, down to kernels, memory and FLOPs.",
        description = {
            "",
            "Fetches and reads no data; the vocabulary is the configured one. Without an",
            "option: an overview.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  ingot explain examples/quickstart.yaml",
            "  ingot explain examples/quickstart.yaml train.micro-batch=4 --program | less"
        })
final class Explain implements Callable<Integer> {
    private final Screen screen;

    @Parameters(index = "0", paramLabel = "CONFIG", description = "The configuration (YAML), or the folder of a run.")
    private String file = "";

    @Parameters(index = "1..*", paramLabel = "key=value", description = "Settings that win over the file.")
    private List<String> overrides = List.of();

    @Option(names = "--graph", description = "The loss as a graph, one value per line.")
    private boolean graph;

    @Option(names = "--kernels", description = "Every distinct kernel with its layouts and body.")
    private boolean kernels;

    @Option(names = "--program", description = "Every step of the program.")
    private boolean program;

    Explain(Screen screen) {
        this.screen = screen;
    }

    @Override
    public Integer call() {
        RunConfig config = ConfigFile.read(file, overrides);
        Gpt model = TrainingRun.model(config, vocabulary(config));
        RunConfig.TrainConfig train = config.train();
        int rows = train.microBatch() == 0 ? train.batch() : train.microBatch();
        Graph loss =
                model.lossGraph(rows, config.model().context(), config.model().dropout() > 0);
        if (graph) {
            screen.line(loss.toString());
        }
        screen.live("compiling ...");
        long start = System.nanoTime();
        Program compiled = TrainingRun.program(config, model);
        double seconds = (System.nanoTime() - start) / 1e9;
        screen.end(false);
        if (kernels) {
            kernels(compiled);
        }
        if (program) {
            screen.line(ingot.compiler.Explain.program(compiled));
        }
        if (!graph && !kernels && !program) {
            overview(config, model, loss, rows, compiled, seconds);
        }
        return 0;
    }

    /// The size of the vocabulary, as configured or as the configured file has it.
    static int vocabulary(RunConfig config) {
        if (config.tokenizer().file().isEmpty()) {
            return config.tokenizer().vocabulary();
        }
        try (Tokenizer tokenizer =
                Tokenizer.open(ConfigFile.path(config.tokenizer().file()))) {
            return tokenizer.vocabularySize();
        }
    }

    private void overview(RunConfig config, Gpt model, Graph loss, int rows, Program compiled, double seconds) {
        RunConfig.TrainConfig train = config.train();
        long parameters = model.parameters().stream()
                .mapToLong(parameter -> parameter.type().shape().elements())
                .sum();
        long trained = compiled.memory().gradientBytes() / Float.BYTES;
        title("step");
        screen.line("  " + Quantity.count(train.batch(), "sequence") + " of "
                + config.model().context() + " tokens, "
                + (train.microBatch() == 0 ? "all at a time" : train.microBatch() + " at a time") + ", shards of "
                + train.shard() + "; " + Quantity.count(parameters) + " parameters"
                + (trained < parameters ? ", " + Quantity.count(trained) + " of them trained" : "") + "; compiled in "
                + Quantity.duration(seconds));
        title("graph: the loss of " + Quantity.count(rows, "sequence") + ", before differentiation (--graph)");
        screen.line("  " + ops(loss));
        title("stages: what runs between loading and freeing weights; equal code is compiled once");
        stages(compiled);
        title("kernels (--kernels)");
        work(compiled);
        title("program (--program)");
        screen.line("  " + steps(compiled));
        title("memory plan");
        memory(compiled, config);
    }

    private void title(String text) {
        screen.line("");
        screen.line(screen.bold(text));
    }

    /// `12 dot, 3 reduce, …`: composites by their names.
    private static String ops(Graph graph) {
        Map<String, Integer> counts = new TreeMap<>();
        for (Value value : graph.values()) {
            String name = value.op() instanceof Op.Composite composite
                    ? composite.function().name()
                    : value.op().getClass().getSimpleName().toLowerCase(Locale.ROOT);
            counts.merge(name, 1, Integer::sum);
        }
        return counts.entrySet().stream()
                .sorted(Map.Entry.<String, Integer>comparingByValue().reversed())
                .map(entry -> entry.getValue() + " " + entry.getKey())
                .reduce((a, b) -> a + ", " + b)
                .orElse("nothing");
    }

    private void stages(Program compiled) {
        Set<String> seen = new HashSet<>();
        for (Program.Stage stage : compiled.stages()) {
            long bytes = stage.weights().stream()
                    .mapToLong(name -> compiled.weights().containsKey(name)
                            ? compiled.weights().get(name).bytes()
                            : 0)
                    .sum();
            screen.line(String.format(
                    Locale.ROOT,
                    "  %3d  %-32s %3d weights, %10s   code %s%s",
                    stage.index(),
                    stage.name(),
                    stage.weights().size(),
                    Quantity.bytes(bytes),
                    stage.signature(),
                    seen.add(stage.signature()) ? "" : " (shared)"));
        }
    }

    /// What one step costs, by kind of kernel.
    private static final class Work {
        private final Set<Kernel> distinct = new HashSet<>();
        private long runs;
        private double flops;
        private double bytes;

        void add(Kernel kernel) {
            distinct.add(kernel);
            runs++;
            flops += flops(kernel);
            bytes += bytes(kernel.reads()) + bytes(kernel.writes());
        }

        private static double bytes(List<Layout> layouts) {
            return layouts.stream().mapToDouble(layout -> layout.type().bytes()).sum();
        }
    }

    /// 2 · m · n · k for each matrix product of a batch; what other kernels compute is small beside that and not
    /// counted.
    static double flops(Kernel kernel) {
        if (!(kernel instanceof Kernel.Matmul matmul)) {
            return 0;
        }
        int rank = matmul.a().shape().rank();
        return 2.0 * matmul.c().shape().elements() * matmul.a().shape().dim(rank - 1);
    }

    private void work(Program compiled) {
        Map<String, Work> kinds = new TreeMap<>();
        Work all = new Work();
        for (Step step : compiled.steps()) {
            if (step instanceof Step.Run run) {
                kinds.computeIfAbsent(run.kernel().kind(), kind -> new Work()).add(run.kernel());
                all.add(run.kernel());
            }
        }
        screen.line(
                String.format(Locale.ROOT, "  %-20s %8s %8s %12s %12s", "kind", "distinct", "runs", "work", "bytes"));
        List<Map.Entry<String, Work>> rows = new ArrayList<>(kinds.entrySet());
        rows.sort(Comparator.comparingDouble(entry -> -entry.getValue().bytes));
        rows.forEach(entry -> row(entry.getKey(), entry.getValue()));
        row("one step", all);
    }

    private void row(String name, Work work) {
        screen.line(String.format(
                Locale.ROOT,
                "  %-20s %8d %8d %12s %12s",
                name,
                work.distinct.size(),
                work.runs,
                work.flops == 0 ? "" : Quantity.metric(work.flops) + "FLOP",
                Quantity.bytes(work.bytes)));
    }

    private static String steps(Program compiled) {
        Map<String, Integer> counts = new LinkedHashMap<>();
        compiled.steps()
                .forEach(step ->
                        counts.merge(step.getClass().getSimpleName().toLowerCase(Locale.ROOT), 1, Integer::sum));
        return compiled.steps().size() + " steps: "
                + counts.entrySet().stream()
                        .map(entry -> entry.getValue() + " " + entry.getKey())
                        .reduce((a, b) -> a + ", " + b)
                        .orElse("none");
    }

    private void memory(Program compiled, RunConfig config) {
        Program.MemoryPlan plan = compiled.memory();
        long moments = plan.gradientBytes() * config.train().rule().moments().size();
        line("weights", plan.weightBytes());
        line("gradients", plan.gradientBytes());
        line("moments", moments);
        line("activations", plan.activationBytes());
        screen.line("      " + Quantity.bytes(plan.liveBytes())
                + " of them alive at once at most: no plan can do with less");
        line("constants", plan.constantBytes());
        line("inputs, outputs", plan.interfaceBytes());
        line("all", plan.total() + moments);
    }

    private void line(String name, long bytes) {
        screen.line(String.format(Locale.ROOT, "  %-16s %12s", name, Quantity.bytes(bytes)));
    }

    private void kernels(Program compiled) {
        Map<Kernel, Integer> counts = new LinkedHashMap<>();
        for (Step step : compiled.steps()) {
            if (step instanceof Step.Run run) {
                counts.merge(run.kernel(), 1, Integer::sum);
            }
        }
        int number = 0;
        for (Map.Entry<Kernel, Integer> entry : counts.entrySet()) {
            Kernel kernel = entry.getKey();
            screen.line(screen.bold("kernel " + number++ + ": " + kernel.kind()) + ", "
                    + Quantity.count(entry.getValue(), "run") + " per step"
                    + (flops(kernel) == 0 ? "" : ", " + Quantity.metric(flops(kernel)) + "FLOP each"));
            screen.line("  reads  " + kernel.reads());
            screen.line("  writes " + kernel.writes());
            body(kernel);
        }
    }

    private void body(Kernel kernel) {
        Graph body = switch (kernel) {
            case Kernel.Map map -> map.body();
            case Kernel.Row row -> row.body();
            case Kernel.Column column -> column.body();
            case Kernel.Loop loop -> loop.body();
            case Kernel.Matmul _, Kernel.Convolution _, Kernel.Gather _, Kernel.ScatterAdd _ -> null;
        };
        if (body != null) {
            screen.line(body.toString().indent(2).stripTrailing());
        }
    }
}
