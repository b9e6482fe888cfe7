package ingot.cpu;

/// A matmul with very few rows, such as one token against a weight matrix: nothing is packed, B streams through once,
/// row by row, and a chunk of the result stays in L1.
final class RowMatmul {
    private static final int CHUNK = 1024;

    private final MatmulShape shape;
    private final Epilogue epilogue;
    private final boolean biasAlongRows;
    private final RowMath math = RowMath.best();

    RowMatmul(MatmulShape shape, Epilogue epilogue, boolean biasAlongRows) {
        this.shape = shape;
        this.epilogue = epilogue;
        this.biasAlongRows = biasAlongRows;
    }

    static boolean fits(MatmulShape s) {
        return s.m() <= 3 && s.segments() == 1 && s.b().column() == 1 && s.n() >= 64;
    }

    long scratchBytes(int workers) {
        return workers * workerBytes() + 64;
    }

    private long workerBytes() {
        return 4L * CHUNK * shape.m();
    }

    void run(TilePool pool, long a, long b, long c, long bias, long scratch) {
        int chunks = Math.ceilDiv(shape.n(), CHUNK);
        long base = Math.ceilDiv(scratch, 64L) * 64;
        pool.run(
                Math.multiplyExact(chunks, shape.batches()),
                (tile, worker) ->
                        chunk(a, b, c, bias, base + worker * workerBytes(), tile / chunks, tile % chunks * CHUNK));
    }

    private void chunk(long a, long b, long c, long bias, long own, int batch, int j0) {
        int columns = Math.min(CHUNK, shape.n() - j0);
        long aAt = a + BlockedMatmul.batchOffset(shape, shape.a(), batch);
        long bAt = b + BlockedMatmul.batchOffset(shape, shape.b(), batch) + 4L * j0;
        long cColumn = 4 * shape.c().column();
        long cAt = c + BlockedMatmul.batchOffset(shape, shape.c(), batch) + j0 * cColumn;
        for (int i = 0; i < shape.m(); i++) {
            long row = own + 4L * CHUNK * i;
            Memory.fill(row, 4L * columns, (byte) 0);
            math.rank(
                    row,
                    aAt + 4L * i * shape.a().row(),
                    4 * shape.a().column(),
                    bAt,
                    4 * shape.b().row(),
                    shape.k(),
                    columns);
        }
        epilogue.finish(
                math,
                own,
                4L * CHUNK,
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
