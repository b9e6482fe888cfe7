package ingot.cpu;

/// The row loops around the micro-kernels: elementwise sums, copies, packing. Vector and scalar versions give the same
/// bits, as every lane does what the scalar loop does.
sealed interface RowMath permits ScalarRows, VectorRows, WarmingRows {
    /// The version for this machine.
    static RowMath best() {
        return Holder.BEST;
    }

    /// The version for this machine in plans that warm in this way.
    static RowMath of(Warming warming) {
        return warming == Warming.BESIDE && Simd.available() ? WarmingRows.ONE : best();
    }

    /// `to[i] = from[i]`
    void copy(long from, long to, int n);

    /// `c[i] = c[i] + x[i]`
    void add(long c, long x, int n);

    /// `c[i] = c[i] + x`
    void add(long c, float x, int n);

    /// `acc[j] = fma(a[p], b[p, j], acc[j])` for p ascending: one row of a matmul that reads b row by row.
    void rank(long acc, long a, long aStep, long b, long bStep, int k, int n);

    /// `to[p · width + w] = from[p · step + w]` for p < k: packs a panel whose rows are contiguous.
    void pack(long from, long step, long to, int width, int k);

    /// `to[p · width + w] = from[w · step + p]` for p < k: packs a panel that lies transposed.
    void packTransposed(long from, long step, long to, int width, int k);

    /// `to[j] = Σ fma(weights[kernel[p]], x[windows[p] + j · step])` over p from `first` on, ascending: the chains of n
    /// neighbouring windows. May read up to `end`, and write up to a vector beyond what it says, never before.
    void windows(
            long to, long weights, long[] kernel, long x, long[] windows, long step, int first, int k, int n, long end);

    /// Packs rows that lie in pieces: `to[p · width + starts[r] + i] = from[rows[first + p] + pieces[r] + 4 i]` for p <
    /// k, i < lengths[r]. May read up to `end`, and write up to a vector beyond what it says, never before.
    void packPieces(
            long from,
            long[] rows,
            int first,
            int k,
            int[] starts,
            int[] lengths,
            long[] pieces,
            long to,
            int width,
            long end);

    /// `acc[j] = fma(a[p], b[j, p], acc[j])` for p ascending: one row of a matmul whose B has contiguous k. Eight chains
    /// run side by side, one scalar multiply-add each: as fast as memory delivers B, with no transposition.
    default void dots(long acc, long a, long aStep, long b, long bRow, int k, int n) {
        int j = 0;
        for (; j <= n - 8; j += 8) {
            Dots.eight(acc + 4L * j, a, aStep, b + j * bRow, bRow, k);
        }
        for (; j < n; j++) {
            Dots.one(acc + 4L * j, a, aStep, b + j * bRow, k);
        }
    }

    /// `steps` rounds of independent multiply-adds in registers; the result only keeps them alive.
    float fmas(int steps);

    /// Floating-point operations of [#fmas].
    double flopsPerFmas(int steps);

    /// Breaks the class loading cycle; loads the vector class only where the module is there.
    final class Holder {
        private static final RowMath BEST = Simd.available() ? new VectorRows() : new ScalarRows();

        private Holder() {}
    }
}
