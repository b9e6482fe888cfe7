package ingot.store;

import ingot.ir.IngotException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/// The root of one commit: which commit it is, the checksum of its index, and the caller's note.
///
///      0  8 bytes  "INGOTSB" and 0
///      8  u32  CRC-32C of bytes 16 to the end of the note
///     12  u32  bytes of the note
///     16  u64  id of the store
///     24  u64  sequence; commit n uses superblock n mod 2 and index n mod 2
///     32  u32  CRC-32C over the checksums of all pages of its index, u32 each
///     36  u32  flags: 1 = written without checksums
///     40  u64  milliseconds since 1970-01-01 UTC
///     48  note, UTF-8
record Superblock(long store, long sequence, int indexCrc, boolean unchecked, long time, String note) {
    static final int NOTE_START = 48;
    static final int MAX_NOTE = 60 << 10;

    private static final long MAGIC = 0x0042_5354_4f47_4e49L; // "INGOTSB\0"

    Superblock {
        checkNote(note);
    }

    static void checkNote(String note) {
        int bytes = note.getBytes(StandardCharsets.UTF_8).length;
        if (bytes > MAX_NOTE) {
            throw new IngotException("store: a note of " + bytes + " bytes, at most " + MAX_NOTE + " fit");
        }
    }

    int slot() {
        return (int) (sequence & 1);
    }

    /// Writes the blocks to the front of `slot`; their bytes.
    int encode(MemorySegment slot) {
        byte[] text = note.getBytes(StandardCharsets.UTF_8);
        int bytes = (int) Storage.roundUp(NOTE_START + text.length);
        slot.asSlice(0, bytes).fill((byte) 0);
        slot.set(LittleEndian.LONG, 0, MAGIC);
        slot.set(LittleEndian.INT, 12, text.length);
        slot.set(LittleEndian.LONG, 16, store);
        slot.set(LittleEndian.LONG, 24, sequence);
        slot.set(LittleEndian.INT, 32, indexCrc);
        slot.set(LittleEndian.INT, 36, unchecked ? 1 : 0);
        slot.set(LittleEndian.LONG, 40, time);
        MemorySegment.copy(MemorySegment.ofArray(text), 0, slot, NOTE_START, text.length);
        slot.set(LittleEndian.INT, 8, checksum(slot, text.length));
        return bytes;
    }

    /// The superblock in a slot, or null where it is damaged.
    static @Nullable Superblock decode(MemorySegment slot, int number, long store) {
        int note = slot.get(LittleEndian.INT, 12);
        if (slot.get(LittleEndian.LONG, 0) != MAGIC
                || note < 0
                || note > MAX_NOTE
                || slot.get(LittleEndian.INT, 8) != checksum(slot, note)
                || slot.get(LittleEndian.LONG, 16) != store
                || (slot.get(LittleEndian.LONG, 24) & 1) != number) {
            return null;
        }
        return new Superblock(
                store,
                slot.get(LittleEndian.LONG, 24),
                slot.get(LittleEndian.INT, 32),
                (slot.get(LittleEndian.INT, 36) & 1) != 0,
                slot.get(LittleEndian.LONG, 40),
                new String(slot.asSlice(NOTE_START, note).toArray(ValueLayout.JAVA_BYTE), StandardCharsets.UTF_8));
    }

    private static int checksum(MemorySegment slot, int note) {
        CRC32C crc = new CRC32C();
        crc.update(slot.asSlice(16, NOTE_START - 16 + note).asByteBuffer());
        return (int) crc.getValue();
    }
}
