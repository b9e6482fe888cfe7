package ingot.store;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A superblock with its index as they lie in the file; `damage` says what is wrong with them.
///
/// `overtaken`: the next commit has begun to write its own pages over this index, as it may. A crash leaves it so.
record Root(
        int slot,
        @Nullable Superblock superblock,
        RowTable table,
        int[] pageCrcs,
        List<String> damage,
        boolean overtaken) {
    private static final int BATCH_PAGES = 64;

    boolean usable() {
        return damage.isEmpty();
    }

    /// The superblock of a usable root.
    Superblock whole() {
        if (superblock == null) {
            throw new IllegalStateException("superblock " + slot + " is damaged");
        }
        return superblock;
    }

    boolean unchecked() {
        return whole().unchecked();
    }

    long sequence() {
        return superblock == null ? -1 : superblock.sequence();
    }

    static @Nullable Superblock superblock(Storage storage, Header header, Geometry geometry, int slot)
            throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment blocks = arena.allocate(Geometry.SUPERBLOCK_SLOT, Blocks.SIZE);
            Blocks.read(storage, geometry.superblockPosition(slot), blocks);
            return Superblock.decode(blocks, slot, header.store());
        }
    }

    /// Reads superblock and index.
    static Root read(Storage storage, Header header, Geometry geometry, int slot) throws IOException {
        Superblock superblock = superblock(storage, header, geometry, slot);
        RowTable table = new RowTable(geometry);
        int[] crcs = new int[geometry.pages()];
        List<String> damage = new ArrayList<>();
        boolean overtaken = false;
        if (superblock == null) {
            damage.add("superblock " + slot + " is damaged: a crash interrupted its write, or the disk changed it");
            return new Root(slot, null, table, crcs, damage, false);
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment batch = arena.allocate((long) BATCH_PAGES * Blocks.SIZE, Blocks.SIZE);
            for (int page = 0; page < crcs.length; page += BATCH_PAGES) {
                int count = Math.min(BATCH_PAGES, crcs.length - page);
                Blocks.read(storage, geometry.pagePosition(slot, page), batch.asSlice(0, (long) count * Blocks.SIZE));
                for (int i = 0; i < count; i++) {
                    MemorySegment one = batch.asSlice((long) i * Blocks.SIZE, Blocks.SIZE);
                    int number = page + i;
                    crcs[number] = one.get(LittleEndian.INT, 0);
                    String wrong = IndexPage.check(one, number, header.store());
                    if (wrong.isEmpty() && IndexPage.sequence(one) > superblock.sequence()) {
                        wrong = "commit " + IndexPage.sequence(one) + " has begun to replace it";
                        overtaken = true;
                    }
                    if (wrong.isEmpty()) {
                        IndexPage.decode(one, number, table);
                    } else {
                        damage.add("page " + number + " of index " + slot + " ("
                                + geometry.name(table.firstRow(number)) + " to "
                                + geometry.name(table.endRow(number) - 1) + ") is damaged: " + wrong);
                    }
                }
            }
        }
        if (damage.isEmpty() && Committer.crc(crcs) != superblock.indexCrc()) {
            damage.add("index " + slot + " is not the one of commit " + superblock.sequence()
                    + ": the disk lost the write of a page");
        }
        return new Root(slot, superblock, table, crcs, damage, overtaken);
    }
}
