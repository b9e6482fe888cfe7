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

/// What every weight store does.
abstract class WeightStoreContract {
    abstract WeightStore open();

    @Test
    void startsWithZeros() {
        try (WeightStore store = open()) {
            store.create(Key.weight("w"), Type.f32(3, 5));
            MemorySegment data = store.pin(Key.weight("w"));
            assertThat(data.byteSize()).isEqualTo(60);
            assertThat(data.address() % 64).isZero();
            assertThat(data.toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
            store.release(Key.weight("w"), false);
        }
    }

    @Test
    void keepsWhatChanged() {
        try (WeightStore store = open()) {
            store.create(Key.weight("w"), Type.f32(1000));
            store.create(new Key("w", "m"), Type.f32(1000));
            MemorySegment data = store.pin(Key.weight("w"));
            for (int i = 0; i < 1000; i++) {
                data.setAtIndex(ValueLayout.JAVA_FLOAT, i, i);
            }
            store.release(Key.weight("w"), true);
            store.commit();
            store.prefetch(List.of(new Key("w", "m"), Key.weight("w")));
            MemorySegment again = store.pin(Key.weight("w"));
            assertThat(again.getAtIndex(ValueLayout.JAVA_FLOAT, 999)).isEqualTo(999f);
            assertThat(store.pin(new Key("w", "m")).getAtIndex(ValueLayout.JAVA_FLOAT, 999))
                    .isZero();
            store.release(new Key("w", "m"), false);
            store.release(Key.weight("w"), false);
        }
    }

    @Test
    void nestedPinsSeeTheSameMemory() {
        try (WeightStore store = open()) {
            store.create(Key.gradient("w"), Type.f32(4));
            MemorySegment first = store.pin(Key.gradient("w"));
            MemorySegment second = store.pin(Key.gradient("w"));
            assertThat(second.address()).isEqualTo(first.address());
            store.release(Key.gradient("w"), true);
            store.release(Key.gradient("w"), false);
        }
    }

    @Test
    void listsKeysInOrderOfCreation() {
        try (WeightStore store = open()) {
            store.create(Key.weight("b"), Type.f32(1));
            store.create(Key.weight("a"), Type.f32(0));
            store.create(Key.gradient("b"), Type.f32(1));
            assertThat(store.keys()).containsExactly(Key.weight("b"), Key.weight("a"), Key.gradient("b"));
            assertThat(store.type(Key.weight("a"))).isEqualTo(Type.f32(0));
        }
    }

    @Test
    void refusesMisuse() {
        try (WeightStore store = open()) {
            store.create(Key.weight("w"), Type.f32(4));
            assertThatThrownBy(() -> store.create(Key.weight("w"), Type.f32(5)))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("w:weight exists already as f32[4]");
            assertThatThrownBy(() -> store.pin(Key.gradient("w")))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("no tensor w:gradient");
            assertThatThrownBy(() -> store.release(Key.weight("w"), false))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("released more often than pinned");
        }
    }
}
