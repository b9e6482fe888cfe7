package ingot.cpu;

import java.util.HashMap;
import java.util.Map;

/// The compiled passes of a backend; equal passes share their code, whatever kernel they come from.
final class PassCache {
    private final Map<Pass, CompiledPass> passes = new HashMap<>();
    private final int lanes;

    /// `lanes`: floats per vector, 1 for scalar code only.
    PassCache(int lanes) {
        this.lanes = lanes;
    }

    /// A pass whose operand k moves `steps[k]` bytes per element.
    BoundPass bind(Pass pass, long[] steps) {
        return new BoundPass(passes.computeIfAbsent(pass, this::compile), steps);
    }

    private CompiledPass compile(Pass pass) {
        CompiledPass compiled = new CompiledPass(pass);
        if (lanes > 1 && VectorWriter.supports(pass)) {
            compiled.useVectors(VectorWriter.define(pass, lanes));
        }
        return compiled;
    }
}
