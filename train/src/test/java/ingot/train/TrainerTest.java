package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.compiler.Backend;
import ingot.ir.IngotException;
import ingot.ir.Tensor;
import ingot.store.RamStore;
import ingot.store.WeightStore;
import ingot.store.WeightStore.Key;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The loop, on toys.
class TrainerTest {
    private static final Optimizer ADAMW = Optimizer.AdamW.DEFAULT;

    private final Backend backend = Backends.tested();

    private record Run(List<Float> losses, String digest) {}

    private Run run(Task task, Recipe recipe, int steps) {
        try (RamStore store = new RamStore();
                Trainer trainer = new Trainer(task, recipe, backend, store)) {
            List<Float> losses = new ArrayList<>();
            String chain = Digest.EMPTY;
            for (int i = 0; i < steps; i++) {
                float loss = trainer.next().loss();
                losses.add(loss);
                chain = Digest.append(chain, loss);
            }
            trainer.flush();
            return new Run(losses, Digest.of(store, chain));
        }
    }

    @Test
    void learnsWhichIsLargest() {
        Recipe recipe = Recipe.of(ADAMW, Schedule.constant(0.02, 0), 32);
        List<Float> losses = run(Toys.largest(32), recipe, 120).losses();
        assertThat(losses.getFirst()).isGreaterThan(0.9f);
        assertThat(losses.getLast()).isLessThan(0.3f);
    }

    /// The tree over the shards is fixed, so how many of them are computed at a time shows in no bit.
    @ParameterizedTest
    @CsvSource({"1, 0", "2, 1", "4, 2", "5, 2", "7, 1", "7, 4", "8, 4"})
    void microBatchesShowInNoBit(int batch, int microBatch) {
        Recipe whole = Recipe.of(ADAMW, Schedule.constant(0.01, 0), batch).withClip(1);
        Task task = Toys.letters(batch, 6, 0);
        assertThat(run(task, whole.withMicroBatch(microBatch), 3)).isEqualTo(run(task, whole, 3));
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 4})
    void shardsOfSeveralRows(int shard) {
        Recipe whole = Recipe.of(ADAMW, Schedule.constant(0.01, 0), 8).withShard(shard);
        Task task = Toys.letters(8, 6, 0);
        assertThat(run(task, whole.withMicroBatch(shard), 3)).isEqualTo(run(task, whole, 3));
    }

    @Test
    void dropoutAndRecomputationShowInNoBit() {
        Recipe recipe = Recipe.of(ADAMW, Schedule.constant(0.01, 0), 4);
        Task task = Toys.letters(4, 6, 0.2);
        Run whole = run(task, recipe, 3);
        assertThat(run(task, recipe.withMicroBatch(1), 3)).isEqualTo(whole);
        assertThat(run(task, recipe.withRecompute(true), 3)).isEqualTo(whole);
        assertThat(run(task, recipe.withSeed(2), 3)).isNotEqualTo(whole);
        assertThat(run(Toys.letters(4, 6, 0), recipe, 3)).isNotEqualTo(whole);
    }

    /// Plain descent moves the weights by rate · scale · gradient: the whole move has the norm rate · clip.
    @Test
    void clippingLimitsTheGlobalNorm() {
        double clip = 0.125;
        Recipe recipe =
                Recipe.of(new Optimizer.Sgd(0, 0), Schedule.constant(1, 0), 8).withClip(clip);
        try (RamStore store = new RamStore();
                Trainer trainer = new Trainer(Toys.largest(8), recipe, backend, store)) {
            List<float[]> before = weights(store);
            float norm = trainer.next().norm();
            List<float[]> gradients = arrays(store, Key.GRADIENT);
            assertThat(norm).isGreaterThan((float) clip);
            assertThat(norm).isCloseTo((float) norm(gradients), org.assertj.core.api.Assertions.within(1e-6f));
            trainer.flush();
            List<float[]> after = weights(store);
            float scale = (float) clip / (norm + 1e-6f);
            for (int i = 0; i < before.size(); i++) {
                for (int j = 0; j < before.get(i).length; j++) {
                    assertThat(after.get(i)[j])
                            .isEqualTo(before.get(i)[j] - 1f * (gradients.get(i)[j] * scale));
                }
            }
        }
    }

    @Test
    void smallGradientsAreNotClipped() {
        Recipe recipe = Recipe.of(ADAMW, Schedule.constant(0.01, 0), 4);
        Task task = Toys.largest(4);
        assertThat(run(task, recipe.withClip(1e6), 3)).isEqualTo(run(task, recipe, 3));
    }

    @Test
    void lossThatIsNotFiniteNamesStepAndTensor() {
        Recipe recipe = Recipe.of(new Optimizer.Sgd(0, 0), Schedule.constant(1e30, 0), 4);
        try (RamStore store = new RamStore();
                Trainer trainer = new Trainer(Toys.letters(4, 6, 0), recipe, backend, store)) {
            trainer.next();
            assertThatThrownBy(() -> {
                        trainer.next();
                        trainer.next();
                    })
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("step 1: the loss is NaN")
                    .hasMessageContaining("the first value that is not finite: ")
                    .hasMessageContaining("learning-rate");
            assertThat(trainer.step()).isEqualTo(1);
        }
    }

    @Test
    void microBatchesThatWouldChangeTheSumAreRefused() {
        Recipe recipe = Recipe.of(ADAMW, Schedule.constant(0.01, 0), 8).withMicroBatch(3);
        assertThatThrownBy(() -> run(Toys.largest(8), recipe, 1))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("micro-batch 3");
    }

    private static List<float[]> weights(WeightStore store) {
        return arrays(store, Key.WEIGHT);
    }

    private static List<float[]> arrays(WeightStore store, String part) {
        List<float[]> all = new ArrayList<>();
        for (Key key : store.keys()) {
            if (key.part().equals(part)) {
                all.add(Tensor.over(store.type(key), store.pin(key)).toFloats());
                store.release(key, false);
            }
        }
        return all;
    }

    private static double norm(List<float[]> arrays) {
        double sum = 0;
        for (float[] array : arrays) {
            for (float value : array) {
                sum += (double) value * value;
            }
        }
        return Math.sqrt(sum);
    }
}
