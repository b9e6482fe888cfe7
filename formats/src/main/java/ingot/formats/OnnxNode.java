package ingot.formats;

import java.util.List;
import java.util.Map;

/// One application of an operator: an empty name among the inputs or outputs means that it is left out.
record OnnxNode(
        String name,
        String domain,
        String operator,
        List<String> inputs,
        List<String> outputs,
        Map<String, OnnxAttribute> attributes) {
    OnnxNode {
        domain = domain.equals("ai.onnx") ? "" : domain;
        inputs = List.copyOf(inputs);
        outputs = List.copyOf(outputs);
        attributes = Map.copyOf(attributes);
    }

    /// What people call it: its name, or that of its first output.
    String label() {
        return !name.isEmpty() ? name : outputs.isEmpty() ? operator : outputs.getFirst();
    }

    /// The operator with its domain, where that is not the standard one.
    String qualified() {
        return domain.isEmpty() ? operator : domain + "." + operator;
    }
}
