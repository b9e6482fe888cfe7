package ingot.store;

import java.util.Arrays;
import java.util.List;

/// Where everything lies in the file of a store: a pure function of its layout, its slack and the size of its header.
///
///     header │ superblock 0 │ superblock 1 │ index 0 │ index 1 │ extents of class 0 │ class 1 │ …
///
/// An extent holds one part of one row. Its class is its size: the row's payload rounded up so that few sizes exist.
final class Geometry {
    static final int SUPERBLOCK_SLOT = 64 << 10;

    /// Extents of one size: `count` of them, one behind the other from byte `offset` on.
    record SizeClass(int extentBytes, int count, int slack, long offset) {
        long bytes() {
            return (long) extentBytes * count;
        }
    }

    private final StoreLayout layout;
    private final int headerBytes;
    private final int[] firstRow; // [tensors + 1]
    private final byte[] classOfRow;
    private final int pages;
    private final List<SizeClass> classes;
    private final long fileBytes;

    /// How many extents of which size there are: recorded in the header.
    record Extent(int bytes, int count, int slack) {}

    Geometry(StoreLayout layout, int headerBytes, List<Extent> extents) {
        this.layout = layout;
        this.headerBytes = headerBytes;
        firstRow = new int[layout.tensors().size() + 1];
        for (int t = 0; t < layout.tensors().size(); t++) {
            firstRow[t + 1] = Math.addExact(firstRow[t], layout.chunks(t));
        }
        pages = Math.ceilDiv(rows(), rowsPerPage(layout));
        long at = indexPosition(2);
        SizeClass[] made = new SizeClass[extents.size()];
        for (int i = 0; i < made.length; i++) {
            Extent extent = extents.get(i);
            made[i] = new SizeClass(extent.bytes(), extent.count(), extent.slack(), at);
            at += made[i].bytes();
        }
        classes = List.of(made);
        fileBytes = at;
        classOfRow = new byte[rows()];
        int[] sizes = extents.stream().mapToInt(Extent::bytes).toArray();
        for (int t = 0; t < layout.tensors().size(); t++) {
            for (int c = 0; c < layout.chunks(t) && !layout.frozen(t); c++) {
                int found = Arrays.binarySearch(sizes, extentBytes(layout, t, c));
                if (found < 0) {
                    throw new IllegalArgumentException(layout.row(t, c) + " has no extents of its size");
                }
                classOfRow[row(t, c)] = (byte) found;
            }
        }
    }

    /// The extents a new store needs, in ascending size: one per part of every row, and slack for what is written
    /// before the old is free.
    static List<Extent> extents(StoreLayout layout, long slackBytes) {
        var rows = new java.util.TreeMap<Integer, Integer>();
        for (int t = 0; t < layout.tensors().size(); t++) {
            int chunks = layout.frozen(t) ? 0 : layout.chunks(t);
            if (chunks > 1) {
                rows.merge(extentBytes(layout, t, 0), chunks - 1, Integer::sum);
            }
            if (chunks > 0) {
                rows.merge(extentBytes(layout, t, chunks - 1), 1, Integer::sum);
            }
        }
        int parts = layout.stateParts() + 1;
        double total = 0;
        for (var entry : rows.entrySet()) {
            total += (double) entry.getKey() * entry.getValue();
        }
        double share = total == 0 ? 0 : slackBytes / total;
        return rows.entrySet().stream()
                .map(entry -> {
                    int slack = Math.max(2 * parts, (int) Math.ceil(entry.getValue() * share));
                    int count = Math.addExact(Math.multiplyExact(entry.getValue(), parts), slack);
                    return new Extent(entry.getKey(), count, slack);
                })
                .toList();
    }

    /// Payload rounded up to 4 KiB, and above 32 KiB to an eighth of the power of two below it.
    private static int extentBytes(StoreLayout layout, int tensor, int chunk) {
        int full = layout.chunkElements() * Float.BYTES;
        int blocks = (int) Storage.roundUp((long) layout.elements(tensor, chunk) * Float.BYTES);
        int step = Math.max(Blocks.SIZE, Integer.highestOneBit(blocks - 1) / 8);
        return Math.min(full, Math.ceilDiv(blocks, step) * step);
    }

    static int rowsPerPage(StoreLayout layout) {
        return (Blocks.SIZE - IndexPage.HEADER) / IndexPage.rowBytes(layout);
    }

    StoreLayout layout() {
        return layout;
    }

    int rows() {
        return firstRow[firstRow.length - 1];
    }

    int row(int tensor, int chunk) {
        if (chunk < 0 || chunk >= firstRow[tensor + 1] - firstRow[tensor]) {
            throw new IllegalArgumentException(layout.tensors().get(tensor).name() + " has "
                    + (firstRow[tensor + 1] - firstRow[tensor]) + " chunks, no chunk " + chunk);
        }
        return firstRow[tensor] + chunk;
    }

    int tensor(int row) {
        int found = Arrays.binarySearch(firstRow, row);
        if (found < 0) {
            return -found - 2;
        }
        while (firstRow[found + 1] == row) {
            found++; // tensors without elements have no rows
        }
        return found;
    }

    int chunk(int row) {
        return row - firstRow[tensor(row)];
    }

    /// `wte chunk 3`
    String name(int row) {
        return layout.row(tensor(row), chunk(row));
    }

    int payloadBytes(int row) {
        int tensor = tensor(row);
        return layout.elements(tensor, row - firstRow[tensor]) * Float.BYTES;
    }

    int sizeClass(int row) {
        return classOfRow[row];
    }

    List<SizeClass> classes() {
        return classes;
    }

    int headerBytes() {
        return headerBytes;
    }

    int pages() {
        return pages;
    }

    int page(int row) {
        return row / rowsPerPage(layout);
    }

    long superblockPosition(int slot) {
        return headerBytes + (long) slot * SUPERBLOCK_SLOT;
    }

    long indexPosition(int copy) {
        return superblockPosition(2) + (long) copy * pages * Blocks.SIZE;
    }

    long pagePosition(int copy, int page) {
        return indexPosition(copy) + (long) page * Blocks.SIZE;
    }

    long fileBytes() {
        return fileBytes;
    }
}
