package ingot.cpu;

import org.jspecify.annotations.Nullable;

/// The code of a pass in its two forms, which give the same bits: scalar code from the start, vector code once it is worth it.
final class CompiledPass {
    private final Pass pass;
    private final ScalarCode scalar;
    private volatile @Nullable VectorCode vector;

    CompiledPass(Pass pass) {
        this.pass = pass;
        scalar = ScalarWriter.define(pass);
    }

    Pass pass() {
        return pass;
    }

    ScalarCode scalar() {
        return scalar;
    }

    /// Null as long as scalar code is the better choice.
    @Nullable VectorCode vector() {
        return vector;
    }

    void useVectors(VectorCode code) {
        vector = code;
    }
}
