package ingot.cpu;

/// How one blocked matmul is cut: the register tile, the cache blocks, and what is packed. Any choice gives the same
/// bits; the [Autotuner] picks a fast one.
///
/// @param rows rows of the register tile
/// @param vectors vectors per row of the register tile
/// @param lanes floats per vector, 1 for the scalar kernel
/// @param mBlock rows of C per task
/// @param nBlock columns of C per task
/// @param kBlock longest piece of the chain between two visits of a tile
/// @param a whether A is packed, where its layout leaves a choice
/// @param b whether and by whom B is packed, where its layout leaves a choice
record Tiling(int rows, int vectors, int lanes, int mBlock, int nBlock, int kBlock, Packing a, Packing b) {

    enum Packing {
        /// Read in place where the layout allows it, else as OWN.
        NONE,
        /// Each task packs what it reads into its worker's scratch.
        OWN,
        /// Packed once, before the tasks that share it. (B only.)
        SHARED,
        /// Packed by the caller, before any run: [BlockedMatmul#pack]. (B only.)
        READY
    }

    Tiling {
        if (rows < 1 || vectors < 1 || lanes < 1 || mBlock < 1 || nBlock < 1 || kBlock < 1) {
            throw new IllegalArgumentException("tiling: sizes must be positive");
        }
    }

    int columns() {
        return vectors * lanes;
    }

    Tiling withBlocks(int m, int n, int k) {
        return new Tiling(rows, vectors, lanes, m, n, k, a, b);
    }

    Tiling withPacking(Packing ofA, Packing ofB) {
        return new Tiling(rows, vectors, lanes, mBlock, nBlock, kBlock, ofA, ofB);
    }

    /// `6x2x8 96 384 288 OWN SHARED`: tile, blocks of m, n and k, packing of A and B.
    String text() {
        return rows + "x" + vectors + "x" + lanes + " " + mBlock + " " + nBlock + " " + kBlock + " " + a + " " + b;
    }

    static Tiling parse(String text) {
        var words = text.split(" ");
        var tile = words[0].split("x");
        if (words.length != 6 || tile.length != 3) {
            throw new IllegalArgumentException("tiling: not of the form 6x2x8 96 384 288 OWN SHARED: " + text);
        }
        return new Tiling(
                Integer.parseInt(tile[0]),
                Integer.parseInt(tile[1]),
                Integer.parseInt(tile[2]),
                Integer.parseInt(words[1]),
                Integer.parseInt(words[2]),
                Integer.parseInt(words[3]),
                Packing.valueOf(words[4]),
                Packing.valueOf(words[5]));
    }
}
