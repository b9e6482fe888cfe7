package ingot.cpu;

import java.lang.foreign.Arena;
import java.util.concurrent.locks.LockSupport;

/// Scalar code until [VectorRows] is hot, which happens in the background from the first use on.
final class WarmingRows implements RowMath {
    static final RowMath ONE = new WarmingRows();

    private static final int K = 64;
    private static final int N = 256;
    private static final int CALLS = 20;
    private static final long REST = 500_000_000; // work that is over by then needs no vectors
    private static final long PATIENCE = 5_000_000_000L;

    private final RowMath vectors = RowMath.best();
    private final RowMath scalars = new ScalarRows();
    private volatile RowMath now = scalars;

    private WarmingRows() {
        Background.later(this::warm, REST);
    }

    /// Until one round of all that a product calls is faster by vectors.
    private void warm() {
        try (Arena arena = Arena.ofConfined()) {
            long a = arena.allocate(4L * K * N, 64).address();
            long b = arena.allocate(4L * K * N, 64).address();
            long end = System.nanoTime() + PATIENCE;
            long best = Long.MAX_VALUE;
            while (System.nanoTime() < end) {
                best = Math.min(best, time(scalars, a, b));
                if (time(vectors, a, b) < best) {
                    now = vectors;
                    return;
                }
                LockSupport.parkNanos(1_000_000); // leaves the core to the compiler
            }
        }
    }

    private static long time(RowMath math, long a, long b) {
        long start = CpuClock.now();
        for (int i = 0; i < CALLS; i++) {
            math.rank(a, b, 4, b, 4L * N, K, N);
            math.dots(a, b, 4, b, 4L * K, K, N);
            math.pack(b, 4L * N, a, 16, K);
            math.packTransposed(b, 4L * K, a, 16, K);
            math.add(a, b, N);
            math.add(a, 1f, N);
            math.copy(b, a, N);
        }
        return CpuClock.now() - start;
    }

    @Override
    public void copy(long from, long to, int n) {
        now.copy(from, to, n);
    }

    @Override
    public void add(long c, long x, int n) {
        now.add(c, x, n);
    }

    @Override
    public void add(long c, float x, int n) {
        now.add(c, x, n);
    }

    @Override
    public void rank(long acc, long a, long aStep, long b, long bStep, int k, int n) {
        now.rank(acc, a, aStep, b, bStep, k, n);
    }

    @Override
    public void pack(long from, long step, long to, int width, int k) {
        now.pack(from, step, to, width, k);
    }

    @Override
    public void packTransposed(long from, long step, long to, int width, int k) {
        now.packTransposed(from, step, to, width, k);
    }

    @Override
    public void windows(
            long to,
            long weights,
            long[] kernel,
            long x,
            long[] windows,
            long step,
            int first,
            int k,
            int n,
            long end) {
        now.windows(to, weights, kernel, x, windows, step, first, k, n, end);
    }

    @Override
    public void packPieces(
            long from,
            long[] rows,
            int first,
            int k,
            int[] starts,
            int[] lengths,
            long[] pieces,
            long to,
            int width,
            long end) {
        now.packPieces(from, rows, first, k, starts, lengths, pieces, to, width, end);
    }

    @Override
    public void dots(long acc, long a, long aStep, long b, long bRow, int k, int n) {
        now.dots(acc, a, aStep, b, bRow, k, n);
    }

    @Override
    public float fmas(int steps) {
        return now.fmas(steps);
    }

    @Override
    public double flopsPerFmas(int steps) {
        return now.flopsPerFmas(steps);
    }
}
