package ingot.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.IngotException;
import ingot.ir.Type;
import ingot.store.WeightStore.Key;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.Test;

/// What every weight store does, wherever its tensors lie.
abstract class WeightStoreContract {
    private static final StoredTensor W = new StoredTensor("w", Type.f32(3000));
    private static final StoredTensor B = new StoredTensor("b", Type.f32(3, 5));

    /// A new store of zeros: for every tensor weight, gradient and the moment `m`.
    abstract WeightStore open(List<StoredTensor> tensors);

    /// Gives a tensor a new weight and moment by the store's own means; the gradient is gone.
    abstract void update(WeightStore store, StoredTensor tensor, float[] weight, float[] moment);

    @Test
    void startsWithZeros() {
        try (WeightStore store = open(List.of(W, B))) {
            for (Key key : store.keys()) {
                MemorySegment data = store.pin(key);
                assertThat(data.byteSize()).isEqualTo(store.type(key).bytes());
                assertThat(data.address() % 64).isZero();
                assertThat(data.toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
                store.release(key, false);
            }
        }
    }

    @Test
    void keepsWhatChanged() {
        try (WeightStore store = open(List.of(B, W))) {
            float[] weight = new float[3000];
            float[] moment = new float[3000];
            for (int i = 0; i < weight.length; i++) {
                weight[i] = i;
                moment[i] = -i;
            }
            update(store, W, weight, moment);
            store.commit();
            store.prefetch(List.of(new Key("w", "m"), Key.weight("w"), Key.weight("b")));
            assertThat(floats(store, Key.weight("w"))).containsExactly(weight);
            assertThat(floats(store, new Key("w", "m"))).containsExactly(moment);
            assertThat(floats(store, Key.gradient("w"))).containsOnly(0);
            assertThat(floats(store, Key.weight("b"))).containsOnly(0);
        }
    }

    @Test
    void showsTheNewestAfterAnEarlyPrefetch() {
        try (WeightStore store = open(List.of(B))) {
            store.prefetch(List.of(Key.weight("b")));
            float[] weight = new float[15];
            weight[14] = 7;
            update(store, B, weight, new float[15]);
            assertThat(floats(store, Key.weight("b"))).containsExactly(weight);
        }
    }

    private static float[] floats(WeightStore store, Key key) {
        float[] values = store.pin(key).toArray(ValueLayout.JAVA_FLOAT);
        store.release(key, false);
        return values;
    }

    @Test
    void nestedPinsSeeTheSameMemory() {
        try (WeightStore store = open(List.of(W, B))) {
            MemorySegment first = store.pin(Key.gradient("w"));
            MemorySegment other = store.pin(Key.gradient("b"));
            MemorySegment second = store.pin(Key.gradient("w"));
            assertThat(second.address()).isEqualTo(first.address());
            store.release(Key.gradient("w"), false);
            assertThat(other.asOverlappingSlice(first)).isEmpty();
            store.release(Key.gradient("b"), false);
            store.release(Key.gradient("w"), false);
        }
    }

    @Test
    void listsKeysInTheOrderOfTheTensors() {
        StoredTensor empty = new StoredTensor("a", Type.f32(0));
        try (WeightStore store = open(List.of(B, empty))) {
            assertThat(store.keys())
                    .containsExactly(
                            Key.weight("b"),
                            Key.gradient("b"),
                            new Key("b", "m"),
                            Key.weight("a"),
                            Key.gradient("a"),
                            new Key("a", "m"));
            assertThat(store.type(Key.weight("a"))).isEqualTo(Type.f32(0));
            assertThat(store.pin(Key.weight("a")).byteSize()).isZero();
            store.release(Key.weight("a"), false);
            assertThat(store.residentBytes()).isPositive();
        }
    }

    @Test
    void refusesMisuse() {
        try (WeightStore store = open(List.of(B))) {
            assertThatThrownBy(() -> store.pin(Key.gradient("w")))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("no tensor w:gradient");
            assertThatThrownBy(() -> store.type(new Key("b", "v")))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("no tensor b:v");
            assertThatThrownBy(() -> store.prefetch(List.of(Key.weight("b"), Key.weight("c"))))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("no tensor c:weight");
            store.pin(Key.weight("b"));
            store.release(Key.weight("b"), false);
            assertThatThrownBy(() -> store.release(Key.weight("b"), false))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("released more often than pinned");
        }
    }
}
