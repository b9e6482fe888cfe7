package ingot.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FileStorageTest {
    private static final long BYTES = (9 << 20) + 4096;

    @TempDir
    Path folder;

    @Test
    void reservesByTheSystemOrByZeros() throws IOException {
        for (boolean zeros : new boolean[] {false, true}) {
            Path file = folder.resolve("file" + zeros);
            List<Long> progress = new ArrayList<>();
            try (FileStorage storage =
                            (FileStorage) Storage.Opener.files(_ -> {}).open(file, true);
                    Arena arena = Arena.ofConfined()) {
                if (zeros) {
                    storage.fill(BYTES, progress::add);
                } else {
                    storage.allocate(BYTES, progress::add);
                }
                assertThat(progress).isSorted().endsWith(BYTES);
                assertThat(storage.size()).isEqualTo(BYTES);
                MemorySegment block = arena.allocate(4096, 4096).fill((byte) 3);
                Blocks.write(storage, BYTES - 4096, block);
                storage.flush();
                Blocks.read(storage, BYTES - 8192, block);
                assertThat(block.toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
                Blocks.read(storage, BYTES - 4096, block);
                assertThat(block.toArray(ValueLayout.JAVA_BYTE)).containsOnly(3);
                assertThatThrownBy(() -> Blocks.read(storage, BYTES, block))
                        .isInstanceOf(IOException.class)
                        .hasMessageContaining("ends before byte " + (BYTES + 4096));
            }
            assertThat(Files.size(file)).isEqualTo(BYTES);
        }
    }

    @Test
    void saysHowMuchIsFree() throws IOException {
        Storage.Opener opener = Storage.Opener.files(_ -> {});
        assertThat(opener.freeBytes(folder)).isPositive();
        assertThat(opener.exists(folder.resolve("none"))).isFalse();
        assertThatThrownBy(() -> opener.open(folder.resolve("none"), false)).isInstanceOf(IOException.class);
    }
}
