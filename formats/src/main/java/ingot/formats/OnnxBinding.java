package ingot.formats;

import ingot.ir.Shape;
import ingot.ir.Tensor;
import java.util.HashMap;
import java.util.Map;

/// What an ONNX file leaves open, decided: sizes by symbol, whole shapes by input, values of inputs that shapes depend
/// on.
///
/// `training` brings back dropout and batch statistics where an inference export has turned them off.
public record OnnxBinding(
        Map<String, Integer> sizes, Map<String, Shape> shapes, Map<String, Tensor> constants, boolean training) {
    public static final OnnxBinding NONE = new OnnxBinding(Map.of(), Map.of(), Map.of(), false);

    public OnnxBinding {
        sizes = Map.copyOf(sizes);
        shapes = Map.copyOf(shapes);
        constants = Map.copyOf(constants);
    }

    /// Sizes of symbolic dimensions, such as `batch` and `sequence`.
    public static OnnxBinding sizes(Map<String, Integer> sizes) {
        return new OnnxBinding(sizes, Map.of(), Map.of(), false);
    }

    /// The same with the shape of one input.
    public OnnxBinding shape(String input, Shape shape) {
        Map<String, Shape> all = new HashMap<>(shapes);
        all.put(input, shape);
        return new OnnxBinding(sizes, all, constants, training);
    }

    /// The same with an input that becomes a constant of the graph.
    public OnnxBinding constant(String input, Tensor value) {
        Map<String, Tensor> all = new HashMap<>(constants);
        all.put(input, value);
        return new OnnxBinding(sizes, shapes, all, training);
    }

    public OnnxBinding forTraining() {
        return new OnnxBinding(sizes, shapes, constants, true);
    }
}
