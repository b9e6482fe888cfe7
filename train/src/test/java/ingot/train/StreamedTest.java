package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.compiler.Backend;
import ingot.compiler.Program;
import ingot.ir.DType;
import ingot.ir.IngotException;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.nn.Parameter;
import ingot.runtime.Visit;
import ingot.store.BaseWeights;
import ingot.store.RamStore;
import ingot.store.Safetensors;
import ingot.store.WeightStore.Key;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Training with the state on disk is training: the same bits at any budget, stopped or not.
class StreamedTest {
    private static final int CHUNK = 4096;
    private static final int STEPS = 5;
    private static final Optimizer ADAMW = Optimizer.AdamW.DEFAULT;

    private final Backend backend = Backends.tested();
    private int plans;

    @TempDir
    Path folder;

    private static Recipe recipe() {
        return Recipe.of(ADAMW, Schedule.cosine(0.01, 2, STEPS, 0), 4).withClip(1);
    }

    private record Run(List<Float> losses, String digest) {}

    private Run inMemory(Task task, Recipe recipe) {
        try (RamStore store = new RamStore();
                Trainer trainer = new Trainer(task, recipe, backend, store)) {
            return finish(trainer, new ArrayList<>());
        }
    }

    private static Run finish(Trainer trainer, List<Float> losses) {
        while (trainer.step() < STEPS) {
            losses.add(trainer.next().loss());
        }
        trainer.flush();
        return new Run(losses, Digest.of(trainer.store(), trainer.losses()));
    }

    private Streamed settings(String name, long bytes) {
        return new Streamed(folder.resolve(name), MemoryBudget.offHeap(bytes), "toy: 1\n", CHUNK, true, warning -> {});
    }

    private Trainer open(String name, long bytes, Task task, Recipe recipe) {
        return Trainer.streamed(task, recipe, backend, Backends.background(), settings(name, bytes));
    }

    private long least(Task task, Recipe recipe) {
        // with less memory the program is another one, which needs still less
        long least = Long.MAX_VALUE;
        for (long bytes = 1L << 30; bytes < least; ) {
            least = bytes;
            bytes = plan("plan" + plans++, bytes, task, recipe).leastBytes();
        }
        return least;
    }

    private StreamPlan plan(String name, long bytes, Task task, Recipe recipe) {
        try (Trainer trainer = open(name, bytes, task, recipe)) {
            StreamPlan plan = trainer.streamPlan();
            assertThat(plan).isNotNull();
            return plan;
        }
    }

    @ParameterizedTest
    @CsvSource({"0, false", "1, false", "2, true", "4, true"})
    void anyBudgetHasTheBitsOfMemory(int microBatch, boolean recompute) {
        Task task = Toys.letters(4, 6, 0.1);
        Recipe recipe = recipe().withMicroBatch(microBatch).withRecompute(recompute);
        Run expected = inMemory(task, recipe());
        long least = least(task, recipe);
        long all = plan("all", 1L << 30, task, recipe).totalBytes();
        for (long bytes : new long[] {least, least + (all - least) / 5, least + (all - least) / 2, all, 2 * all}) {
            try (Trainer trainer = open("b" + bytes, bytes, task, recipe)) {
                assertThat(finish(trainer, new ArrayList<>()))
                        .describedAs("%d bytes", bytes)
                        .isEqualTo(expected);
            }
        }
    }

    /// A vocabulary that is larger than the window.
    @ParameterizedTest
    @CsvSource({"0, false", "1, true"})
    void weightsLargerThanTheWindowComeInTiles(int microBatch, boolean recompute) {
        Task task = Toys.words(1000, 4, 6);
        Recipe recipe = recipe().withMicroBatch(microBatch).withRecompute(recompute);
        long least = least(task, recipe);
        try (Trainer trainer = open("tiles", least, task, recipe)) {
            StreamPlan plan = trainer.streamPlan();
            assertThat(plan).isNotNull();
            assertThat(plan.program().tiles()).isNotEmpty();
            assertThat(plan.window().bytes()).isLessThan(4L * 1000 * 32);
            assertThat(finish(trainer, new ArrayList<>())).isEqualTo(inMemory(task, recipe()));
        }
    }

    @Test
    void everyOptimizerStreams() {
        for (Optimizer optimizer : List.of(
                new Optimizer.Sgd(0, 0.1),
                new Optimizer.Sgd(0.9, 0),
                new Optimizer.Adam(0.9, 0.999, 1e-8, 0),
                new Optimizer.Lion(0.9, 0.99, 0.1))) {
            Recipe recipe = Recipe.of(optimizer, Schedule.constant(0.01, 0), 4);
            Task task = Toys.letters(4, 6, 0);
            try (Trainer trainer = open("o" + optimizer, least(task, recipe), task, recipe)) {
                assertThat(finish(trainer, new ArrayList<>())).isEqualTo(inMemory(task, recipe));
            }
        }
    }

    @Test
    void closedAfterAnyStepItContinues() {
        Task task = Toys.letters(4, 6, 0.1);
        Run expected = inMemory(task, recipe());
        long least = least(task, recipe());
        List<Float> losses = new ArrayList<>();
        for (int step = 0; step < STEPS; step++) {
            try (Trainer trainer = open("stopped", least * (1 + step % 2), task, recipe())) {
                assertThat(trainer.step()).isEqualTo(step);
                losses.add(trainer.next().loss());
                if (step % 2 == 1) {
                    trainer.flush();
                }
            }
        }
        try (Trainer trainer = open("stopped", least, task, recipe())) {
            assertThat(finish(trainer, losses)).isEqualTo(expected);
        }
    }

    @Test
    void refusesTooSmallABudgetAndSaysWhatWouldDo() {
        Task task = Toys.letters(4, 6, 0);
        long least = least(task, recipe());
        assertThatThrownBy(() -> open("small", least - 1, task, recipe()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("needs at least " + Math.ceilDiv(least, 1L << 20) + " MiB");
        assertThat(folder.resolve("small")).doesNotExist();
    }

    @Test
    void refusesTheStoreOfAnotherRun() {
        Task task = Toys.letters(4, 6, 0);
        open("run", 1L << 30, task, recipe()).close();
        Streamed other = new Streamed(
                folder.resolve("run"), MemoryBudget.offHeap(1L << 30), "toy: 2\n", CHUNK, true, warning -> {});
        assertThatThrownBy(() -> Trainer.streamed(task, recipe(), backend, Backends.background(), other))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("'toy: 1', expected 'toy: 2'");
    }

    /// The letters as somebody else left them after some steps, in a file.
    private Path base() {
        Path file = folder.resolve("base.safetensors");
        try (RamStore store = new RamStore();
                Trainer trainer = new Trainer(Toys.letters(4, 6, 0), recipe().withSeed(5), backend, store)) {
            finish(trainer, new ArrayList<>());
            SequencedMap<String, Tensor> weights = new LinkedHashMap<>();
            for (Key key : store.keys()) {
                if (key.part().equals(Key.WEIGHT)) {
                    weights.put(key.tensor(), Tensor.over(store.type(key), store.pin(key)));
                }
            }
            Safetensors.write(file, Map.of(), weights);
        }
        return file;
    }

    private static Task on(BaseWeights base, Task task, String... patterns) {
        return task.startingAt(Start.of(task.parameters(), base, List.of(patterns)));
    }

    @ParameterizedTest
    @CsvSource({"h.*, 0, false", "h.0.*, 1, true", "wte.*, 2, false", "*.attn.*, 2, true", "none, 0, false"})
    void frozenWeightsStreamedHaveTheBitsOfMemoryAndStay(String pattern, int microBatch, boolean recompute) {
        try (BaseWeights base = BaseWeights.open(base())) {
            Task letters = Toys.letters(4, 6, 0.1);
            Task task = pattern.equals("none") ? on(base, letters) : on(base, letters, pattern);
            Recipe recipe = recipe().withMicroBatch(microBatch).withRecompute(recompute);
            Run expected = inMemory(task, recipe());
            long least = least(task, recipe);
            for (long bytes : new long[] {least, least + (1 << 16), 1L << 30}) {
                try (Trainer trainer = open("b" + bytes, bytes, task, recipe)) {
                    assertThat(finish(trainer, new ArrayList<>())).isEqualTo(expected);
                    assertUnchanged(base, task, trainer);
                }
            }
            try (RamStore store = new RamStore();
                    Trainer trainer = new Trainer(task, recipe, backend, store)) {
                assertThat(finish(trainer, new ArrayList<>())).isEqualTo(expected);
                assertUnchanged(base, task, trainer);
                assertThat(store.keys())
                        .noneMatch(key -> task.start().frozen().contains(key.tensor())
                                && !key.part().equals(Key.WEIGHT));
            }
        }
    }

    private static void assertUnchanged(BaseWeights base, Task task, Trainer trainer) {
        for (Parameter parameter : task.parameters()) {
            Tensor before = Tensor.zeros(parameter.type());
            base.read(parameter.name(), 0, before.data());
            MemorySegment now = trainer.store().pin(Key.weight(parameter.name()));
            assertThat(now.mismatch(before.data()) < 0)
                    .describedAs(parameter.name())
                    .isEqualTo(task.start().frozen().contains(parameter.name()));
            trainer.store().release(Key.weight(parameter.name()), false);
        }
    }

    @Test
    void whatIsFrozenCostsNoRoomAndNoTraffic() {
        Task task = Toys.letters(4, 6, 0);
        Task frozen = task.startingAt(Start.of(task.parameters(), null, List.of("*", "!ln_f.*")));
        StreamPlan all = plan("all", 1L << 24, task, recipe());
        StreamPlan few = plan("few", 1L << 24, frozen, recipe());
        assertThat(few.layout().stateBytes()).isEqualTo(4 * 4 * 2 * 16);
        assertThat(few.program().memory().gradientBytes()).isEqualTo(4 * 2 * 16);
        assertThat(few.program().memory().activationBytes())
                .isLessThan(all.program().memory().activationBytes());
        assertThat(few.traffic().written()).isEqualTo(4 * 4 * 2 * 16);
        assertThat(Visit.of(few.program()).getLast().touches())
                .describedAs("a backward that nobody needs reads nothing")
                .noneMatch(touch -> touch.key().tensor().contains(".h."));
        assertThat(few.traffic().later(1).written()).isEqualTo(few.traffic().written());
    }

    @Test
    void whatIsFrozenIsReadAsItsFileHasIt() {
        Path half = folder.resolve("half.safetensors");
        Path whole = base();
        SequencedMap<String, Tensor> weights = new LinkedHashMap<>();
        try (Safetensors file = Safetensors.open(whole)) {
            file.tensors().forEach((name, type) -> {
                Tensor values = file.read(name);
                Tensor rounded = Tensor.zeros(new Type(DType.BF16, type.shape()));
                for (long i = 0; i < type.shape().elements(); i++) {
                    rounded.setFloat(i, values.getFloat(i));
                }
                weights.put(name, rounded);
            });
        }
        Safetensors.write(half, Map.of(), weights);
        try (BaseWeights f32 = BaseWeights.open(whole);
                BaseWeights bf16 = BaseWeights.open(half)) {
            Task task = on(f32, Toys.letters(4, 6, 0), "h.*");
            long least = least(task, recipe());
            StreamPlan plan = plan("f32", least, task, recipe());
            StreamPlan other = plan("bf16", least, on(bf16, Toys.letters(4, 6, 0), "h.*"), recipe());
            long elements = plan.window().stays().stream()
                    .map(stay -> plan.program().tile(stay.key().tensor()))
                    .filter(tile -> task.start().frozen().contains(tile.weight()))
                    .mapToLong(Program.Tile::elements)
                    .sum();
            assertThat(elements).isPositive();
            assertThat(plan.traffic().read() - other.traffic().read()).isEqualTo(2 * elements);
            assertThat(plan.traffic().written()).isEqualTo(other.traffic().written());
        }
    }

    /// The last byte of a file, which only a checksum notices.
    private static void flipLastByte(Path file) throws IOException {
        byte[] bytes = Files.readAllBytes(file);
        bytes[bytes.length - 1] ^= 1;
        Files.write(file, bytes);
    }

    @Test
    void refusesABaseThatHasChanged() throws IOException {
        Path file = base();
        try (BaseWeights base = BaseWeights.open(file)) {
            open("run", 1L << 30, on(base, Toys.letters(4, 6, 0), "ln_f.*"), recipe())
                    .close();
            try (Trainer trainer = open("run", 1L << 30, on(base, Toys.letters(4, 6, 0), "ln_f.*"), recipe())) {
                trainer.next();
            }
        }
        String last;
        try (Safetensors opened = Safetensors.open(file)) {
            last = opened.tensors().lastEntry().getKey();
        }
        flipLastByte(file);
        try (BaseWeights base = BaseWeights.open(file);
                Trainer trainer = open("run", 1L << 30, on(base, Toys.letters(4, 6, 0), "ln_f.*"), recipe())) {
            assertThatThrownBy(trainer::next)
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining(last + " chunk 0 has changed in " + file);
        }
    }
}
