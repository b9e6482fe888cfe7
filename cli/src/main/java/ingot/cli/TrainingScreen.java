package ingot.cli;

import ingot.train.Callback;
import ingot.train.DataSummary;
import ingot.train.Evaluation;
import ingot.train.ImageConfig;
import ingot.train.RunConfig;
import ingot.train.RunSettings;
import ingot.train.StreamPlan;
import ingot.train.StreamReport;
import ingot.train.TrainingRun;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.function.LongSupplier;
import java.util.function.ToIntFunction;
import java.util.stream.Collectors;

/// Shows a training run: its phases, what is trained, a live line per step, and evaluations.
final class TrainingScreen implements Callback {
    /// Labels that are listed.
    private static final int SHOWN = 12;

    private final Screen screen;
    private final RunSettings config;
    private final LongSupplier nanoseconds;
    private final Phases phases;
    private final long begin;
    private boolean started;
    private volatile boolean training;
    private volatile boolean stop;

    TrainingScreen(Screen screen, RunSettings config, LongSupplier nanoseconds) {
        this.screen = screen;
        this.config = config;
        this.nanoseconds = nanoseconds;
        phases = new Phases(screen, nanoseconds);
        begin = nanoseconds.getAsLong();
    }

    @Override
    public void onPhase(String name, long done, long total) {
        if (!started) {
            phases.at(name, done, total);
        } else if (screen.terminal()) {
            screen.live(Phases.text(name, done, total));
        }
    }

    @Override
    public void onStart(TrainingRun.Summary run) {
        phases.end();
        RunConfig.TrainConfig train = config.train();
        screen.line("");
        item("run", run.folder() + (run.firstStep() == 0 ? "" : ", continued after step " + run.firstStep()));
        item("task", Words.of(config));
        data(run.data());
        item(
                "model",
                Quantity.count(run.parameters()) + " parameters"
                        + (run.trainedParameters() == run.parameters()
                                ? ""
                                : " (" + Quantity.count(run.trainedParameters()) + " trained, "
                                        + Quantity.count(run.parameters() - run.trainedParameters()) + " frozen)")
                        + ": " + model(run.data()));
        item(
                "training",
                Quantity.count(run.steps(), "step") + " of " + train.batch() + " × " + size(run.data()) + ", "
                        + train.optimizer().name().toLowerCase(Locale.ROOT) + ", learning rate "
                        + train.learningRate() + ", "
                        + train.schedule().name().toLowerCase(Locale.ROOT));
        item("machine", run.backend());
        StreamPlan stream = run.stream();
        if (stream != null) {
            item(
                    "memory",
                    Quantity.bytes(stream.budget().bytes()) + " in all; the state of "
                            + Quantity.bytes(stream.layout().stateBytes()) + " lies on disk, "
                            + Quantity.bytes(stream.window().pinnedBytes()) + " of it stay in memory, "
                            + Quantity.bytes(
                                    stream.window().bytes() - stream.window().pinnedBytes())
                            + " are for what passes by");
            item(
                    "disk",
                    "about " + Quantity.bytes(stream.traffic().later(0.5).read()) + " read and "
                            + Quantity.bytes(stream.traffic().later(0.5).written())
                            + " written per step; every step is durable");
        }
        screen.line("");
        screen.line(screen.dim("Prepared in " + Quantity.duration(elapsed())
                + ". Ctrl-C stops after the step in flight; the same command continues."));
        started = true;
        training = run.firstStep() < run.steps();
        if (training && screen.terminal()) {
            screen.live(
                    "step " + run.firstStep() + "/" + run.steps() + "  the first steps are slow: kernels are tuned");
        }
    }

    private void data(DataSummary data) {
        switch (data) {
            case DataSummary.Text text ->
                item(
                        "data",
                        Quantity.count(text.trainFiles(), "file") + ", " + Quantity.count(text.trainTokens())
                                + " tokens of " + Quantity.digits(text.bytesPerToken()) + " bytes; held out: "
                                + Quantity.count(text.heldOutFiles(), "file") + ", "
                                + Quantity.bytes(text.heldOutBytes()));
            case DataSummary.Examples examples -> {
                item(
                        "data",
                        Quantity.count(examples.training(), examples.unit()) + " to learn from"
                                + groups(examples, DataSummary.Group::training) + "; "
                                + Quantity.count(examples.heldOut()) + " held out"
                                + groups(examples, DataSummary.Group::heldOut));
                if (examples.cut() > 0) {
                    item(
                            "",
                            Quantity.count(examples.cut(), examples.unit()) + " reach " + examples.size()
                                    + "; what is longer was cut");
                }
            }
        }
    }

    /// `: 3,735 ham, 1,706 spam`; the most frequent of many.
    private static String groups(DataSummary.Examples examples, ToIntFunction<DataSummary.Group> count) {
        List<DataSummary.Group> named = examples.groups().stream()
                .filter(group -> !group.label().isEmpty())
                .sorted(Comparator.comparingInt(count).reversed())
                .toList();
        return named.isEmpty()
                ? ""
                : named.stream()
                        .limit(SHOWN)
                        .map(group -> Quantity.count(count.applyAsInt(group)) + " " + group.label())
                        .collect(Collectors.joining(", ", " (", named.size() > SHOWN ? ", …)" : ")"));
    }

    private String model(DataSummary data) {
        return switch (data) {
            case DataSummary.Examples examples -> examples.model();
            case DataSummary.Text _
            when config instanceof RunConfig own ->
                Quantity.count(own.model().layers(), "layer") + ", width "
                        + own.model().width() + ", "
                        + Quantity.count(own.model().heads(), "head") + ", context "
                        + own.model().context();
            case DataSummary.Text _ -> "";
        };
    }

    private String size(DataSummary data) {
        return switch (data) {
            case DataSummary.Examples examples -> examples.size();
            case DataSummary.Text _
            when config instanceof RunConfig own -> own.model().context() + " tokens";
            case DataSummary.Text _ -> "";
        };
    }

    private void item(String name, String text) {
        screen.line(String.format(Locale.ROOT, "%-9s %s", name, text));
    }

    @Override
    public void onStep(StepReport report) {
        screen.live(step(report, screen.terminal(), unit()));
        if (report.step() == report.steps()) {
            screen.end(true);
            training = false;
        }
    }

    private String unit() {
        return config instanceof ImageConfig ? "images" : "tokens";
    }

    static String step(StepReport report, boolean withBar, String unit) {
        int digits = Long.toString(report.steps()).length();
        return String.format(
                Locale.ROOT,
                "step %" + digits + "d/%d %s loss %6.3f  %,7.0f %s/s  %5s GFLOP/s  %s  %s%s",
                report.step(),
                report.steps(),
                withBar ? Phases.bar(report.step(), report.steps()) : "",
                report.loss(),
                report.tokensPerSecond(),
                unit,
                Quantity.digits(report.gflops()),
                Quantity.bytes(report.memoryBytes()),
                stalls(report),
                report.step() == report.steps() ? "done" : Quantity.duration(report.secondsLeft()) + " left");
    }

    /// `waits 12% `: the share of a step in which the computation waited for the disk.
    private static String stalls(StepReport report) {
        StreamReport stream = report.stream();
        if (stream == null) {
            return "";
        }
        double waits = stream.readStall() + stream.writeStall() + stream.commitStall();
        return String.format(Locale.ROOT, "waits %.0f%%  ", 100 * waits / report.seconds());
    }

    /// The last evaluation belongs to the report.
    @Override
    public void onEvaluate(long step, Evaluation evaluation) {
        if (training) {
            screen.line("step " + step + " held out: " + evaluation(evaluation));
        }
    }

    static String evaluation(Evaluation evaluation) {
        return Words.of(evaluation);
    }

    @Override
    public void onCheckpoint(long step) {
        if (training && !stop) {
            screen.line(screen.dim("step " + step + " checkpoint written"));
        }
    }

    @Override
    public void onWarning(String message) {
        screen.warn("warning: " + message);
    }

    @Override
    public boolean stop() {
        return stop;
    }

    /// Ctrl-C: true when a step is in flight and the run will stop after it; the second one is false.
    boolean interrupt() {
        if (training && !stop) {
            stop = true;
            screen.line("stopping after the step in flight, with a checkpoint; Ctrl-C again ends at once");
            return true;
        }
        screen.end(true);
        screen.line("ended at once; the same command goes on from the last checkpoint, if there is one");
        return false;
    }

    /// Seconds since the command began.
    double elapsed() {
        return (nanoseconds.getAsLong() - begin) / 1e9;
    }
}
