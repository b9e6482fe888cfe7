package ingot.cpu;

import org.jspecify.annotations.Nullable;

/// The code of a pass in its two forms, which give the same bits: scalar code from the start, vector code once it is
/// worth it.
final class CompiledPass {
    private final Pass pass;
    private final ScalarCode scalar;
    private final int ops;
    private final @Nullable Warmup warmup;
    private volatile @Nullable VectorCode vector;
    private long work;

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
