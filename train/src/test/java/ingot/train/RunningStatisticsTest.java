package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.compiler.Backend;
import ingot.formats.HuggingFace;
import ingot.ir.IngotException;
import ingot.ir.Tensor;
import ingot.nn.ImageClassifier;
import ingot.nn.MobileNet;
import ingot.nn.Parameter;
import ingot.nn.ResNet;
import ingot.store.RamStore;
import ingot.store.WeightStore;
import ingot.store.WeightStore.Key;
import ingot.testkit.Reference;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Running statistics are part of the state: they follow the batches, and survive what weights survive.
class RunningStatisticsTest {
    private static final int BATCH = 4;
    private static final int STEPS = 4;
    private static final ResNet MODEL = ResNet.small(8, 1, 4, 1, 3);

    private final Backend backend = Backends.tested();

    @TempDir
    Path folder;

    private static Recipe recipe() {
        return Recipe.of(Optimizer.AdamW.DEFAULT, Schedule.constant(0.01, 0), BATCH)
                .withClip(0.1);
    }

    private static Task task(ImageClassifier model, Set<String> frozen) {
        int pixels = model.channels() * model.imageSize() * model.imageSize();
        return new Task(
                        model.weights(),
                        rows -> model.lossGraph(rows, false, frozen),
                        Set.of("pixels", "targets"),
                        false,
                        (step, executor) -> {
                            Random random = new Random(step);
                            for (int row = 0; row < BATCH; row++) {
                                int label = random.nextInt(model.labels());
                                for (int i = 0; i < pixels; i++) {
                                    executor.input("pixels")
                                            .setAtIndex(
                                                    ValueLayout.JAVA_FLOAT,
                                                    (long) row * pixels + i,
                                                    label + random.nextFloat());
                                }
                                executor.input("targets").setAtIndex(ValueLayout.JAVA_INT, row, label);
                            }
                            executor.input("scale").set(ValueLayout.JAVA_FLOAT, 0, 1f / BATCH);
                            return BATCH;
                        })
                .startingAt(new Start(null, frozen));
    }

    private static String finish(Trainer trainer) {
        while (trainer.step() < STEPS) {
            trainer.next();
        }
        trainer.flush();
        return Digest.of(trainer.store(), trainer.losses());
    }

    private String inMemory() {
        try (RamStore store = new RamStore();
                Trainer trainer = new Trainer(task(MODEL, Set.of()), recipe(), backend, store)) {
            return finish(trainer);
        }
    }

    private Trainer streamed(long bytes) {
        Streamed settings = new Streamed(
                folder.resolve("store"), MemoryBudget.offHeap(bytes), "statistics: 1\n", 4096, true, warning -> {});
        return Trainer.streamed(task(MODEL, Set.of()), recipe(), backend, Backends.background(), settings);
    }

    /// What PyTorch has after one pass in train mode; clipping changes nothing about it.
    @Test
    void afterAStepTheyAreThoseOfPyTorch() {
        Path reference = Reference.orSkip("resnet-small-train");
        Map<String, Tensor> expected = new ReferenceCase(reference).tensors("expected.safetensors");
        try (HuggingFace files = HuggingFace.open(reference);
                RamStore store = new RamStore()) {
            ImageClassifier model = files.imageClassifier();
            Task task = new Task(
                    model.weights(),
                    rows -> model.lossGraph(rows, false),
                    Set.of("pixels", "targets"),
                    false,
                    (step, executor) -> {
                        MemorySegment.copy(
                                expected.get("pixel_values").data(),
                                0,
                                executor.input("pixels"),
                                0,
                                executor.input("pixels").byteSize());
                        int[] labels = expected.get("labels").toInts();
                        MemorySegment.copy(labels, 0, executor.input("targets"), ValueLayout.JAVA_INT, 0, BATCH);
                        executor.input("scale").set(ValueLayout.JAVA_FLOAT, 0, 1f / BATCH);
                        return BATCH;
                    });
            try (Trainer trainer = new Trainer(task, recipe(), backend, store)) {
                for (Parameter parameter : model.weights()) {
                    files.weights().read(parameter.name(), store.pin(Key.weight(parameter.name())));
                    store.release(Key.weight(parameter.name()), true);
                }
                trainer.next();
                trainer.flush();
                for (Parameter statistic : model.statistics()) {
                    float[] after = weight(store, statistic.name());
                    float[] theirs = expected.get("after." + statistic.name()).toFloats();
                    for (int i = 0; i < after.length; i++) {
                        assertThat(after[i]).as(statistic.name()).isCloseTo(theirs[i], within(theirs[i]));
                    }
                }
            }
        }
    }

    /// A rounding or two.
    private static org.assertj.core.data.Offset<Float> within(float value) {
        return org.assertj.core.api.Assertions.within(2e-6f * Math.max(1, Math.abs(value)));
    }

    @Test
    void streamedAndStoppedAfterEveryStepTheyHaveTheBitsOfMemory() {
        String expected = inMemory();
        long least = Long.MAX_VALUE;
        try (Trainer trainer = streamed(1L << 28)) {
            least = trainer.streamPlan().leastBytes();
        }
        for (int step = 0; step < STEPS; step++) {
            try (Trainer trainer = streamed(least + step * 4096L)) {
                assertThat(trainer.step()).isEqualTo(step);
                trainer.next();
                if (step % 2 == 1) {
                    trainer.flush();
                }
            }
        }
        try (Trainer trainer = streamed(1L << 28)) {
            assertThat(finish(trainer)).isEqualTo(expected);
            assertThat(weight(trainer.store(), "bn1.running_mean")).doesNotContain(0f);
        }
    }

    @Test
    void fromACheckpointTheRunGoesOn() {
        String expected = inMemory();
        try (RamStore store = new RamStore();
                Trainer trainer = new Trainer(task(MODEL, Set.of()), recipe(), backend, store)) {
            trainer.next();
            trainer.next();
            trainer.flush();
            Checkpoint.State state =
                    Checkpoint.State.of(trainer.step(), Map.of(), Map.of(), trainer.losses(), store, Set.of());
            Checkpoint.save(folder, state, store);
        }
        try (RamStore store = new RamStore();
                Trainer trainer = new Trainer(task(MODEL, Set.of()), recipe(), backend, store)) {
            Checkpoint.State state = Checkpoint.load(folder, store, warning -> {});
            trainer.continueAt(state.step(), state.losses());
            assertThat(finish(trainer)).isEqualTo(expected);
        }
    }

    /// A pretrained network whose norms stay: batches of any division give the same bits.
    @Test
    void frozenOnesAreUsedAndStay() {
        MobileNet model = new MobileNet(0.1, 16, 1, 3, 1e-5, 0.1, 0, 0.05);
        Set<String> statistics =
                model.statistics().stream().map(Parameter::name).collect(Collectors.toSet());
        Map<String, float[]> found = new HashMap<>();
        for (int rows : List.of(4, 1)) {
            try (RamStore store = new RamStore();
                    Trainer trainer =
                            new Trainer(task(model, statistics), recipe().withMicroBatch(rows), backend, store)) {
                trainer.next();
                trainer.flush();
                assertThat(weight(store, "features.0.1.running_mean")).containsOnly(0f);
                for (String name : List.of("features.0.0.weight", "classifier.1.weight")) {
                    float[] weight = weight(store, name);
                    assertThat(weight).isEqualTo(found.computeIfAbsent(name, _ -> weight));
                }
            }
        }
    }

    @Test
    void partsOfABatchAreRefused() {
        assertThatThrownBy(
                        () -> new Trainer(task(MODEL, Set.of()), recipe().withMicroBatch(2), backend, new RamStore()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("bn1")
                .hasMessageContaining("couples the rows of a batch")
                .hasMessageContaining("train.micro-batch = batch");
    }

    @Test
    void halfANormCannotBeFrozen() {
        assertThatThrownBy(() -> MODEL.lossGraph(2, false, Set.of("bn1.running_var")))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("bn1.running_mean and .running_var one is frozen");
    }

    private static float[] weight(WeightStore store, String name) {
        float[] values = store.pin(Key.weight(name)).toArray(ValueLayout.JAVA_FLOAT);
        store.release(Key.weight(name), false);
        return values;
    }
}
