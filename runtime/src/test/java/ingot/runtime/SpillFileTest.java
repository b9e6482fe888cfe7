package ingot.runtime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SpillFileTest {
    private static final long BYTES = 3 << 20;

    @TempDir
    Path folder;

    @Test
    void whatWasWrittenComesBack() {
        try (Arena arena = Arena.ofShared();
                SpillFile file = SpillFile.create(folder.resolve("spill"), 4 * BYTES)) {
            for (int i = 0; i < 4; i++) {
                MemorySegment memory = arena.allocate(BYTES, 4096);
                memory.fill((byte) (i + 1));
                file.write(i * BYTES, memory);
            }
            for (int i = 0; i < 4; i++) {
                file.await(i * BYTES);
            }
            MemorySegment back = arena.allocate(BYTES, 4096);
            file.read(2 * BYTES, back);
            file.await(2 * BYTES);
            assertThat(back.toArray(java.lang.foreign.ValueLayout.JAVA_BYTE)).containsOnly(3);
            assertThat(file.bytesWritten()).isEqualTo(4 * BYTES);
            assertThat(file.bytesRead()).isEqualTo(BYTES);
        }
        assertThat(folder).isEmptyDirectory();
    }

    @Test
    void oneTransferPerPositionAtATime() {
        try (Arena arena = Arena.ofShared();
                SpillFile file = SpillFile.create(folder.resolve("spill"), BYTES)) {
            MemorySegment memory = arena.allocate(BYTES, 4096);
            file.write(0, memory);
            assertThatThrownBy(() -> file.read(0, memory)).hasMessageContaining("byte 0 is under way already");
            file.drop();
            assertThatThrownBy(() -> file.await(0)).hasMessageContaining("no transfer at byte 0");
        }
    }

    @Test
    void aReadBehindTheEndIsToldWhereItsResultIsNeeded() {
        try (Arena arena = Arena.ofShared();
                SpillFile file = SpillFile.create(folder.resolve("spill"), BYTES)) {
            file.read(4 * BYTES, arena.allocate(4096, 4096));
            assertThatThrownBy(() -> file.await(4 * BYTES))
                    .isInstanceOf(ingot.ir.IngotException.class)
                    .hasMessageContaining("cannot read activations at byte " + 4 * BYTES)
                    .hasMessageContaining("the file ends there");
        }
    }
}
