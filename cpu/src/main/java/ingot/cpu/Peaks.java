package ingot.cpu;

import java.lang.foreign.Arena;

/// What this machine can do at most, measured in about a second: the yardstick of every speed we print.
///
/// @param fmaPerThread GFLOP/s of fp32 multiply-adds in registers, one thread
/// @param fma the same, all threads of the pool together
/// @param copy GB/s of a vector copy loop over memory far larger than the caches, all threads, bytes read + written
public record Peaks(double fmaPerThread, double fma, double copy) {
    /// Takes the results, which the JIT would otherwise find useless and leave out together with the work.
    static volatile float consumed;

    private static final int STEPS = 1 << 14;
    private static final int ROUNDS = 24;
    private static final long FMA_NANOS = 300_000_000; // a shared machine may be slow for some of them
    private static final long COPY_BYTES = 64L << 20;
    private static final int COPY_TILES = 256;

    public static Peaks measure(TilePool pool) {
        return new Peaks(fmaOfOneThread(), fmaOf(pool), copyOf(pool));
    }

    /// Measured once per process, in CPU time.
    static double fmaOfOneThread() {
        return Once.FMA;
    }

    private static final class Once {
        static final double FMA = bestFma();
    }

    private static double bestFma() {
        var math = RowMath.best();
        double best = 0;
        for (int round = 0; round < ROUNDS; round++) {
            long start = CpuClock.now();
            for (int i = 0; i < 16; i++) {
                consumed = math.fmas(STEPS);
            }
            best = Math.max(best, 16 * math.flopsPerFmas(STEPS) / Math.max(1, CpuClock.now() - start));
        }
        return best;
    }

    private static double fmaOf(TilePool pool) {
        var math = RowMath.best();
        int tiles = 8 * pool.threads();
        double best = 0;
        long end = System.nanoTime() + FMA_NANOS;
        while (System.nanoTime() < end) {
            long start = System.nanoTime();
            pool.run(tiles, (tile, worker) -> consumed = math.fmas(STEPS));
            best = Math.max(best, tiles * math.flopsPerFmas(STEPS) / (System.nanoTime() - start));
        }
        return best;
    }

    private static double copyOf(TilePool pool) {
        var math = RowMath.best();
        try (var arena = Arena.ofConfined()) {
            long from = arena.allocate(COPY_BYTES, 64).address();
            long to = arena.allocate(COPY_BYTES, 64).address();
            long part = COPY_BYTES / COPY_TILES;
            double best = 0;
            for (int round = 0; round < 10; round++) {
                long start = System.nanoTime();
                pool.run(
                        COPY_TILES,
                        (tile, worker) -> math.copy(from + tile * part, to + tile * part, (int) (part / 4)));
                best = Math.max(best, 2.0 * COPY_BYTES / (System.nanoTime() - start));
            }
            return best;
        }
    }
}
