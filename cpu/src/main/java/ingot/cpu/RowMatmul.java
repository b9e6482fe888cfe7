package ingot.cpu;

/// A matmul with very few rows, such as one token against a weight matrix: nothing is packed and B streams through
/// once. Where B has contiguous columns it is read row by row and a chunk of the result stays in L1; where k is
/// contiguous eight dot products run side by side.
final class RowMatmul {
    private final MatmulShape shape;
    private final Epilogue epilogue;
    private final boolean continued; // the chains go on from what C holds
    private final boolean biasAlongRows;
    private final boolean dots;
    private final int chunk; // columns per task
    private final RowMath math;

    RowMatmul(
            MatmulShape shape, Epilogue epilogue, boolean continued, boolean biasAlongRows, int threads, RowMath math) {
        this.shape = shape;
        this.epilogue = epilogue;
        this.continued = continued;
        this.biasAlongRows = biasAlongRows;
        this.math = math;
        dots = shape.b().column() != 1;
        int share = Math.ceilDiv(shape.n(), Math.max(1, 4 * threads / shape.batches()));
        chunk = Math.clamp(Math.ceilDiv(share, 64) * 64, dots ? 64 : 256, 1024);
    }

    static boolean fits(MatmulShape s, boolean continued) {
        boolean streams = s.b().column() == 1 && s.n() >= 64;
        return s.m() <= 3 && s.segments() == 1 && (streams || s.b().row() == 1 && !continued);
    }

    long scratchBytes(int workers) {
        return workers * workerBytes() + 64;
    }

    private long workerBytes() {
        return 4L * chunk * shape.m();
    }

    void run(TilePool pool, long a, long b, long c, long bias, long scratch) {
        int chunks = Math.ceilDiv(shape.n(), chunk);
        long base = Math.ceilDiv(scratch, 64L) * 64;
        pool.run(
                Math.multiplyExact(chunks, shape.batches()),
                (tile, worker) ->
                        rows(a, b, c, bias, base + worker * workerBytes(), tile / chunks, tile % chunks * chunk));
    }

    private void rows(long a, long b, long c, long bias, long own, int batch, int j0) {
        int columns = Math.min(chunk, shape.n() - j0);
        long aAt = a + BlockedMatmul.batchOffset(shape, shape.a(), batch);
        long bRow = 4 * shape.b().row();
        long bColumn = 4 * shape.b().column();
        long bAt = b + BlockedMatmul.batchOffset(shape, shape.b(), batch) + j0 * bColumn;
        long cColumn = 4 * shape.c().column();
        long cAt = c + BlockedMatmul.batchOffset(shape, shape.c(), batch) + j0 * cColumn;
        for (int i = 0; i < shape.m(); i++) {
            long row = own + 4L * chunk * i;
            if (continued) {
                Epilogue.fetch(cAt + 4 * i * shape.c().row(), cColumn, row, columns);
            } else {
                Memory.fill(row, 4L * columns, (byte) 0);
            }
            long aRow = aAt + 4L * i * shape.a().row();
            long aColumn = 4 * shape.a().column();
            if (dots) {
                math.dots(row, aRow, aColumn, bAt, bColumn, shape.k(), columns);
            } else {
                math.rank(row, aRow, aColumn, bAt, bRow, shape.k(), columns);
            }
        }
        epilogue.finish(
                math,
                own,
                4L * chunk,
                shape.m(),
                columns,
                cAt,
                4 * shape.c().row(),
                cColumn,
                biasAlongRows ? bias : bias + 4L * j0,
                biasAlongRows ? 4 : 0,
                biasAlongRows ? 0 : 4);
    }
}
