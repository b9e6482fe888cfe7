package ingot.formats;

import ingot.ir.Value;
import java.util.List;

/// What an ONNX operator means: the values of its outputs, in order.
@FunctionalInterface
interface OnnxOperator {
    List<Value> build(OnnxCall call);

    /// An operator with one output.
    static OnnxOperator one(java.util.function.Function<OnnxCall, Value> meaning) {
        return call -> List.of(meaning.apply(call));
    }
}
