package ingot.bench;

import ingot.compiler.Kernel;
import ingot.cpu.Autotuner;
import ingot.cpu.CpuBackend;
import ingot.cpu.Peaks;
import ingot.cpu.TilePool;
import ingot.ir.Graph;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Value;
import ingot.nn.Gpt;
import ingot.runtime.Profile;
import ingot.store.RamStore;
import ingot.train.Recipe;
import ingot.train.RunConfig;
import ingot.train.Task;
import ingot.train.Trainer;
import ingot.train.TrainingRun;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;

/// Where the time of a training step goes, beside the least it could take.
@CommandLine.Command(
        name = "profile",
        description = {
            "Time per kernel of a training step on random tokens, and what the machine could do (roofline).",
            "Sorted by what would be won at that limit. `idle` is the part of the threads' time without work."
        },
        mixinStandardHelpOptions = true)
final class ProfileBenchmark implements Callable<Integer> {
    @CommandLine.Parameters(
            index = "0",
            arity = "0..1",
            paramLabel = "CONFIG",
            description = "a configuration of a GPT, such as examples/gpt-11m.yaml; its data is not read")
    private @Nullable Path config;

    @CommandLine.Option(
            names = "--model",
            defaultValue = "SMALL",
            description = "without CONFIG: ${COMPLETION-CANDIDATES}")
    private GptSize size = GptSize.SMALL;

    @CommandLine.Option(names = "--steps", defaultValue = "3", description = "profiled steps")
    private int steps;

    @CommandLine.Option(names = "--warmup", defaultValue = "5", description = "steps before")
    private int warmup;

    @CommandLine.Option(names = "--rows", defaultValue = "25", description = "kernels to print")
    private int rows;

    @CommandLine.Option(
            names = "--trace",
            paramLabel = "FILE",
            description = "writes when each kernel and each thread worked, for chrome://tracing or ui.perfetto.dev")
    private @Nullable Path trace;

    /// What is trained.
    private record Job(String name, Task task, Recipe recipe) {}

    @Override
    public Integer call() {
        if (steps < 1) {
            throw new IngotException("bench: --steps expected at least 1, got " + steps);
        }
        Job job = job();
        if (trace != null) {
            ChromeTrace.create(trace);
        }
        try (TilePool pool = new TilePool(Runtime.getRuntime().availableProcessors());
                RamStore store = new RamStore();
                Trainer trainer =
                        new Trainer(job.task, job.recipe, new CpuBackend(pool, Autotuner.ofMachine()), store)) {
            for (int i = 0; i < warmup; i++) {
                trainer.next();
            }
            Profile profile = new Profile();
            WorkTimes work = new WorkTimes(pool.threads());
            trainer.profile(profile);
            pool.observe(work);
            long start = System.nanoTime();
            for (int i = 0; i < steps; i++) {
                trainer.next();
            }
            double step = (System.nanoTime() - start) / 1e6 / steps;
            pool.observe(null);
            Peaks peaks = Peaks.measure(pool);
            Sample.print(
                    "%s, %.1f ms per step; fma peak %.1f GFLOP/s, copy %.1f GB/s; %s",
                    job.name, step, peaks.fma(), peaks.copy(), Sample.load());
            print(Row.of(profile, work, peaks, steps, pool.threads()), step, rows);
            if (trace != null) {
                List<Profile.Span> runs = profile.spans();
                ChromeTrace.write(
                        trace,
                        runs,
                        runs.stream().map(run -> describe(run.kernel())).toList(),
                        work);
                Sample.print("trace of %d steps: %s", steps, trace);
            }
        }
        return 0;
    }

    private Job job() {
        if (config == null) {
            return new Job(size.toString(), size.task(), size.recipe(0));
        }
        RunConfig read = RunConfig.parse(text(config), List.of());
        int vocabulary = read.tokenizer().vocabulary();
        int batch = read.train().batch();
        Gpt model = TrainingRun.model(read, vocabulary);
        return new Job(
                config.getFileName() + ", batch " + batch,
                GptSize.task(model, vocabulary, read.model().context(), batch),
                GptSize.SMALL.recipe(batch, read.train().microBatch()));
    }

    private static String text(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            throw new IngotException(
                    "bench: " + file + " cannot be read (" + e.getClass().getSimpleName()
                            + "); expected the configuration of a GPT, such as examples/gpt-11m.yaml",
                    e);
        }
    }

    /// All runs of equal kernels.
    ///
    /// @param milliseconds of a step
    /// @param calls in a step
    /// @param least milliseconds that this machine could need for them
    /// @param idle part of the threads' time without work
    record Row(Kernel kernel, double milliseconds, double calls, double least, double idle) {
        static List<Row> of(Profile profile, WorkTimes work, Peaks peaks, int steps, int threads) {
            List<Profile.Span> runs = profile.spans();
            long[] busy = work.within(runs);
            Map<Kernel, double[]> sums = new LinkedHashMap<>(); // calls, nanoseconds, nanoseconds of work
            for (int i = 0; i < busy.length; i++) {
                Profile.Span run = runs.get(i);
                double[] sum = sums.computeIfAbsent(run.kernel(), _ -> new double[3]);
                sum[0]++;
                sum[1] += run.end() - run.start();
                sum[2] += busy[i];
            }
            List<Row> rows = new ArrayList<>();
            sums.forEach((kernel, sum) -> rows.add(new Row(
                    kernel,
                    sum[1] / 1e6 / steps,
                    sum[0] / steps,
                    sum[0] / steps * Roofline.of(kernel).least(peaks) * 1e3,
                    1 - sum[2] / (threads * Math.max(1, sum[1])))));
            rows.sort(Comparator.comparingDouble(Row::lost).reversed());
            return rows;
        }

        /// Milliseconds of a step that would be won at the limit.
        double lost() {
            return milliseconds - least;
        }

        boolean isProduct() {
            return kernel instanceof Kernel.Matmul || kernel instanceof Kernel.Convolution;
        }
    }

    private static void print(List<Row> kernels, double step, int rows) {
        Sample.print(
                "%9s %6s %5s %9s %8s %9s %6s  %s", "ms", "share", "runs", "GFLOP/s", "GB/s", "of limit", "idle", "");
        for (Row row : kernels.subList(0, Math.min(rows, kernels.size()))) {
            Roofline does = Roofline.of(row.kernel);
            double seconds = row.milliseconds / 1e3 / row.calls;
            Sample.print(
                    "%9.2f %5.1f%% %5.0f %9s %8.1f %8.0f%% %5.0f%%  %s",
                    row.milliseconds,
                    100 * row.milliseconds / step,
                    row.calls,
                    does.flops() == 0 ? "-" : String.format(Locale.ROOT, "%.1f", does.flops() / seconds / 1e9),
                    does.bytes() / seconds / 1e9,
                    100 * row.least / row.milliseconds,
                    100 * row.idle,
                    describe(row.kernel));
        }
        total("products", kernels.stream().filter(Row::isProduct).toList(), step);
        total("all else", kernels.stream().filter(row -> !row.isProduct()).toList(), step);
        double all = kernels.stream().mapToDouble(Row::milliseconds).sum();
        Sample.print(
                "%9.2f %5.1f%%  between kernels: optimizer, norm of the gradients", step - all, 100 - 100 * all / step);
    }

    private static void total(String name, List<Row> kernels, double step) {
        double milliseconds = kernels.stream().mapToDouble(Row::milliseconds).sum();
        double least = kernels.stream().mapToDouble(Row::least).sum();
        Sample.print(
                "%9.2f %5.1f%%  %s, %.0f %% of the limit",
                milliseconds, 100 * milliseconds / step, name, 100 * least / Math.max(1e-9, milliseconds));
    }

    /// The kernels that take longest, of `steps` steps of `step` milliseconds each.
    static void list(Profile profile, int steps, double step, int rows) {
        double listed = 0;
        int printed = 0;
        for (Profile.Entry entry : profile.entries()) {
            double each = entry.nanoseconds() / 1e6 / steps;
            listed += each;
            if (printed++ < rows) {
                Roofline does = Roofline.of(entry.kernel());
                double seconds = entry.nanoseconds() / 1e9 / entry.calls();
                Sample.print(
                        "%7.2f ms %5.1f %% %4d x  %s  %.1f %s",
                        each,
                        100 * each / step,
                        entry.calls() / steps,
                        describe(entry.kernel()),
                        (does.flops() > 0 ? does.flops() : does.bytes()) / seconds / 1e9,
                        does.flops() > 0 ? "GFLOP/s" : "GB/s");
            }
        }
        Sample.print(
                "%7.2f ms %5.1f %% in all %d kernels",
                listed, 100 * listed / step, profile.entries().size());
    }

    /// What a kernel is: its shapes, and of passes over rows and elements what they compute.
    static String describe(Kernel kernel) {
        return switch (kernel) {
            case Kernel.Matmul matmul ->
                "matmul " + matmul.a().shape() + " x " + matmul.b().shape()
                        + (matmul.segments() > 1 ? " in " + matmul.segments() + " segments" : "")
                        + (matmul.old() == Kernel.Matmul.Old.REPLACED
                                ? ""
                                : " " + matmul.old().name().toLowerCase(Locale.ROOT));
            case Kernel.Convolution convolution ->
                "convolution " + convolution.kernel().shape() + " over "
                        + convolution.windows().shape();
            case Kernel.Row row -> "row " + row.space() + ": " + words(row.body());
            case Kernel.Map map -> "map " + map.space() + ": " + words(map.body());
            case Kernel.Column column -> "column " + column.space() + ": " + words(column.body());
            case Kernel.Gather _, Kernel.ScatterAdd _, Kernel.Loop _ ->
                kernel.kind() + " " + kernel.writes().getFirst().shape();
        };
    }

    /// The ops that tell kernels apart: what reduces, functions, choices; else all.
    private static String words(Graph body) {
        Set<String> telling = new LinkedHashSet<>();
        Set<String> all = new LinkedHashSet<>();
        for (Value value : body.values()) {
            switch (value.op()) {
                case Op.Reduce op -> telling.add(op.kind().name().toLowerCase(Locale.ROOT));
                case Op.Unary op -> telling.add(op.kind().name().toLowerCase(Locale.ROOT));
                case Op.Select _ -> telling.add("select");
                case Op.Binary op -> all.add(op.kind().name().toLowerCase(Locale.ROOT));
                case Op.Fma _ -> all.add("fma");
                default -> {}
            }
        }
        Set<String> words = telling.isEmpty() ? all : telling;
        return words.isEmpty() ? "copy" : String.join(" ", words);
    }
}
