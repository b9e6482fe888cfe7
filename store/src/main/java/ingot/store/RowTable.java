package ingot.store;

/// What the index knows, in memory: per row its generations, per part of it the block where it lies and its checksum.
///
/// Not safe for use by several threads: the store's lock guards it.
final class RowTable {
    /// The block of a part that is not on disk.
    static final long NOWHERE = 0;

    /// The gradient generation of a row without one.
    static final long NONE = 0;

    private final int parts;
    private final int rowsPerPage;
    private final long[] generation;
    private final long[] gradientGeneration;
    private final long[] block; // [rows, parts] in units of 4 KiB from the start of the file
    private final int[] crc; // [rows, parts]

    RowTable(Geometry geometry) {
        parts = geometry.layout().stateParts() + 1;
        rowsPerPage = Geometry.rowsPerPage(geometry.layout());
        generation = new long[geometry.rows()];
        gradientGeneration = new long[geometry.rows()];
        block = new long[Math.multiplyExact(geometry.rows(), parts)];
        crc = new int[block.length];
    }

    int parts() {
        return parts;
    }

    int rows() {
        return generation.length;
    }

    int firstRow(int page) {
        return page * rowsPerPage;
    }

    int endRow(int page) {
        return Math.min(rows(), (page + 1) * rowsPerPage);
    }

    long generation(int row) {
        return generation[row];
    }

    void generation(int row, long value) {
        generation[row] = value;
    }

    long gradientGeneration(int row) {
        return gradientGeneration[row];
    }

    void gradientGeneration(int row, long value) {
        gradientGeneration[row] = value;
    }

    long block(int row, int part) {
        return block[row * parts + part];
    }

    int crc(int row, int part) {
        return crc[row * parts + part];
    }

    void part(int row, int part, long newBlock, int newCrc) {
        block[row * parts + part] = newBlock;
        crc[row * parts + part] = newCrc;
    }

    /// The generation a part belongs to.
    long generationOf(int row, int part) {
        return part == parts - 1 ? gradientGeneration[row] : generation[row];
    }

    /// Bytes of memory it takes.
    long bytes() {
        return 16L * generation.length + 12L * block.length;
    }
}
