package ingot.train;

import ingot.compiler.Backend;
import ingot.nn.Parameter;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// The part of a run that repeats: steps, with evaluations, checkpoints and metrics between them.
final class TrainingLoop {
    private final RunSettings config;
    private final RunFolder folder;
    private final Prepared run;
    private final Trainer trainer;
    private final Backend backend;
    private final Callback callback;
    private final long parameters;
    private final long trained;
    private final double flops;
    private final long steps;
    private final boolean streams;
    private final Pace pace = new Pace();
    private double loss = Double.NaN;
    private @Nullable Evaluation evaluation;

    TrainingLoop(
            RunSettings config, RunFolder folder, Prepared run, Trainer trainer, Backend backend, Callback callback) {
        this.config = config;
        this.folder = folder;
        this.run = run;
        this.trainer = trainer;
        this.backend = backend;
        this.callback = callback;
        parameters = count(run.task().parameters());
        trained = count(run.task().trained());
        flops = run.lesson().flops();
        steps = run.steps();
        streams = trainer.streamPlan() != null;
    }

    private static long count(List<Parameter> parameters) {
        return parameters.stream().mapToLong(p -> p.type().shape().elements()).sum();
    }

    TrainingRun.Outcome run() {
        callback.onStart(new TrainingRun.Summary(
                folder.path(),
                parameters,
                trained,
                trainer.step(),
                steps,
                run.lesson().summary(),
                backend.describe(),
                trainer.streamPlan()));
        folder.write("ingot.yaml", config.toYaml());
        try (Metrics metrics = new Metrics(folder.path(), trainer.step())) {
            return run(metrics);
        }
    }

    private TrainingRun.Outcome run(Metrics metrics) {
        RunConfig.TrainConfig train = config.train();
        long saved = trainer.step();
        boolean already = saved >= steps;
        boolean stopped = callback.stop();
        while (trainer.step() < steps && !stopped) {
            step(metrics);
            long done = trainer.step();
            if (due(train.evaluateEvery(), done) && done < steps) {
                evaluate(metrics);
            }
            stopped = callback.stop();
            if (due(train.checkpointEvery(), done) && done < steps && !stopped) {
                save();
                saved = done;
            }
        }
        boolean finished = trainer.step() >= steps;
        // on disk every step is saved already; the model is written when it is finished
        if (streams ? finished && !already : trainer.step() > saved || trainer.step() == 0) {
            save();
        }
        if (finished) {
            evaluate(already ? null : metrics);
        }
        if (streams && !finished) {
            return new TrainingRun.Outcome(trainer.step(), false, loss, evaluation, "");
        }
        trainer.flush();
        return new TrainingRun.Outcome(
                trainer.step(), finished, loss, evaluation, Digest.of(trainer.store(), trainer.losses()));
    }

    private void step(Metrics metrics) {
        long start = System.nanoTime();
        StreamReport before = trainer.streamReport();
        Trainer.StepResult result = trainer.next();
        loss = result.loss();
        long nanoseconds = System.nanoTime() - start;
        pace.add(result.tokens(), nanoseconds);
        StreamReport stream = streams ? trainer.streamReport().minus(before) : null;
        long done = trainer.step();
        double rate = pace.perSecond();
        double gflops = flops * rate / 1e9;
        if (due(config.train().logEvery(), done) || done == steps) {
            Map<String, Double> values = new LinkedHashMap<>();
            values.put("loss", loss);
            values.put("norm", (double) result.norm());
            values.put("learning-rate", result.learningRate());
            values.put("tokens-per-second", rate);
            values.put("gflops", gflops);
            if (stream != null) {
                values.put("read-bytes", (double) stream.readBytes());
                values.put("written-bytes", (double) stream.writtenBytes());
                values.put("read-stall", stream.readStall());
                values.put("write-stall", stream.writeStall());
                values.put("commit-stall", stream.commitStall());
            }
            metrics.write(done, values);
        }
        callback.onStep(new Callback.StepReport(
                done,
                steps,
                loss,
                result.norm(),
                result.learningRate(),
                rate,
                gflops,
                trainer.memoryBytes(),
                stream,
                nanoseconds / 1e9,
                (steps - done) * (double) result.tokens() / rate));
    }

    private void evaluate(@Nullable Metrics metrics) {
        trainer.flush();
        Evaluation result = run.lesson().evaluate(Inference.of(trainer, backend), callback);
        evaluation = result;
        callback.onEvaluate(trainer.step(), result);
        if (metrics != null) {
            metrics.write(trainer.step(), result.values());
        }
    }

    private void save() {
        trainer.flush();
        if (!streams) {
            Checkpoint.save(
                    folder.checkpoints(),
                    run.identity().state(trainer, run.task().start().frozen()),
                    trainer.store());
        }
        run.lesson().save(folder.path(), trainer.store());
        callback.onCheckpoint(trainer.step());
    }

    private boolean due(long every, long done) {
        return every > 0 && done % every == 0;
    }

    /// Tokens per second, steady: older steps count less.
    private static final class Pace {
        private double tokens;
        private double seconds;

        void add(long newTokens, long nanoseconds) {
            double keep = 0.9;
            tokens = keep * tokens + newTokens;
            seconds = keep * seconds + nanoseconds / 1e9;
        }

        double perSecond() {
            return tokens / seconds;
        }
    }
}
