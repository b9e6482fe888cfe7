package ingot.cpu;

import ingot.cpu.Tiling.Packing;
import java.util.ArrayList;
import java.util.List;

/// The [Tiling]s that suit a shape: a default that is good without measuring anything, and its alternatives.
final class Tilings {
    private static final int L1_FLOATS = 4608; // a panel of B: about half of a 32 KiB cache

    private static final int READY_ROWS = 24;
    private static final int READY_PANELS = 96;

    private Tilings() {}

    static Tiling of(MatmulShape s, int threads) {
        int lanes = Simd.LANES;
        int rows = switch (lanes) {
            case 1 -> 24;
            case 16 -> 12;
            default -> 6;
        };
        int vectors = lanes == 1 ? Math.clamp(Math.ceilDiv(s.n(), 16) * 16, 16, 128) : 2;
        return blocks(s, threads, rows, vectors, lanes);
    }

    /// Cache blocks and packing for a given register tile.
    private static Tiling blocks(MatmulShape s, int threads, int rows, int vectors, int lanes) {
        int columns = lanes * vectors;
        boolean ownB = s.m() <= 96 || s.m() <= 512 && s.batches() > 1 && !s.oneB();
        int kBlock = Math.max(64, L1_FLOATS / columns);
        int nBlock = roundUp(Math.min(s.n(), 384), columns);
        int mBlock = roundUp(Math.min(s.m(), ownB ? 512 : 48), rows);
        // Enough tasks for every thread to have a few.
        while (tasks(s, mBlock, nBlock) < 4L * threads && nBlock > 4 * columns) {
            nBlock = roundUp(nBlock / 2, columns);
        }
        while (tasks(s, mBlock, nBlock) < 4L * threads && mBlock > 2 * rows && !ownB) {
            mBlock = roundUp(mBlock / 2, rows);
        }
        boolean fewRows = s.m() <= 2 * rows && s.b().column() == 1;
        boolean fewColumns = s.n() <= 8 * columns && s.a().column() == 1;
        return new Tiling(
                rows,
                vectors,
                lanes,
                mBlock,
                nBlock,
                kBlock,
                fewColumns ? Packing.NONE : Packing.OWN,
                fewRows ? Packing.NONE : ownB ? Packing.OWN : Packing.SHARED);
    }

    /// For a B that comes packed: a task has few rows and packs them for itself. It takes all columns, so that A is
    /// packed once; but where tasks would be so few that one more or less counts, each thread gets columns of its own.
    static Tiling ready(MatmulShape s, int threads) {
        Tiling plain = of(s, threads);
        int rows = plain.rows();
        int columns = plain.columns();
        int mBlock = Math.max(1, READY_ROWS / rows) * rows;
        int nBlock = roundUp(Math.min(s.n(), READY_PANELS * columns), columns);
        if (tasks(s, mBlock, nBlock) < 8L * threads) {
            nBlock = Math.min(nBlock, Math.max(4 * columns, roundUp(Math.ceilDiv(s.n(), threads), columns)));
        }
        return plain.withBlocks(mBlock, nBlock, plain.kBlock()).withPacking(Packing.OWN, Packing.READY);
    }

    /// The default blocks for a given register tile.
    static Tiling withTile(MatmulShape s, int threads, int rows, int vectors) {
        return blocks(s, threads, rows, vectors, Simd.LANES);
    }

    /// Other register tiles worth timing, with blocks to suit.
    static List<Tiling> otherTiles(Tiling base, MatmulShape s, int threads) {
        int[][] tiles = switch (base.lanes()) {
            case 1 -> new int[0][];
            case 16 -> new int[][] {{14, 2}, {4, 2}, {6, 4}, {8, 3}};
            case 8 -> new int[][] {{4, 3}};
            default -> new int[][] {{4, 3}, {8, 2}};
        };
        var others = new ArrayList<Tiling>();
        for (int[] tile : tiles) {
            others.add(blocks(s, threads, tile[0], tile[1], base.lanes()));
        }
        return others;
    }

    /// Other ways to pack for the register tile of `base`, where the shape leaves a choice.
    static List<Tiling> otherPackings(Tiling base, MatmulShape s) {
        var others = new ArrayList<Tiling>();
        if (s.a().row() == 1 || s.a().column() == 1 && s.n() <= 128) {
            others.add(base.withPacking(base.a() == Packing.NONE ? Packing.OWN : Packing.NONE, base.b()));
        }
        if (s.b().column() == 1 && base.b() != Packing.SHARED) {
            others.add(base.withPacking(base.a(), base.b() == Packing.NONE ? Packing.OWN : Packing.NONE));
        }
        return others;
    }

    /// Other block sizes for the register tile of `base`.
    static List<Tiling> otherBlocks(Tiling base, MatmulShape s) {
        var others = new ArrayList<Tiling>();
        int chain = s.k() / s.segments();
        if (chain > base.kBlock()) {
            others.add(base.withBlocks(base.mBlock(), base.nBlock(), base.kBlock() * 3 / 2));
        }
        if (base.mBlock() >= 4 * base.rows() && base.b() == Packing.SHARED) {
            others.add(base.withBlocks(roundUp(base.mBlock() / 2, base.rows()), base.nBlock(), base.kBlock()));
        }
        return others;
    }

    private static int roundUp(int size, int unit) {
        return Math.max(1, Math.ceilDiv(size, unit)) * unit;
    }

    private static long tasks(MatmulShape s, int mBlock, int nBlock) {
        return (long) s.batches() * Math.ceilDiv(s.m(), mBlock) * Math.ceilDiv(s.n(), nBlock);
    }
}
