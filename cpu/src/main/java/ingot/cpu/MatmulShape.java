package ingot.cpu;

import java.util.Arrays;

/// The sizes and strides of one contraction
///
/// ```
/// C[batch…, m, n] = chain over k of A[batch…, m, k] · B[batch…, k, n]
/// ```
/// with up to three batch axes (`batch0` is the outermost; absent ones are 1). Strides count elements; a stride of 0
/// broadcasts an operand. `segments` > 1 cuts K into that many equal contiguous pieces: each is its own chain from +0,
/// and the pieces combine in the fixed binary tree of a sum over batch shards.
public record MatmulShape(
        int batch0, int batch1, int batch2, int m, int n, int k, int segments, Strides a, Strides b, Strides c) {

    /// Element strides of one operand: three batch axes, then its own rows and columns.
    public record Strides(long batch0, long batch1, long batch2, long row, long column) {
        Strides swapped() {
            return new Strides(batch0, batch1, batch2, column, row);
        }

        static Strides of(long[] strides) {
            int rank = strides.length;
            if (rank < 2 || rank > 5) {
                throw new IllegalArgumentException(
                        "matmul: 2 to 5 strides (batch…, row, column) expected, got " + Arrays.toString(strides));
            }
            return new Strides(
                    rank > 4 ? strides[rank - 5] : 0,
                    rank > 3 ? strides[rank - 4] : 0,
                    rank > 2 ? strides[rank - 3] : 0,
                    strides[rank - 2],
                    strides[rank - 1]);
        }
    }

    public MatmulShape {
        if (batch0 < 0 || batch1 < 0 || batch2 < 0 || m < 0 || n < 0 || k < 0) {
            throw new IllegalArgumentException("matmul: negative size in batch [" + batch0 + ", " + batch1 + ", "
                    + batch2 + "], m " + m + ", n " + n + ", k " + k);
        }
        if (segments < 1 || k % segments != 0) {
            throw new IllegalArgumentException(
                    "matmul: segments must divide k, got " + segments + " segments of k = " + k);
        }
        long tasks = (long) batch0 * batch1 * batch2;
        if (tasks > Integer.MAX_VALUE) {
            throw new IllegalArgumentException("matmul: too many batches: " + tasks);
        }
        boolean writesTwice = m > 0
                && n > 0
                && tasks > 0
                && ((batch0 > 1 && c.batch0 == 0)
                        || (batch1 > 1 && c.batch1 == 0)
                        || (batch2 > 1 && c.batch2 == 0)
                        || (m > 1 && c.row == 0)
                        || (n > 1 && c.column == 0));
        if (writesTwice) {
            throw new IllegalArgumentException("matmul: the result has a stride of 0 on an axis longer than 1: " + c);
        }
    }

    /// Row-major, dense: A [m, k] · B [k, n] → C [m, n].
    public static MatmulShape of(int m, int n, int k) {
        return of(new long[0], m, n, k, 1, new long[] {k, 1}, new long[] {n, 1}, new long[] {n, 1});
    }

    /// Any strides, in elements: each array is (batch…, row, column) with as many batch strides as `batch` has sizes.
    public static MatmulShape of(long[] batch, long m, long n, long k, int segments, long[] a, long[] b, long[] c) {
        int rank = batch.length;
        if (rank > 3 || a.length != rank + 2 || b.length != rank + 2 || c.length != rank + 2) {
            throw new IllegalArgumentException("matmul: " + rank + " batch axes (at most 3) need " + (rank + 2)
                    + " strides per operand, got " + a.length + ", " + b.length + ", " + c.length);
        }
        return new MatmulShape(
                rank > 2 ? Math.toIntExact(batch[rank - 3]) : 1,
                rank > 1 ? Math.toIntExact(batch[rank - 2]) : 1,
                rank > 0 ? Math.toIntExact(batch[rank - 1]) : 1,
                Math.toIntExact(m),
                Math.toIntExact(n),
                Math.toIntExact(k),
                segments,
                Strides.of(a),
                Strides.of(b),
                Strides.of(c));
    }

    /// The same contraction with other segments.
    public MatmulShape withSegments(int count) {
        return new MatmulShape(batch0, batch1, batch2, m, n, k, count, a, b, c);
    }

    public int batches() {
        return batch0 * batch1 * batch2;
    }

    /// Whether every batch reads the same B.
    boolean oneB() {
        return (batch0 == 1 || b.batch0 == 0) && (batch1 == 1 || b.batch1 == 0) && (batch2 == 1 || b.batch2 == 0);
    }

    /// Multiplications and additions, two per step of a chain.
    public double flops() {
        return 2.0 * batches() * m * n * k;
    }

    /// Cᵀ = Bᵀ Aᵀ: the same chains, since fma(a, b, c) = fma(b, a, c).
    MatmulShape transposed() {
        return new MatmulShape(batch0, batch1, batch2, n, m, k, segments, b.swapped(), a.swapped(), c.swapped());
    }

    /// The innermost batch axis becomes part of m where A and C run on through it and B does not change along it.
    MatmulShape folded() {
        var s = this;
        while (s.batches() > 1) {
            if (s.batch2 == 1) {
                s = new MatmulShape(
                        1, s.batch0, s.batch1, s.m, s.n, s.k, s.segments, outer(s.a), outer(s.b), outer(s.c));
            } else if (s.b.batch2 == 0
                    && s.a.batch2 == s.m * s.a.row
                    && s.c.batch2 == s.m * s.c.row
                    && (long) s.m * s.batch2 <= Integer.MAX_VALUE) {
                s = new MatmulShape(s.batch0, s.batch1, 1, s.m * s.batch2, s.n, s.k, s.segments, s.a, s.b, s.c);
            } else {
                return s;
            }
        }
        return s;
    }

    private static Strides outer(Strides s) {
        return new Strides(0, s.batch0, s.batch1, s.row, s.column);
    }
}
