package ingot.cpu;

/// The innermost matmul: one register tile of C, `rows` × `columns`, over `k` steps of the chain.
///
/// ```
/// C[i, j] = chain over p ascending of fma(A[i, p], B[p, j], acc)
/// ```
/// B is read as rows of contiguous floats, `bStep` bytes apart. How A is read is the kernel's [Layout]; what the
/// accumulators start from and how they end is its [Start].
interface MicroKernel {
    /// Strides are in bytes.
    void run(long a, long aStride, long b, long bStep, long c, long cStride, int k);

    /// How the kernel reads A.
    enum Layout {
        /// `A[i, p]` at `a + p · aStride + 4 i`: a packed panel (stride 4 · rows) or a matrix whose m axis is contiguous.
        COLUMNS,
        /// `A[i, p]` at `a + i · aStride + 4 p`: a matrix whose k axis is contiguous, read in place.
        ROWS
    }

    /// Where the chain starts and what the store does.
    enum Start {
        /// acc from +0; `C = acc`.
        ZERO,
        /// acc from C: the chain goes on where the previous K block stopped; `C = acc`.
        CONTINUE,
        /// acc from +0; `C = C + acc`, one rounded addition: two segments merge.
        ADD
    }
}
