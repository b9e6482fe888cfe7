package ingot.store;

import java.lang.foreign.MemorySegment;
import java.util.zip.CRC32C;

/// One 4 KiB page of the index: the rows of `docs/store-format.md`, with their checksum.
///
///      0  u32  CRC-32C of bytes 4 to 4095
///      4  u32  number of the page
///      8  u64  id of the store
///     16  u64  sequence of the commit that wrote it
///     24  u64  0
///     32  rows: u64 generation, u64 gradient generation, per part (weight, moments, gradient): u64 block, u32 CRC-32C, u32 0
final class IndexPage {
    static final int HEADER = 32;

    private static final int ROW = 16;
    private static final int PART = 16;

    private IndexPage() {}

    static int rowBytes(StoreLayout layout) {
        return ROW + PART * (layout.stateParts() + 1);
    }

    /// Writes a page; its checksum.
    static int encode(RowTable table, int page, long store, long sequence, MemorySegment into) {
        into.fill((byte) 0);
        into.set(LittleEndian.INT, 4, page);
        into.set(LittleEndian.LONG, 8, store);
        into.set(LittleEndian.LONG, 16, sequence);
        long at = HEADER;
        for (int row = table.firstRow(page); row < table.endRow(page); row++) {
            into.set(LittleEndian.LONG, at, table.generation(row));
            into.set(LittleEndian.LONG, at + 8, table.gradientGeneration(row));
            at += ROW;
            for (int part = 0; part < table.parts(); part++, at += PART) {
                into.set(LittleEndian.LONG, at, table.block(row, part));
                into.set(LittleEndian.INT, at + 8, table.crc(row, part));
            }
        }
        int crc = checksum(into);
        into.set(LittleEndian.INT, 0, crc);
        return crc;
    }

    /// What is wrong with a page, or an empty text.
    static String check(MemorySegment page, int number, long store) {
        if (page.get(LittleEndian.INT, 0) != checksum(page)) {
            return "its checksum does not match";
        }
        if (page.get(LittleEndian.LONG, 8) != store) {
            return "it belongs to another store";
        }
        return page.get(LittleEndian.INT, 4) == number
                ? ""
                : "page " + page.get(LittleEndian.INT, 4) + " lies in its place";
    }

    /// The commit that wrote a page.
    static long sequence(MemorySegment page) {
        return page.get(LittleEndian.LONG, 16);
    }

    static void decode(MemorySegment page, int number, RowTable into) {
        long at = HEADER;
        for (int row = into.firstRow(number); row < into.endRow(number); row++) {
            into.generation(row, page.get(LittleEndian.LONG, at));
            into.gradientGeneration(row, page.get(LittleEndian.LONG, at + 8));
            at += ROW;
            for (int part = 0; part < into.parts(); part++, at += PART) {
                into.part(row, part, page.get(LittleEndian.LONG, at), page.get(LittleEndian.INT, at + 8));
            }
        }
    }

    static int checksum(MemorySegment page) {
        CRC32C crc = new CRC32C();
        crc.update(page.asSlice(4, Blocks.SIZE - 4).asByteBuffer());
        return (int) crc.getValue();
    }
}
