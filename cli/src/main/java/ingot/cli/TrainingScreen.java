package ingot.cli;

import ingot.train.Callback;
import ingot.train.Evaluator;
import ingot.train.RunConfig;
import ingot.train.StreamPlan;
import ingot.train.StreamReport;
import ingot.train.TrainingRun;
import java.util.Locale;
import java.util.function.LongSupplier;

/// Shows a training run: its phases, what is trained, a live line per step, and evaluations.
final class TrainingScreen implements Callback {
    private final Screen screen;
    private final RunConfig config;
    private final LongSupplier nanoseconds;
    private final Phases phases;
    private final long begin;
    private boolean started;
    private volatile boolean training;
    private volatile boolean stop;

    TrainingScreen(Screen screen, RunConfig config, LongSupplier nanoseconds) {
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
        RunConfig.ModelConfig model = config.model();
        RunConfig.TrainConfig train = config.train();
        screen.line("");
        item("run", run.folder() + (run.firstStep() == 0 ? "" : ", continued after step " + run.firstStep()));
        item(
                "data",
                Quantity.count(run.trainFiles(), "file") + ", " + Quantity.count(run.trainTokens()) + " tokens of "
                        + Quantity.digits(run.bytesPerToken()) + " bytes; held out: "
                        + Quantity.count(run.heldOutFiles(), "file") + ", " + Quantity.bytes(run.heldOutBytes()));
        item(
                "model",
                Quantity.count(run.parameters()) + " parameters"
                        + (run.trainedParameters() == run.parameters()
                                ? ""
                                : " (" + Quantity.count(run.trainedParameters()) + " trained, "
                                        + Quantity.count(run.parameters() - run.trainedParameters()) + " frozen)")
                        + ": " + Quantity.count(model.layers(), "layer")
                        + ", width " + model.width() + ", " + Quantity.count(model.heads(), "head") + ", context "
                        + model.context());
        item(
                "training",
                Quantity.count(run.steps(), "step") + " of " + train.batch() + " × " + model.context() + " tokens, "
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

    private void item(String name, String text) {
        screen.line(String.format(Locale.ROOT, "%-9s %s", name, text));
    }

    @Override
    public void onStep(StepReport report) {
        screen.live(step(report, screen.terminal()));
        if (report.step() == report.steps()) {
            screen.end(true);
            training = false;
        }
    }

    static String step(StepReport report, boolean withBar) {
        int digits = Long.toString(report.steps()).length();
        return String.format(
                Locale.ROOT,
                "step %" + digits + "d/%d %s loss %6.3f  %,7.0f tokens/s  %5s GFLOP/s  %s  %s%s",
                report.step(),
                report.steps(),
                withBar ? Phases.bar(report.step(), report.steps()) : "",
                report.loss(),
                report.tokensPerSecond(),
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
    public void onEvaluate(long step, Evaluator.Evaluation evaluation) {
        if (training) {
            screen.line("step " + step + " held out: " + evaluation(evaluation));
        }
    }

    static String evaluation(Evaluator.Evaluation evaluation) {
        return String.format(
                Locale.ROOT,
                "%.3f bits per byte (loss %.3f, perplexity %s per token)",
                evaluation.bitsPerByte(),
                evaluation.loss(),
                Quantity.digits(evaluation.perplexity()));
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
