package ingot.store;

import ingot.ir.IngotException;
import java.util.BitSet;
import java.util.List;

/// Which extents are free, and which wait for the next commit to become free.
///
/// Free extents are used in the order in which they became free: what an older superblock refers to is overwritten as
/// late as possible. Not safe for use by several threads: the store's lock guards it.
final class Extents {
    private final List<Geometry.SizeClass> classes;
    private final Ring[] free;
    private final Ring[] dead; // unused by the newest rows, used by those of the newest commit
    private final int[] busy; // being written

    Extents(Geometry geometry) {
        classes = geometry.classes();
        free = new Ring[classes.size()];
        dead = new Ring[classes.size()];
        busy = new int[classes.size()];
        for (int c = 0; c < free.length; c++) {
            free[c] = new Ring(classes.get(c).count());
            dead[c] = new Ring(classes.get(c).count());
        }
    }

    /// All extents but those of the table are free. Refuses a table that names an extent twice, or none of its class.
    static Extents of(Geometry geometry, RowTable table, String where) {
        Extents extents = new Extents(geometry);
        BitSet[] used = new BitSet[extents.classes.size()];
        for (int c = 0; c < used.length; c++) {
            used[c] = new BitSet(extents.classes.get(c).count());
        }
        for (int row = 0; row < table.rows(); row++) {
            int sizeClass = geometry.sizeClass(row);
            for (int part = 0; part < table.parts(); part++) {
                long block = table.block(row, part);
                boolean onDisk = table.generationOf(row, part) != RowTable.NONE;
                if (onDisk != (block != RowTable.NOWHERE)) {
                    throw wrong(geometry, row, part, where, onDisk ? "has no extent" : "has an extent too many");
                }
                if (block != RowTable.NOWHERE) {
                    int index = extents.index(sizeClass, block);
                    if (index < 0 || used[sizeClass].get(index)) {
                        throw wrong(
                                geometry,
                                row,
                                part,
                                where,
                                index < 0 ? "lies outside of its extents" : "shares an extent with another row");
                    }
                    used[sizeClass].set(index);
                }
            }
        }
        for (int c = 0; c < used.length; c++) {
            Geometry.SizeClass sizeClass = extents.classes.get(c);
            for (int i = used[c].nextClearBit(0); i < sizeClass.count(); i = used[c].nextClearBit(i + 1)) {
                extents.free[c].add((sizeClass.offset() + (long) i * sizeClass.extentBytes()) / Blocks.SIZE);
            }
        }
        return extents;
    }

    private static IngotException wrong(Geometry geometry, int row, int part, String where, String what) {
        return new IngotException("store: the index of " + where + " is wrong: " + geometry.name(row) + " "
                + geometry.layout().part(part) + " " + what);
    }

    private int index(int sizeClass, long block) {
        Geometry.SizeClass c = classes.get(sizeClass);
        long from = block * Blocks.SIZE - c.offset();
        boolean inside = from >= 0 && from < c.bytes() && from % c.extentBytes() == 0;
        return inside ? (int) (from / c.extentBytes()) : -1;
    }

    /// Takes an extent for each of `blocks`, all or none.
    boolean take(int sizeClass, long[] blocks) {
        if (free[sizeClass].size() < blocks.length) {
            return false;
        }
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = free[sizeClass].remove();
        }
        busy[sizeClass] += blocks.length;
        return true;
    }

    /// Counts that the writes to so many taken extents are over.
    void written(int sizeClass, int count) {
        busy[sizeClass] -= count;
    }

    /// Gives up an extent that the newest commit may still use.
    void drop(int sizeClass, long block) {
        dead[sizeClass].add(block);
    }

    /// True when a commit should make room: half of the slack is used up, or somebody waits and nothing else will help.
    boolean wantsCommit(int sizeClass, boolean waited) {
        int slack = classes.get(sizeClass).slack();
        int gone = dead[sizeClass].size();
        if (waited) {
            return gone > 0 && (busy[sizeClass] == 0 || gone >= slack / 4);
        }
        return free[sizeClass].size() < slack / 2 && gone >= slack / 4 && gone > 0;
    }

    /// How many dead extents each class has now: what a commit that begins now makes free.
    int[] dead() {
        int[] counts = new int[dead.length];
        for (int c = 0; c < counts.length; c++) {
            counts[c] = dead[c].size();
        }
        return counts;
    }

    /// Makes the oldest dead extents free, as many of each class as `counts` says; those in use by a reader wait
    /// longer.
    void release(int[] counts, java.util.function.LongPredicate inUse) {
        for (int c = 0; c < counts.length; c++) {
            for (int i = 0; i < counts[c]; i++) {
                long block = dead[c].remove();
                (inUse.test(block) ? dead[c] : free[c]).add(block);
            }
        }
    }

    int free(int sizeClass) {
        return free[sizeClass].size();
    }

    /// Bytes of memory it takes.
    long bytes() {
        return classes.stream().mapToLong(c -> 2L * Long.BYTES * c.count()).sum();
    }

    /// A queue of blocks with room for all of a class.
    private static final class Ring {
        private final long[] items;
        private int head;
        private int size;

        Ring(int capacity) {
            items = new long[capacity];
        }

        int size() {
            return size;
        }

        void add(long item) {
            int tail = head + size;
            items[tail < items.length ? tail : tail - items.length] = item;
            size++;
        }

        long remove() {
            long item = items[head];
            head = head + 1 < items.length ? head + 1 : 0;
            size--;
            return item;
        }
    }
}
