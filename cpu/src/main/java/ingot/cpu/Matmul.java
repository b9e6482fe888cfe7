package ingot.cpu;

import ingot.compiler.Kernel.Matmul.Old;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The fp32 contraction of one [MatmulShape], planned once and run many times over raw addresses.
///
/// Every element of C is one chain, k ascending, `acc = fma(a, b, acc)` from +0 (per segment); threads, tiles and
/// vector width change the speed and never a bit. A plan is immutable and may be shared between threads, each with its
/// own scratch.
public final class Matmul {
    private final MatmulShape shape;
    private final boolean transposed;
    private final @Nullable RowMatmul rows;
    private final @Nullable BlockedMatmul blocked;

    private Matmul(MatmulShape shape, boolean transposed, @Nullable RowMatmul rows, @Nullable BlockedMatmul blocked) {
        this.shape = shape;
        this.transposed = transposed;
        this.rows = rows;
        this.blocked = blocked;
    }

    /// What a plan may do besides the contraction.
    ///
    /// @param old what becomes of what C held
    /// @param bias add a bias of n elements to every row of the result, before it is added to the old C
    /// @param threads the pool size the plan is made for; it runs on any
    /// @param tuner chooses the tiling and warms the kernels of shapes that are worth it
    public record Options(Old old, boolean bias, int threads, Autotuner tuner) {
        public static final Options DEFAULT =
                new Options(Old.REPLACED, false, Runtime.getRuntime().availableProcessors(), Autotuner.off());

        /// Without timing anything.
        public Options(Old old, boolean bias, int threads) {
            this(old, bias, threads, Autotuner.off());
        }

        public Options withOld(Old other) {
            return new Options(other, bias, threads, tuner);
        }

        public Options withBias() {
            return new Options(old, true, threads, tuner);
        }

        public Options withThreads(int count) {
            return new Options(old, bias, count, tuner);
        }

        public Options withTuner(Autotuner autotuner) {
            return new Options(old, bias, threads, autotuner);
        }
    }

    public static Matmul of(MatmulShape shape) {
        return of(shape, Options.DEFAULT);
    }

    public static Matmul of(MatmulShape shape, Options options) {
        return of(shape, options, null);
    }

    /// With `tiling` given: the blocked path with exactly this tiling.
    static Matmul of(MatmulShape shape, Options options, @Nullable Tiling tiling) {
        return of(shape, options, tiling, BlockedMatmul.PHASE_BYTES);
    }

    /// @param phaseBytes the most of a shared B that is packed at once
    static Matmul of(MatmulShape shape, Options options, @Nullable Tiling tiling, long phaseBytes) {
        if (shape.batches() == 0 || shape.m() == 0 || shape.n() == 0) {
            return new Matmul(shape, false, null, null);
        }
        boolean transposed = runsTransposed(shape);
        var s = transposed ? shape.transposed() : shape;
        if (!(transposed && options.bias)) { // a bias along m does not repeat per batch
            s = s.folded();
        }
        boolean continued = options.old == Old.CONTINUED;
        if (continued && s.segments() > 1) {
            throw new IllegalArgumentException("matmul: chains of " + s.segments() + " segments cannot go on from C");
        }
        var epilogue = new Epilogue(options.old == Old.ADDED, options.bias);
        if (tiling == null && RowMatmul.fits(s, continued)) {
            return new Matmul(
                    shape,
                    transposed,
                    new RowMatmul(
                            s, epilogue, continued, transposed, options.threads, RowMath.of(options.tuner.warming(s))),
                    null);
        }
        var cut = tiling == null ? options.tuner.choose(s, options.threads) : tiling;
        return new Matmul(
                shape,
                transposed,
                null,
                new BlockedMatmul(s, cut, epilogue, continued, transposed, options.tuner.warming(s), phaseBytes));
    }

    /// The kernels write rows of contiguous C; a C whose columns are contiguous is computed as Cᵀ = Bᵀ Aᵀ.
    private static boolean runsTransposed(MatmulShape s) {
        boolean rowsContiguous = s.c().column() == 1 && s.n() > 1;
        boolean columnsContiguous = s.c().row() == 1 || s.m() == 1;
        return !rowsContiguous && columnsContiguous && s.m() > 1 || s.n() == 1 && s.m() > 1;
    }

    /// The same contraction with one operand packed beforehand by [#pack], or null where that cannot be, or where a
    /// product has so few rows that its operand is read once anyway.
    @Nullable
    Matmul ready(Options options) {
        return ready(options, null);
    }

    /// With `tiling` given: with exactly this one.
    @Nullable
    Matmul ready(Options options, @Nullable Tiling tiling) {
        if (blocked == null || !blocked.shape.oneB() || blocked.tiling.lanes() == 1) {
            return null;
        }
        var s = blocked.shape;
        var plan = new BlockedMatmul(
                s,
                tiling == null ? Tilings.ready(s, options.threads) : tiling,
                blocked.epilogue,
                options.old == Old.CONTINUED,
                transposed,
                options.tuner.warming(s),
                BlockedMatmul.PHASE_BYTES);
        return new Matmul(shape, transposed, null, plan);
    }

    /// Which operand [#ready] takes packed: 0 for A, 1 for B.
    int packedOperand() {
        return transposed ? 0 : 1;
    }

    /// What the packed operand depends on, besides the operand.
    Object order() {
        var plan = blocked();
        return List.of(plan.tiling.columns(), plan.shape.k(), plan.shape.n(), plan.shape.b());
    }

    long packedBytes() {
        return blocked().readyBytes();
    }

    void pack(TilePool pool, long from, long to) {
        blocked().pack(pool, from, to);
    }

    private BlockedMatmul blocked() {
        if (blocked == null) {
            throw new IllegalStateException("matmul: not blocked");
        }
        return blocked;
    }

    public MatmulShape shape() {
        return shape;
    }

    /// Bytes of scratch that [#run] needs on a pool of `workers` threads.
    public long scratchBytes(int workers) {
        return rows != null ? rows.scratchBytes(workers) : blocked != null ? blocked.scratchBytes(workers) : 0;
    }

    public void run(TilePool pool, long a, long b, long c, long scratch) {
        run(pool, a, b, c, 0, scratch);
    }

    /// Addresses of the first elements; `bias` is read only by a plan with bias.
    public void run(TilePool pool, long a, long b, long c, long bias, long scratch) {
        long left = transposed ? b : a;
        long right = transposed ? a : b;
        if (rows != null) {
            rows.run(pool, left, right, c, bias, scratch);
        } else if (blocked != null) {
            blocked.run(pool, left, right, c, bias, scratch);
        }
    }
}
