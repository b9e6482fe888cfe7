package ingot.cpu;

import ingot.cpu.Tiling.Packing;

/// The default [Tiling] of a shape: good without measuring anything.
final class Tilings {
    private Tilings() {}

    static Tiling of(MatmulShape s, int threads) {
        int lanes = Simd.LANES;
        int rows;
        int vectors;
        switch (lanes) {
            case 1 -> {
                rows = 4;
                vectors = 64;
            }
            case 16 -> {
                rows = 12;
                vectors = 2;
            }
            default -> {
                rows = 6;
                vectors = 2;
            }
        }
        int columns = lanes * vectors;
        // A panel of B fills about half of a 32 KiB L1 cache.
        int kBlock = Math.max(64, 4608 / columns);
        int nBlock = Math.ceilDiv(Math.min(s.n(), 384), columns) * columns;
        int mBlock = Math.ceilDiv(Math.min(s.m(), 96), rows) * rows;
        // Enough tasks for every thread to have a few.
        while (tasks(s, mBlock, nBlock) < 4L * threads && nBlock > 4 * columns) {
            nBlock = Math.ceilDiv(nBlock / 2, columns) * columns;
        }
        while (tasks(s, mBlock, nBlock) < 4L * threads && mBlock > 2 * rows) {
            mBlock = Math.ceilDiv(mBlock / 2, rows) * rows;
        }
        boolean reusedB = s.m() > mBlock || s.batches() > 1 && s.b().batch2() == 0;
        return new Tiling(
                rows, vectors, lanes, mBlock, nBlock, kBlock, Packing.OWN, reusedB ? Packing.SHARED : Packing.OWN);
    }

    private static long tasks(MatmulShape s, int mBlock, int nBlock) {
        return (long) s.batches() * Math.ceilDiv(s.m(), mBlock) * Math.ceilDiv(s.n(), nBlock);
    }
}
