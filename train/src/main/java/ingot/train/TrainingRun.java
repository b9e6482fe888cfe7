package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Compiler;
import ingot.compiler.Program;
import ingot.data.Batches;
import ingot.ir.IngotException;
import ingot.nn.Gpt;
import ingot.store.RamStore;
import ingot.store.Storage;
import ingot.store.StoreInspection;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/// A model trained from data into a run folder, resumable at any moment: a language model from text, or one that exists
/// and is fine-tuned.
///
/// The folder holds the model (of a language model: a Hugging Face GPT-2 checkpoint, config.json, model.safetensors,
/// tokenizer.json) beside ingot.yaml,
/// metrics.jsonl, TensorBoard events, and `resume` with the newest checkpoints, or `store` with the state itself, when
/// it streams from disk. Calling `train` again continues where the last checkpoint was.
public final class TrainingRun {
    private final RunSettings config;
    private final RunFolder folder;
    private final Callback callback;
    private final Backend backend;
    private final long machineBytes;
    private final Storage.Opener disk;

    /// What is about to be trained.
    ///
    /// @param trainedParameters those that are not frozen
    /// @param firstStep 0, or where a resumed run continues
    /// @param stream how the state goes through memory; null if all of it is there
    public record Summary(
            Path folder,
            long parameters,
            long trainedParameters,
            long firstStep,
            long steps,
            DataSummary data,
            String backend,
            @Nullable StreamPlan stream) {}

    /// How a run ended.
    ///
    /// @param finished false when it was stopped before its last step
    /// @param digest SHA-256 of weights, moments and losses; empty for a streamed run that was stopped
    public record Outcome(
            long step,
            boolean finished,
            double loss,
            @Nullable Evaluation evaluation,
            String digest) {}

    /// A run on a machine that has all the memory it needs.
    public TrainingRun(RunSettings config, Backend backend, Callback callback) {
        this(config, backend, callback, Long.MAX_VALUE);
    }

    /// @param machineBytes what this process may use if the configuration does not say: if that is too little for the
    /// whole state, the run streams
    public TrainingRun(RunSettings config, Backend backend, Callback callback, long machineBytes) {
        this(config, backend, callback, machineBytes, Storage.Opener.files(callback::onWarning));
    }

    /// @param disk opens the device below a store
    TrainingRun(RunSettings config, Backend backend, Callback callback, long machineBytes, Storage.Opener disk) {
        this.disk = disk;
        this.config = config;
        this.machineBytes = machineBytes;
        this.folder = RunFolder.of(config);
        this.backend = backend;
        this.callback = callback;
    }

    public Outcome train() {
        try (RunLock _ = RunLock.take(folder.path());
                Trainee trainee = Trainee.of(config, callback)) {
            RunIdentity identity = RunIdentity.of(config, trainee);
            identity.refuseOther(folder);
            try (Lesson lesson = trainee.lesson(folder, callback)) {
                return train(prepare(lesson, identity));
            }
        }
    }

    private Prepared prepare(Lesson lesson, RunIdentity identity) {
        RunConfig.TrainConfig train = config.train();
        long steps = train.steps() > 0
                ? train.steps()
                : new Batches(lesson.rows(), train.batch(), train.seed()).steps(train.epochs());
        callback.onPhase("compiling", 0, 0);
        return new Prepared(
                lesson, lesson.task(), lesson.recipe(train.recipe(steps)), identity.with(lesson.fingerprints()), steps);
    }

    private Outcome train(Prepared run) {
        Task task = run.task();
        Recipe recipe = run.recipe();
        Backend background = backend.background();
        Streamed settings = streamed(run.identity().lines()).withStorage(disk);
        StatePlace place = new StatePlace(folder, run, backend, settings, callback);
        if (config.memory().isEmpty()) {
            Program program = Compiler.training(Trainer.spec(task, recipe));
            if (fits(program.memory(), recipe)) {
                place.toMemory();
                try (RamStore store = new RamStore();
                        Trainer trainer = new Trainer(task, recipe, backend, program, store)) {
                    Checkpoint.State state = Checkpoint.load(folder.checkpoints(), store, callback::onWarning);
                    if (state != null) {
                        run.identity().refuseOtherData(folder, state);
                        trainer.continueAt(state.step(), state.losses());
                    }
                    return loop(run, trainer);
                }
            }
        }
        StreamPlan plan = Streamed.plan(task, recipe, backend, settings);
        place.toDisk(plan.layout());
        try (Trainer trainer = Trainer.streamed(plan, task, recipe, backend, background, settings)) {
            return loop(run, trainer);
        }
    }

    private Outcome loop(Prepared run, Trainer trainer) {
        return new TrainingLoop(config, folder, run, trainer, backend, callback).run();
    }

    private Streamed streamed(String identity) {
        return Streamed.of(folder.store(), allowed(), identity, callback::onWarning);
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

    /// Writes the model of a run that streams, as it is after its last step; returns the steps done.
    public long export(Path to) {
        if (!Streamed.exists(folder.store())) {
            throw new IngotException("export: " + folder.path() + " has no store of a streamed run in " + folder.store()
                    + "; a run in memory writes its model at every checkpoint");
        }
        try (RunLock _ = RunLock.take(folder.path());
                Trainee trainee = Trainee.of(config, callback);
                Lesson lesson = trainee.withoutData(folder)) {
            Streamed settings = streamed(StoreInspection.inspect(folder.store()).identity());
            Recipe recipe = lesson.recipe(config.train().anyRecipe());
            try (Trainer trainer = Trainer.streamed(lesson.task(), recipe, backend, backend.background(), settings)) {
                trainer.flush();
                Files.createDirectories(to);
                lesson.save(to, trainer.store());
                if (!Files.exists(to.resolve("tokenizer.json")) && Files.exists(folder.tokenizer())) {
                    Files.copy(folder.tokenizer(), to.resolve("tokenizer.json"));
                }
                return trainer.step();
            }
        } catch (IOException e) {
            throw new IngotException("export: cannot write to " + to + ": " + e.getMessage(), e);
        }
    }

    /// The program of one training step; needs no data.
    public static Program program(RunConfig config, Gpt model) {
        return Compiler.training(Trainer.spec(
                CorpusTrainee.task(config, model, null), config.train().anyRecipe()));
    }

    /// How a run would stream with a budget; needs no data.
    public static StreamPlan plan(RunConfig config, Gpt model, Backend backend, MemoryBudget budget) {
        try (CorpusTrainee trainee = CorpusTrainee.open(config)) {
            return Streamed.plan(
                    CorpusTrainee.task(config, model, trainee.base()),
                    config.train().anyRecipe(),
                    backend,
                    Streamed.of(RunFolder.of(config).path(), budget, "", warning -> {}));
        }
    }

    /// The model of a run. Its weights are called as in its base, if it has one.
    public static Gpt model(RunConfig config, int vocabulary) {
        try (CorpusTrainee trainee = CorpusTrainee.open(config)) {
            return trainee.model(vocabulary);
        }
    }
}
