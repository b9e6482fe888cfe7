package ingot.cpu;

import org.jspecify.annotations.Nullable;

/// The code of a pass in its two forms, which give the same bits: scalar code from the start, vector code once it is
/// worth it.
final class CompiledPass {
    /// What a call and an element may cost beside the arithmetic: an operand that comes from main memory.
    private static final double CALL_NANOS = 1000;

    private static final double MEMORY_NANOS = 3;
    private static final int PATIENCE = 20;

    private final Pass pass;
    private final ScalarCode scalar;
    private final int ops;
    private final @Nullable Warmup warmup;
    private volatile @Nullable VectorCode vector;
    private long work;
    private double limit = Double.MAX_VALUE;
    private int slow;

    /// `warmup` is told when the pass has done much work by scalar code; null: it stays as it is.
    CompiledPass(Pass pass, @Nullable Warmup warmup) {
        this.pass = pass;
        this.warmup = warmup;
        scalar = ScalarWriter.define(pass);
        ops = pass.live().size();
    }

    Pass pass() {
        return pass;
    }

    ScalarCode scalar() {
        return scalar;
    }

    /// Null as long as scalar code is the better choice.
    @Nullable
    VectorCode vector() {
        return vector;
    }

    void useVectors(VectorCode code) {
        vector = code;
    }

    /// Takes vector code that needs clearly more than `scalarNanos` per element as a failure of HotSpot: see [#sample].
    void useVectors(VectorCode code, double scalarNanos) {
        limit = 4 * scalarNanos + MEMORY_NANOS * pass.operands();
        slow = 0;
        vector = code;
    }

    /// Hears how long vector code took for `elements`. HotSpot may throw compiled code away and be slow for long; then
    /// the pass goes back to scalar code and earns fresh vector code.
    void sample(long nanos, int elements) {
        if (nanos < CALL_NANOS + limit * elements) {
            slow = 0;
        } else if (++slow > PATIENCE && warmup != null) {
            vector = null;
            work = 0;
        }
    }

    /// Counts elements done by scalar code. Threads may overwrite each other's count: it need not be exact.
    void worked(int elements) {
        if (warmup == null || work < 0) {
            return;
        }
        work += (long) elements * ops;
        if (work > Warmup.WORTH) {
            work = Long.MIN_VALUE;
            warmup.request(this);
        }
    }
}
