package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.ir.Type;
import ingot.nn.Initializer;
import ingot.nn.Parameter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class UpdateRuleTest {
    private static final int ELEMENTS = 5 * 4096 + 37;

    static List<Optimizer> optimizers() {
        return List.of(
                new Optimizer.AdamW(0.9, 0.95, 1e-8, 0.1),
                new Optimizer.Adam(0.9, 0.999, 1e-6, 0.1),
                new Optimizer.Sgd(0.9, 0.1),
                new Optimizer.Sgd(0, 0),
                new Optimizer.Lion(0.9, 0.99, 0.1));
    }

    /// The weight, its moments and the gradient of one tensor.
    private record State(List<MemorySegment> arrays) {
        static State random(Arena arena, int moments) {
            Random random = new Random(5);
            List<MemorySegment> arrays = new ArrayList<>();
            for (int k = 0; k < moments + 2; k++) {
                MemorySegment array = arena.allocate(4L * ELEMENTS, 64);
                for (int i = 0; i < ELEMENTS; i++) {
                    // the second moment of Adam is never negative
                    float x = (float) Math.abs(random.nextGaussian());
                    array.setAtIndex(ValueLayout.JAVA_FLOAT, i, k == 0 || k > moments ? x - 0.7f : x);
                }
                arrays.add(array);
            }
            return new State(arrays);
        }

        void apply(UpdateRule rule, boolean decay, int chunk) {
            new Chunks(ELEMENTS, chunk).forEach((start, elements) -> {
                List<MemorySegment> parts = arrays.stream()
                        .map(array -> array.asSlice(4 * start, 4L * elements))
                        .toList();
                rule.apply(
                        elements, kind(decay), parts.getFirst(), parts.subList(1, parts.size() - 1), parts.getLast());
            });
        }

        void sameBits(State other) {
            for (int k = 0; k < arrays.size(); k++) {
                assertThat(arrays.get(k).mismatch(other.arrays.get(k)))
                        .as("array " + k)
                        .isEqualTo(-1);
            }
        }
    }

    private static UpdateRule rule(Optimizer optimizer, int chunk) {
        return new UpdateRule(optimizer, List.of(parameter(true)), chunk, Backends.tested());
    }

    private static Parameter.Rule kind(boolean decay) {
        return parameter(decay).rule();
    }

    private static Parameter parameter(boolean decay) {
        return new Parameter("p", Type.f32(ELEMENTS), new Initializer.Normal(1), decay);
    }

    @ParameterizedTest
    @MethodSource("optimizers")
    void chunksGiveTheBitsOfTheWhole(Optimizer optimizer) {
        for (boolean decay : new boolean[] {true, false}) {
            try (Arena arena = Arena.ofShared();
                    UpdateRule rule = rule(optimizer, ELEMENTS)) {
                State whole = State.random(arena, optimizer.moments().size());
                State untouched = State.random(arena, optimizer.moments().size());
                List<State> chunked = new ArrayList<>();
                List<Integer> sizes = List.of(4096, 3 * 4096, 16);
                sizes.forEach(
                        _ -> chunked.add(State.random(arena, optimizer.moments().size())));
                for (int step = 0; step < 3; step++) {
                    rule.scalars(step, 0.01, 0.5f);
                    whole.apply(rule, decay, ELEMENTS);
                    for (int i = 0; i < sizes.size(); i++) {
                        chunked.get(i).apply(rule, decay, sizes.get(i));
                    }
                }
                chunked.forEach(whole::sameBits);
                assertThat(whole.arrays().getFirst().mismatch(untouched.arrays().getFirst()))
                        .isNotEqualTo(-1);
            }
        }
    }

    /// As the streaming store does it: another thread, another backend, while this one is at work.
    @Test
    void anotherThreadWithItsOwnBackendGivesTheSameBits() {
        Optimizer optimizer = Optimizer.AdamW.DEFAULT;
        try (Arena arena = Arena.ofShared();
                TilePool alone = new TilePool(1);
                UpdateRule here = rule(optimizer, 4096);
                UpdateRule there = new UpdateRule(optimizer, List.of(parameter(true)), 4096, new CpuBackend(alone))) {
            State mine = State.random(arena, 2);
            State others = State.random(arena, 2);
            CompletableFuture<Void> other = CompletableFuture.runAsync(() -> steps(there, others));
            steps(here, mine);
            other.join();
            mine.sameBits(others);
        }
    }

    private static void steps(UpdateRule rule, State state) {
        for (int step = 0; step < 50; step++) {
            rule.scalars(step, 0.01, 1);
            state.apply(rule, true, 4096);
        }
    }

    @Test
    void memoryThatWouldBeOverrunIsRefused() {
        try (Arena arena = Arena.ofShared();
                UpdateRule rule = rule(new Optimizer.Sgd(0, 0), 4096)) {
            MemorySegment enough = arena.allocate(4 * 4096, 64);
            assertThatThrownBy(() -> rule.apply(4096, Parameter.Rule.DECAY, enough, List.of(), enough.asSlice(64)))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("gradient expected 4096 floats");
            assertThatThrownBy(() -> rule.apply(16, Parameter.Rule.DECAY, enough.asSlice(4), List.of(), enough))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("weight expected 16 floats at a multiple of 64 bytes");
            assertThatThrownBy(() -> rule.apply(16, Parameter.Rule.DECAY, enough, List.of(enough), enough))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("moments");
        }
    }
}
