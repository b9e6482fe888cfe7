package ingot.cpu;

import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// The compiled passes of a backend; equal passes share their code, whatever kernel they come from.
final class PassCache {
    private final Map<Pass, CompiledPass> passes = new HashMap<>();
    private final int lanes;
    private final @Nullable Warmup warmup;

    /// `lanes`: floats per vector, 1 for scalar code only. `eager`: use vector code from the first call, however slow that is.
    PassCache(int lanes, boolean eager) {
        this.lanes = lanes;
        warmup = eager || lanes == 1 ? null : new Warmup(lanes);
    }

    /// A pass whose operand k moves `steps[k]` bytes per element.
    BoundPass bind(Pass pass, long[] steps) {
        return new BoundPass(passes.computeIfAbsent(pass, this::compile), steps);
    }

    private CompiledPass compile(Pass pass) {
        boolean vectors = lanes > 1 && VectorWriter.supports(pass, lanes);
        CompiledPass compiled = new CompiledPass(pass, vectors ? warmup : null);
        if (vectors && warmup == null) {
            compiled.useVectors(VectorWriter.define(pass, lanes));
        }
        return compiled;
    }
}
