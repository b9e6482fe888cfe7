package ingot.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/// Damages the store of a run: `docs/store-format.md` says where what lies.
final class StoreFiles {
    private static final int HEADER_BYTES_AT = 32;
    private static final int SUPERBLOCK = 64 << 10;
    private static final int BLOCK = 4096;

    private StoreFiles() {}

    static Path state(Path run) {
        return run.resolve("store").resolve("state.ingot");
    }

    /// Flips a bit of one of the superblocks.
    static void flipSuperblock(Path run, int slot) throws IOException {
        byte[] bytes = Files.readAllBytes(state(run));
        int header = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).getInt(HEADER_BYTES_AT);
        flip(run, header + slot * SUPERBLOCK + 20);
    }

    /// Flips a bit of a weight: of the first extent that begins like something in the finished model.
    static void flipWeight(Path run) throws IOException {
        byte[] bytes = Files.readAllBytes(state(run));
        String model = latin(Files.readAllBytes(run.resolve("model.safetensors")));
        for (int at = 0; at < bytes.length; at += BLOCK) {
            String begin = latin(bytes).substring(at, at + 32);
            if (begin.chars().distinct().count() > 8 && model.contains(begin)) {
                flip(run, at + 5);
                return;
            }
        }
        assertThat(run).as("has a store with the weights of its model").isNull();
    }

    private static String latin(byte[] bytes) {
        return new String(bytes, StandardCharsets.ISO_8859_1);
    }

    private static void flip(Path run, long at) throws IOException {
        try (FileChannel file = FileChannel.open(state(run), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            ByteBuffer one = ByteBuffer.allocate(1);
            assertThat(file.read(one, at)).isEqualTo(1);
            file.write(ByteBuffer.wrap(new byte[] {(byte) (one.get(0) ^ 4)}), at);
        }
    }
}
