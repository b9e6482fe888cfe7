package ingot.store;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.ir.Type;
import org.junit.jupiter.api.Test;

class RamStoreTest extends WeightStoreContract {
    @Override
    WeightStore open() {
        return new RamStore();
    }

    @Test
    void countsItsBytes() {
        try (WeightStore store = open()) {
            store.create(WeightStore.Key.weight("w"), Type.f32(1000));
            store.create(WeightStore.Key.gradient("w"), Type.f32(1000));
            assertThat(store.residentBytes()).isEqualTo(8000);
        }
    }
}
