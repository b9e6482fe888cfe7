package ingot.store;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.zip.CRC32C;

/// CRC-32C over what a payload claims to be and the payload itself: a chunk that lies where another belongs does not
/// match, nor does an older version of itself.
///
///     u64 id of the store, u32 tensor, u32 chunk, u32 part, u32 0, u64 generation, payload
///
/// The payload comes in pieces, in order.
final class Checksum {
    private static final int IDENTITY = 32;

    private final CRC32C crc = new CRC32C();

    Checksum(long store, int tensor, int chunk, int part, long generation) {
        crc.update(ByteBuffer.allocate(IDENTITY)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putLong(store)
                .putInt(tensor)
                .putInt(chunk)
                .putInt(part)
                .putInt(0)
                .putLong(generation)
                .flip());
    }

    void add(MemorySegment piece) {
        crc.update(piece.asByteBuffer());
    }

    int value() {
        return (int) crc.getValue();
    }

    static int of(long store, int tensor, int chunk, int part, long generation, MemorySegment payload) {
        Checksum checksum = new Checksum(store, tensor, chunk, part, generation);
        checksum.add(payload);
        return checksum.value();
    }
}
