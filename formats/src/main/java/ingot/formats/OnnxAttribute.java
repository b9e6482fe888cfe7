package ingot.formats;

import java.util.List;

/// A named setting of an ONNX node.
sealed interface OnnxAttribute {
    record OfFloat(float value) implements OnnxAttribute {}

    record OfInt(long value) implements OnnxAttribute {}

    record OfString(String value) implements OnnxAttribute {}

    record OfTensor(OnnxTensor value) implements OnnxAttribute {}

    record OfGraph(OnnxGraph value) implements OnnxAttribute {}

    record OfFloats(List<Float> values) implements OnnxAttribute {
        public OfFloats {
            values = List.copyOf(values);
        }
    }

    record OfInts(List<Long> values) implements OnnxAttribute {
        public OfInts {
            values = List.copyOf(values);
        }
    }

    record OfStrings(List<String> values) implements OnnxAttribute {
        public OfStrings {
            values = List.copyOf(values);
        }
    }

    /// Inside a function: the attribute of the call with that name.
    record Reference(String name) implements OnnxAttribute {}

    /// Of a kind that no operator here uses: sparse tensors, types, lists of tensors or graphs.
    record Other(String kind) implements OnnxAttribute {}
}
