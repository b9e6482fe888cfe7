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

class RamStoreTest extends WeightStoreContract {
    @Override
    WeightStore open(List<StoredTensor> tensors) {
        RamStore store = new RamStore();
        for (StoredTensor tensor : tensors) {
            store.create(Key.weight(tensor.name()), tensor.type());
            store.create(Key.gradient(tensor.name()), tensor.type());
            store.create(new Key(tensor.name(), "m"), tensor.type());
        }
        return store;
    }

    @Override
    void update(WeightStore store, StoredTensor tensor, float[] weight, float[] moment) {
        put(store, Key.weight(tensor.name()), weight);
        put(store, new Key(tensor.name(), "m"), moment);
        put(store, Key.gradient(tensor.name()), new float[weight.length]);
    }

    private static void put(WeightStore store, Key key, float[] values) {
        MemorySegment.copy(values, 0, store.pin(key), ValueLayout.JAVA_FLOAT, 0, values.length);
        store.release(key, true);
    }

    @Test
    void countsItsBytes() {
        try (RamStore store = new RamStore()) {
            store.create(Key.weight("w"), Type.f32(1000));
            store.create(Key.gradient("w"), Type.f32(1000));
            assertThat(store.residentBytes()).isEqualTo(8000);
        }
    }

    @Test
    void refusesTheSameKeyTwice() {
        try (RamStore store = new RamStore()) {
            store.create(Key.weight("w"), Type.f32(4));
            assertThatThrownBy(() -> store.create(Key.weight("w"), Type.f32(5)))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("w:weight exists already as f32[4]");
        }
    }
}
