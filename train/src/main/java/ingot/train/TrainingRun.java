package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Compiler;
import ingot.compiler.Program;
import ingot.compiler.TrainingSpec;
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
import ingot.store.BaseWeights;
import ingot.store.Durable;
import ingot.store.RamStore;
import ingot.store.Storage;
import ingot.store.StoreInspection;
import ingot.store.StoreLayout;
import ingot.store.StoreReport;
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
/// metrics.jsonl, TensorBoard events, and `resume` with the newest checkpoints, or `store` with the state itself, when
/// it streams from disk. Calling `train` again continues where the last checkpoint was.
public final class TrainingRun {
    private static final String TEXT = "the training text";
    private static final String TOKENIZER = "the tokenizer";
    private static final String BASE = "the base model";

    private final RunConfig config;
    private final Path folder;
    private final Callback callback;
    private final Backend backend;
    private final long machineBytes;
    private final Storage.Opener disk;

    /// What is about to be trained.
    ///
    /// @param trainedParameters those that are not frozen
    /// @param firstStep 0, or where a resumed run continues
    /// @param trainTokens tokens of the training text
    /// @param heldOutBytes bytes of the held-out text
    /// @param stream how the state goes through memory; null if all of it is there
    public record Summary(
            Path folder,
            long parameters,
            long trainedParameters,
            long firstStep,
            long steps,
            int trainFiles,
            int heldOutFiles,
            long trainTokens,
            double bytesPerToken,
            long heldOutBytes,
            String backend,
            @Nullable StreamPlan stream) {}

    /// How a run ended.
    ///
    /// @param finished false when it was stopped before its last step
    /// @param digest SHA-256 of weights, moments and losses; empty for a streamed run that was stopped
    public record Outcome(
            long step, boolean finished, double loss, Evaluator.@Nullable Evaluation evaluation, String digest) {}

    /// A run on a machine that has all the memory it needs.
    public TrainingRun(RunConfig config, Backend backend, Callback callback) {
        this(config, backend, callback, Long.MAX_VALUE);
    }

    /// @param machineBytes what this process may use if the configuration does not say: if that is too little for the
    /// whole state, the run streams
    public TrainingRun(RunConfig config, Backend backend, Callback callback, long machineBytes) {
        this(config, backend, callback, machineBytes, Storage.Opener.files(callback::onWarning));
    }

    /// @param disk opens the device below a store
    TrainingRun(RunConfig config, Backend backend, Callback callback, long machineBytes, Storage.Opener disk) {
        this.disk = disk;
        this.config = config;
        this.machineBytes = machineBytes;
        this.folder = Path.of(config.run());
        this.backend = backend;
        this.callback = callback;
    }

    public Outcome train() {
        try (RunLock _ = RunLock.take(folder);
                BaseWeights base = base(config)) {
            refuseOther(base);
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
                return train(split, tokenizer, training, heldOut, base);
            }
        }
    }

    private Outcome train(
            Corpus.Split split,
            Tokenizer tokenizer,
            Sequences training,
            Sequences heldOut,
            @Nullable BaseWeights base) {
        RunConfig.TrainConfig train = config.train();
        Gpt model = model(config, tokenizer.vocabularySize(), base);
        Batches batches = new Batches(training.count(), train.batch(), train.seed());
        long steps = train.steps() > 0 ? train.steps() : batches.steps(train.epochs());
        callback.onPhase("compiling", 0, 0);
        Task task = task(model, training, batches).startingAt(Start.of(model.parameters(), base, train.freeze()));
        Recipe recipe = train.recipe(steps);
        Map<String, String> data = base(base);
        data.put(TEXT, split.training().fingerprint());
        data.put(TOKENIZER, tokenizer.fingerprint());
        Backend background = backend.background();
        Streamed settings = Streamed.of(storeFolder(), allowed(), identity(data), callback::onWarning)
                .withStorage(disk);
        StateMove.clean(storeFolder());
        StateMove.clean(resumeFolder());
        if (config.memory().isEmpty()) {
            Program program = Compiler.training(Trainer.spec(task, recipe));
            if (fits(program.memory(), recipe)) {
                toMemory(task, recipe, data, settings);
                try (RamStore store = new RamStore();
                        Trainer trainer = new Trainer(task, recipe, backend, program, store)) {
                    Checkpoint.State state = Checkpoint.load(resumeFolder(), store, callback::onWarning);
                    if (state != null) {
                        refuse("the data", state.data(), data);
                        trainer.continueAt(state.step(), state.losses());
                    }
                    return new Loop(split, model, task, tokenizer, training, heldOut, trainer, data, steps, false)
                            .run();
                }
            }
        }
        StreamPlan plan = Streamed.plan(task, recipe, backend, settings);
        toDisk(task, recipe, data, settings, plan.layout());
        try (Trainer trainer = Trainer.streamed(plan, task, recipe, backend, background, settings)) {
            return new Loop(split, model, task, tokenizer, training, heldOut, trainer, data, steps, true).run();
        }
    }

    /// Writes the model of a run that streams, as it is after its last step; returns the steps done.
    public long export(Path to) {
        if (!Streamed.exists(storeFolder())) {
            throw new IngotException("export: " + folder + " has no store of a streamed run in " + storeFolder()
                    + "; a run in memory writes its model at every checkpoint");
        }
        try (RunLock _ = RunLock.take(folder);
                Tokenizer tokenizer = Tokenizer.open(folder);
                BaseWeights base = base(config)) {
            Gpt model = model(config, tokenizer.vocabularySize(), base);
            Task task = task(config, model, base);
            String identity = StoreInspection.inspect(storeFolder()).identity();
            Streamed settings = Streamed.of(storeFolder(), allowed(), identity, callback::onWarning);
            try (Trainer trainer = Trainer.streamed(task, recipe(config), backend, backend.background(), settings)) {
                trainer.flush();
                Files.createDirectories(to);
                ModelFolder.save(to, model, tokenizer.endOfText(), trainer.store());
                if (!Files.exists(to.resolve("tokenizer.json"))) {
                    Files.copy(folder.resolve("tokenizer.json"), to.resolve("tokenizer.json"));
                }
                return trainer.step();
            }
        } catch (IOException e) {
            throw new IngotException("export: cannot write to " + to + ": " + e.getMessage(), e);
        }
    }

    /// Makes sure that the newest state of the run is in its checkpoints: one that is on disk moves there.
    private void toMemory(Task task, Recipe recipe, Map<String, String> data, Streamed settings) {
        if (!Streamed.exists(storeFolder())) {
            return;
        }
        Checkpoint.State state = Checkpoint.newest(resumeFolder());
        if (state == null || state.step() < stored()) {
            callback.onPhase("moving the state from disk to memory", 0, 0);
            try (Trainer trainer = Trainer.streamed(task, recipe, backend, backend.background(), settings)) {
                trainer.flush();
                Checkpoint.save(
                        resumeFolder(),
                        Checkpoint.State.of(
                                trainer.step(),
                                config.identity(),
                                data,
                                trainer.losses(),
                                trainer.store(),
                                task.start().frozen()),
                        trainer.store(),
                        (done, total) -> callback.onPhase("moving the state from disk to memory", done, total));
            }
        }
        StateMove.discard(storeFolder());
    }

    /// Makes sure that the newest state of the run is in its store: one that was in memory moves there.
    private void toDisk(Task task, Recipe recipe, Map<String, String> data, Streamed settings, StoreLayout layout) {
        Checkpoint.State state = Checkpoint.newest(resumeFolder());
        if (state == null) {
            return;
        }
        if (Streamed.exists(storeFolder()) && stored() >= state.step()) {
            StateMove.discard(resumeFolder());
            return;
        }
        refuse("the data", state.data(), data);
        callback.onPhase("moving the state from memory to disk", 0, 0);
        StateMove.discard(storeFolder());
        StateMove.toDisk(
                resumeFolder(),
                layout,
                task,
                recipe,
                backend,
                settings,
                (done, total) -> callback.onPhase("moving the state from memory to disk", done, total));
    }

    /// Steps that the store holds, beside checkpoints.
    private long stored() {
        StoreReport report = StoreInspection.inspect(storeFolder());
        if (report.sequence() < 0) {
            throw new IngotException("run: " + folder + " has checkpoints in " + resumeFolder() + " and a store that is"
                    + " damaged: see `ingot store verify`; to go on from the checkpoints delete " + storeFolder());
        }
        return Streamed.steps(report.note());
    }

    /// True if the machine has memory for all of the state.
    private boolean fits(Program.MemoryPlan plan, Recipe recipe) {
        return plan.total() + recipe.optimizer().moments().size() * plan.gradientBytes()
                <= allowed().available();
    }

    /// What the configuration says this process may use, else what the machine has.
    private MemoryBudget allowed() {
        return MemoryBudget.of(config.memory().isEmpty() ? machineBytes : MemoryBudget.parse(config.memory()));
    }

    private String identity(Map<String, String> data) {
        StringBuilder lines = new StringBuilder();
        config.identity()
                .forEach((key, value) ->
                        lines.append(key).append(": ").append(value).append('\n'));
        data.forEach(
                (key, value) -> lines.append(key).append(": ").append(value).append('\n'));
        return lines.toString();
    }

    /// The part of a run that repeats.
    private final class Loop {
        private final Corpus.Split split;
        private final Gpt model;
        private final Task task;
        private final Tokenizer tokenizer;
        private final Sequences training;
        private final Sequences heldOut;
        private final Trainer trainer;
        private final Map<String, String> data;
        private final long parameters;
        private final long trained;
        private final long steps;
        private final boolean streams;
        private final Pace pace = new Pace();
        private double loss = Double.NaN;
        private Evaluator.@Nullable Evaluation evaluation;

        Loop(
                Corpus.Split split,
                Gpt model,
                Task task,
                Tokenizer tokenizer,
                Sequences training,
                Sequences heldOut,
                Trainer trainer,
                Map<String, String> data,
                long steps,
                boolean streams) {
            this.split = split;
            this.model = model;
            this.task = task;
            this.tokenizer = tokenizer;
            this.training = training;
            this.heldOut = heldOut;
            this.trainer = trainer;
            this.data = data;
            this.steps = steps;
            this.streams = streams;
            parameters = count(model.parameters());
            trained = count(task.trained());
        }

        Outcome run() {
            callback.onStart(new Summary(
                    folder,
                    parameters,
                    trained,
                    trainer.step(),
                    steps,
                    split.training().documents().size(),
                    split.heldOut().documents().size(),
                    training.tokens(),
                    training.bytesPerToken(),
                    heldOut.targetBytes(),
                    backend.describe(),
                    trainer.streamPlan()));
            write("ingot.yaml", config.toYaml());
            try (Metrics metrics = new Metrics(folder, trainer.step())) {
                return run(metrics);
            }
        }

        private Outcome run(Metrics metrics) {
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
                return new Outcome(trainer.step(), false, loss, evaluation, "");
            }
            trainer.flush();
            return new Outcome(
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
            double gflops = (4.0 * parameters + 2.0 * trained) * rate / 1e9;
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
            Evaluator.Evaluation result;
            try (Evaluator evaluator = streams
                    ? new Evaluator(model, heldOut, backend, trainer)
                    : new Evaluator(model, heldOut, backend, trainer.store())) {
                result =
                        evaluator.run(() -> false, done -> callback.onPhase("evaluating", done, evaluator.sequences()));
            }
            evaluation = result;
            callback.onEvaluate(trainer.step(), result);
            if (metrics == null) {
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
            if (!streams) {
                String losses = trainer.losses();
                Checkpoint.save(
                        resumeFolder(),
                        Checkpoint.State.of(
                                trainer.step(),
                                config.identity(),
                                data,
                                losses,
                                store,
                                task.start().frozen()),
                        store);
            }
            ModelFolder.save(folder, model, tokenizer.endOfText(), store);
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
        return Compiler.training(spec(config, model));
    }

    /// How a run would stream with a budget; needs no data.
    public static StreamPlan plan(RunConfig config, Gpt model, Backend backend, MemoryBudget budget) {
        try (BaseWeights base = base(config)) {
            return Streamed.plan(
                    task(config, model, base),
                    recipe(config),
                    backend,
                    Streamed.of(Path.of(config.run()), budget, "", warning -> {}));
        }
    }

    /// The model of a run. Its weights are called as in its base, if it has one.
    public static Gpt model(RunConfig config, int vocabulary) {
        try (BaseWeights base = base(config)) {
            return model(config, vocabulary, base);
        }
    }

    private static Gpt model(RunConfig config, int vocabulary, @Nullable BaseWeights base) {
        GptConfig sizes = config.model().gpt(vocabulary);
        return base != null && base.types().containsKey("wte.weight") ? new Gpt(sizes, "") : Gpt.of(sizes);
    }

    private static @Nullable BaseWeights base(RunConfig config) {
        if (config.model().base().isEmpty()) {
            return null;
        }
        BaseWeights base = BaseWeights.open(Path.of(config.model().base()));
        Path path = base.path().toAbsolutePath().normalize();
        Path run = Path.of(config.run()).toAbsolutePath().normalize();
        if (path.equals(run) || path.equals(run.resolve("model.safetensors"))) {
            base.close();
            throw new IngotException("configuration: model.base " + base.path() + " lies in the run folder, where the"
                    + " run writes its own model; choose another with run=…");
        }
        return base;
    }

    /// What a run must share with the one that began, of its base.
    private static Map<String, String> base(@Nullable BaseWeights base) {
        Map<String, String> data = new LinkedHashMap<>();
        if (base != null) {
            data.put(BASE, base.fingerprint());
        }
        return data;
    }

    private static TrainingSpec spec(RunConfig config, Gpt model) {
        return Trainer.spec(task(config, model, null), recipe(config));
    }

    /// A task without data.
    private static Task task(RunConfig config, Gpt model, @Nullable BaseWeights base) {
        return task(model, config.model().context(), (step, executor) -> 0)
                .startingAt(Start.of(model.parameters(), base, config.train().freeze()));
    }

    /// The settings where nobody knows how many steps an epoch has.
    private static Recipe recipe(RunConfig config) {
        RunConfig.TrainConfig train = config.train();
        return train.recipe(Math.max(1, Math.max(train.steps(), train.warmup())));
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
        // Without a state the file may be left from other settings.
        boolean begun = Checkpoint.newest(resumeFolder()) != null || Streamed.exists(storeFolder());
        if (!begun || !Files.exists(own)) {
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

    /// A folder with the state of another configuration is not continued.
    private void refuseOther(@Nullable BaseWeights base) {
        Checkpoint.State state = Checkpoint.newest(resumeFolder());
        if (state != null) {
            refuse("the configuration", state.identity(), config.identity());
            refuse(BASE, only(state.data(), Set.of(BASE)), base(base));
        }
        if (Streamed.exists(storeFolder())) {
            Map<String, String> made = new LinkedHashMap<>();
            Streamed.identity(storeFolder()).lines().forEach(line -> {
                int colon = line.indexOf(": ");
                made.put(line.substring(0, Math.max(0, colon)), line.substring(colon + (colon < 0 ? 1 : 2)));
            });
            Map<String, String> now = new LinkedHashMap<>(config.identity());
            now.putAll(base(base));
            made.keySet().removeAll(Set.of(TEXT, TOKENIZER)); // known only after the text is read
            refuse("the configuration", made, now);
        }
    }

    private static Map<String, String> only(Map<String, String> map, Set<String> keys) {
        Map<String, String> some = new LinkedHashMap<>(map);
        some.keySet().retainAll(keys);
        return some;
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

    private Path storeFolder() {
        return Streamed.folder(folder);
    }

    private Path resumeFolder() {
        return folder.resolve("resume");
    }

    /// Number of values.
    static long count(List<Parameter> parameters) {
        return parameters.stream().mapToLong(p -> p.type().shape().elements()).sum();
    }
}
