package ingot.train;

import ingot.data.Batches;
import ingot.data.Sequences;
import ingot.ir.IngotException;
import ingot.nn.Gpt;
import ingot.nn.GptConfig;
import ingot.runtime.Executor;
import ingot.store.BaseWeights;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// What the configuration of a run says it is made of: base, model, task and recipe.
final class RunSetup {
    private RunSetup() {}

    /// The weights that the model begins with; null if the seed decides them.
    static @Nullable BaseWeights base(RunConfig config) {
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

    /// The model. Its weights are called as in its base, if it has one.
    static Gpt model(RunConfig config, int vocabulary, @Nullable BaseWeights base) {
        GptConfig sizes = config.model().gpt(vocabulary);
        return base != null && base.types().containsKey("wte.weight") ? new Gpt(sizes, "") : Gpt.of(sizes);
    }

    /// Next-token prediction over packed sequences.
    static Task task(RunConfig config, Gpt model, @Nullable BaseWeights base, Sequences training, Batches batches) {
        return task(
                config, model, base, training.length(), (step, executor) -> fill(training, batches, step, executor));
    }

    /// The same without data: what it computes, but nothing to compute it of.
    static Task task(RunConfig config, Gpt model, @Nullable BaseWeights base) {
        return task(config, model, base, config.model().context(), (step, executor) -> 0);
    }

    private static Task task(RunConfig config, Gpt model, @Nullable BaseWeights base, int length, Task.Feed feed) {
        GptConfig sizes = model.config();
        boolean dropout = sizes.embeddingDropout() > 0 || sizes.attentionDropout() > 0 || sizes.residualDropout() > 0;
        return new Task(
                        model.parameters(),
                        batch -> model.lossGraph(batch, length, dropout),
                        Set.of("tokens", "targets"),
                        dropout,
                        feed)
                .startingAt(Start.of(model.parameters(), base, config.train().freeze()));
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

    /// The recipe where nobody knows how many steps an epoch has.
    static Recipe recipe(RunConfig config) {
        RunConfig.TrainConfig train = config.train();
        return train.recipe(Math.max(1, Math.max(train.steps(), train.warmup())));
    }
}
