package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Compiler;
import ingot.compiler.Program;
import ingot.data.Batches;
import ingot.data.BytePairs;
import ingot.data.Corpus;
import ingot.data.Sequences;
import ingot.data.Tokenizer;
import ingot.ir.IngotException;
import ingot.nn.Gpt;
import ingot.nn.GptConfig;
import ingot.nn.Parameter;
import ingot.runtime.Executor;
import ingot.store.Durable;
import ingot.store.RamStore;
import ingot.store.WeightStore;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// A language model trained from text into a run folder, resumable at any moment.
///
/// The folder is a Hugging Face GPT-2 checkpoint (config.json, model.safetensors, tokenizer.json) beside ingot.yaml,
/// metrics.jsonl, TensorBoard events, and `resume` with the newest checkpoints. Calling `train` again continues where
/// the last checkpoint was.
public final class TrainingRun {
    private final RunConfig config;
    private final Path folder;
    private final Callback callback;
    private final Backend backend;

    /// What is about to be trained.
    ///
    /// @param firstStep 0, or where a resumed run continues
    /// @param trainTokens tokens of the training text
    /// @param heldOutBytes bytes of the held-out text
    public record Summary(
            Path folder,
            long parameters,
            long firstStep,
            long steps,
            int trainFiles,
            int heldOutFiles,
            long trainTokens,
            double bytesPerToken,
            long heldOutBytes,
            String backend) {}

    /// How a run ended.
    ///
    /// @param finished false when it was stopped before its last step
    /// @param digest SHA-256 of weights, moments and losses
    public record Outcome(
            long step, boolean finished, double loss, Evaluator.@Nullable Evaluation evaluation, String digest) {}

    public TrainingRun(RunConfig config, Backend backend, Callback callback) {
        this.config = config;
        this.folder = Path.of(config.run());
        this.backend = backend;
        this.callback = callback;
    }

    public Outcome train() {
        try (RunLock _ = RunLock.take(folder)) {
            refuseOther();
            callback.onPhase("reading " + config.data().corpus(), 0, 0);
            Corpus corpus = Corpus.open(
                    config.data().corpus(),
                    config.data().include(),
                    Corpus.defaultCache(),
                    notice -> callback.onPhase(notice, 0, 0));
            if (!corpus.replacements().isEmpty()) {
                callback.onWarning("malformed UTF-8 was replaced in " + String.join(", ", corpus.replacements()));
            }
            Corpus.Split split =
                    corpus.split(config.train().seed(), config.data().heldOut());
            try (Tokenizer tokenizer = tokenizer(split.training())) {
                int length = config.model().context();
                Sequences training = Sequences.of(
                        split.training(),
                        tokenizer,
                        length,
                        (done, total) -> callback.onPhase("encoding", done, total));
                Sequences heldOut = Sequences.of(split.heldOut(), tokenizer, length, (done, total) -> {});
                return train(split, tokenizer, training, heldOut);
            }
        }
    }

    private Outcome train(Corpus.Split split, Tokenizer tokenizer, Sequences training, Sequences heldOut) {
        RunConfig.TrainConfig train = config.train();
        Gpt model = Gpt.of(config.model().gpt(tokenizer.vocabularySize()));
        Batches batches = new Batches(training.count(), train.batch(), train.seed());
        long steps = train.steps() > 0 ? train.steps() : batches.steps(train.epochs());
        callback.onPhase("compiling", 0, 0);
        try (RamStore store = new RamStore();
                Trainer trainer = new Trainer(task(model, training, batches), train.recipe(steps), backend, store);
                Evaluator evaluator = new Evaluator(model, heldOut, backend, store)) {
            Map<String, String> data = new LinkedHashMap<>();
            data.put("the training text", split.training().fingerprint());
            data.put("the tokenizer", tokenizer.fingerprint());
            Checkpoint.State state = Checkpoint.load(resumeFolder(), store, callback::onWarning);
            String losses = Digest.EMPTY;
            if (state != null) {
                refuse("the data", state.data(), data);
                trainer.continueAt(state.step());
                losses = state.losses();
            }
            long parameters = count(model.parameters());
            callback.onStart(new Summary(
                    folder,
                    parameters,
                    trainer.step(),
                    steps,
                    split.training().documents().size(),
                    split.heldOut().documents().size(),
                    training.tokens(),
                    training.bytesPerToken(),
                    heldOut.targetBytes(),
                    backend.describe()));
            write("ingot.yaml", config.toYaml());
            try (Metrics metrics = new Metrics(folder, trainer.step())) {
                return new Loop(model, tokenizer, trainer, evaluator, metrics, data, parameters, steps, losses).run();
            }
        }
    }

    /// The part of a run that repeats.
    private final class Loop {
        private final Gpt model;
        private final Tokenizer tokenizer;
        private final Trainer trainer;
        private final Evaluator evaluator;
        private final Metrics metrics;
        private final Map<String, String> data;
        private final long parameters;
        private final long steps;
        private final Pace pace = new Pace();
        private String losses;
        private double loss = Double.NaN;
        private Evaluator.@Nullable Evaluation evaluation;

        Loop(
                Gpt model,
                Tokenizer tokenizer,
                Trainer trainer,
                Evaluator evaluator,
                Metrics metrics,
                Map<String, String> data,
                long parameters,
                long steps,
                String losses) {
            this.model = model;
            this.tokenizer = tokenizer;
            this.trainer = trainer;
            this.evaluator = evaluator;
            this.metrics = metrics;
            this.data = data;
            this.parameters = parameters;
            this.steps = steps;
            this.losses = losses;
        }

        Outcome run() {
            RunConfig.TrainConfig train = config.train();
            long saved = trainer.step();
            boolean already = saved >= steps;
            boolean stopped = callback.stop();
            while (trainer.step() < steps && !stopped) {
                step();
                long done = trainer.step();
                if (due(train.evaluateEvery(), done) && done < steps) {
                    evaluate(true);
                }
                stopped = callback.stop();
                if (due(train.checkpointEvery(), done) && done < steps && !stopped) {
                    save();
                    saved = done;
                }
            }
            if (trainer.step() > saved || trainer.step() == 0) {
                save();
            }
            boolean finished = trainer.step() >= steps;
            if (finished) {
                evaluate(!already);
            }
            trainer.flush();
            return new Outcome(trainer.step(), finished, loss, evaluation, Digest.of(trainer.store(), losses));
        }

        private void step() {
            long start = System.nanoTime();
            Trainer.StepResult result = trainer.next();
            loss = result.loss();
            losses = Digest.append(losses, result.loss());
            pace.add(result.tokens(), System.nanoTime() - start);
            long done = trainer.step();
            double rate = pace.perSecond();
            double gflops = 6.0 * parameters * rate / 1e9;
            if (due(config.train().logEvery(), done) || done == steps) {
                Map<String, Double> values = new LinkedHashMap<>();
                values.put("loss", loss);
                values.put("norm", (double) result.norm());
                values.put("learning-rate", result.learningRate());
                values.put("tokens-per-second", rate);
                values.put("gflops", gflops);
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
                    (steps - done) * (double) result.tokens() / rate));
        }

        private void evaluate(boolean record) {
            trainer.flush();
            Evaluator.Evaluation result =
                    evaluator.run(() -> false, done -> callback.onPhase("evaluating", done, evaluator.sequences()));
            evaluation = result;
            callback.onEvaluate(trainer.step(), result);
            if (!record) {
                return;
            }
            Map<String, Double> values = new LinkedHashMap<>();
            values.put("held-out-loss", result.loss());
            values.put("bits-per-byte", result.bitsPerByte());
            values.put("perplexity", result.perplexity());
            metrics.write(trainer.step(), values);
        }

        private void save() {
            trainer.flush();
            WeightStore store = trainer.store();
            Checkpoint.save(
                    resumeFolder(),
                    new Checkpoint.State(trainer.step(), config.identity(), data, Digest.of(store, losses), losses),
                    store);
            GptFiles.save(folder, model, tokenizer.endOfText(), store);
            callback.onCheckpoint(trainer.step());
        }

        private boolean due(long every, long done) {
            return every > 0 && done % every == 0;
        }
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

    /// The program of one training step; needs no data.
    public static Program program(RunConfig config, Gpt model) {
        RunConfig.TrainConfig train = config.train();
        Task task = task(model, config.model().context(), (step, executor) -> 0);
        return Compiler.training(Trainer.spec(
                task, train.recipe(Math.max(1, Math.max(train.steps(), train.warmup())))));
    }

    /// Next-token prediction over packed sequences.
    static Task task(Gpt model, Sequences training, Batches batches) {
        return task(model, training.length(), (step, executor) -> fill(training, batches, step, executor));
    }

    private static Task task(Gpt model, int length, Task.Feed feed) {
        GptConfig sizes = model.config();
        boolean dropout = sizes.embeddingDropout() > 0 || sizes.attentionDropout() > 0 || sizes.residualDropout() > 0;
        return new Task(
                model.parameters(),
                batch -> model.lossGraph(batch, length, dropout),
                Set.of("tokens", "targets"),
                dropout,
                feed);
    }

    private static long fill(Sequences training, Batches batches, long step, Executor executor) {
        MemorySegment tokens = executor.input("tokens");
        MemorySegment targets = executor.input("targets");
        long row = 4L * training.length();
        for (int i = 0; i < batches.size(); i++) {
            training.read(batches.sequence(step, i), tokens, i * row, targets, i * row);
        }
        long count = (long) batches.size() * training.length();
        executor.input("scale").set(ValueLayout.JAVA_FLOAT, 0, 1f / count);
        return count;
    }

    /// The run's own tokenizer if it has begun, else the given file, else byte pairs trained on the training text.
    private Tokenizer tokenizer(Corpus training) {
        Path own = folder.resolve("tokenizer.json");
        // Without a checkpoint the file may be left from other settings.
        if (Checkpoint.newest(resumeFolder()) == null || !Files.exists(own)) {
            if (config.tokenizer().file().isEmpty()) {
                BytePairs.train(
                                training,
                                config.tokenizer().vocabulary(),
                                (done, total) -> callback.onPhase("training the tokenizer", done, total))
                        .write(own);
            } else {
                try {
                    Path given = Path.of(config.tokenizer().file());
                    Tokenizer.open(given).close();
                    Path partial = folder.resolve("tokenizer.json.partial");
                    Files.copy(given, partial, StandardCopyOption.REPLACE_EXISTING);
                    Files.move(partial, own, StandardCopyOption.ATOMIC_MOVE);
                } catch (IOException e) {
                    throw new IngotException("run: cannot copy the tokenizer to " + own + ": " + e.getMessage(), e);
                }
            }
        }
        return Tokenizer.open(own);
    }

    /// A folder with a checkpoint of another configuration is not continued.
    private void refuseOther() {
        Checkpoint.State state = Checkpoint.newest(resumeFolder());
        if (state != null) {
            refuse("the configuration", state.identity(), config.identity());
        }
    }

    private void refuse(String what, Map<String, String> before, Map<String, String> now) {
        if (before.equals(now)) {
            return;
        }
        Set<String> keys = new LinkedHashSet<>(now.keySet());
        keys.addAll(before.keySet());
        List<String> changes = new ArrayList<>();
        for (String key : keys) {
            String old = before.getOrDefault(key, "nothing");
            String young = now.getOrDefault(key, "nothing");
            if (!old.equals(young)) {
                changes.add(key + " is " + young + ", it was " + old);
            }
        }
        throw new IngotException("run: " + folder + " was begun with other settings, " + what + " differs: "
                + String.join("; ", changes) + ". Restore them to resume, or choose another folder with run=…");
    }

    private void write(String name, String content) {
        try {
            Durable.write(folder.resolve(name), content);
        } catch (IOException e) {
            throw new IngotException("run: cannot write " + folder.resolve(name) + ": " + e.getMessage(), e);
        }
    }

    private Path resumeFolder() {
        return folder.resolve("resume");
    }

    /// Number of trainable values.
    static long count(List<Parameter> parameters) {
        return parameters.stream().mapToLong(p -> p.type().shape().elements()).sum();
    }
}
