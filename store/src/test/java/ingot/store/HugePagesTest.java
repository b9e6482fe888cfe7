package ingot.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class HugePagesTest {
    @ParameterizedTest
    @ValueSource(longs = {1, 4096, (2 << 20) - 1, 2 << 20, (5 << 20) + 4100})
    void zerosUntilTheArenaIsClosed(long bytes) {
        MemorySegment memory;
        try (Arena arena = Arena.ofShared()) {
            memory = HugePages.allocate(arena, bytes);
            assertThat(memory.byteSize()).isEqualTo(bytes);
            assertThat(memory.address() % Storage.BLOCK).isZero();
            assertThat(memory.mismatch(arena.allocate(bytes))).isEqualTo(-1);
            memory.fill((byte) 7);
            assertThat(memory.get(ValueLayout.JAVA_BYTE, bytes - 1)).isEqualTo((byte) 7);
        }
        assertThatThrownBy(() -> memory.get(ValueLayout.JAVA_BYTE, 0)).isInstanceOf(IllegalStateException.class);
    }
}
