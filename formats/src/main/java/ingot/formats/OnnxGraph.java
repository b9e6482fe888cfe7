package ingot.formats;

import java.util.List;
import org.jspecify.annotations.Nullable;

/// A graph of an ONNX file: nodes in topological order, constants by name, and what goes in and out.
record OnnxGraph(
        String name,
        List<OnnxNode> nodes,
        List<OnnxTensor> initializers,
        List<Port> inputs,
        List<Port> outputs,
        List<Port> values) {
    OnnxGraph {
        nodes = List.copyOf(nodes);
        initializers = List.copyOf(initializers);
        inputs = List.copyOf(inputs);
        outputs = List.copyOf(outputs);
        values = List.copyOf(values);
    }

    /// A named value with its declared kind and, for a tensor, element type and sizes.
    record Port(
            String name,
            Kind kind,
            @Nullable OnnxType type,
            @Nullable List<Dim> dims) {}

    enum Kind {
        TENSOR,
        SEQUENCE,
        OPTIONAL,
        MAP,
        SPARSE,
        UNKNOWN
    }

    /// One size: a number, or a symbol; neither (−1 and empty) if the file leaves it open.
    record Dim(long size, String symbol) {
        boolean isKnown() {
            return size >= 0;
        }

        @Override
        public String toString() {
            return isKnown() ? Long.toString(size) : symbol.isEmpty() ? "?" : symbol;
        }
    }

    /// The inputs without those that only name an initializer, as files of IR version 3 do.
    List<Port> freeInputs() {
        java.util.Set<String> constants = new java.util.HashSet<>();
        initializers.forEach(tensor -> constants.add(tensor.name()));
        return inputs.stream().filter(port -> !constants.contains(port.name())).toList();
    }
}
