package ingot.formats;

import ingot.ir.DType;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.store.Safetensors;
import ingot.testkit.Reference;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// A folder of the PyTorch reference.
record ReferenceCase(Path folder) {
    /// Skips the calling test, saying so, when the reference is not there.
    static ReferenceCase orSkip(String name) {
        return new ReferenceCase(Reference.orSkip(name));
    }

    /// Inputs, outputs and gradients; I64 becomes I32.
    Map<String, Tensor> expected() {
        Map<String, Tensor> tensors = new LinkedHashMap<>();
        try (Safetensors opened = Safetensors.open(folder.resolve("expected.safetensors"))) {
            for (Map.Entry<String, Type> entry : opened.tensors().entrySet()) {
                Tensor stored = opened.read(entry.getKey());
                tensors.put(entry.getKey(), stored.type().dtype() == DType.I64 ? as(stored, DType.I32) : stored);
            }
        }
        return tensors;
    }

    static Tensor as(Tensor from, DType dtype) {
        Tensor to = Tensor.zeros(from.type().with(dtype));
        for (long i = 0; i < from.shape().elements(); i++) {
            to.setLong(i, from.getLong(i));
        }
        return to;
    }

    JsonNode trajectory() {
        return JsonMapper.shared().readTree(folder.resolve("trajectory.json").toFile());
    }
}
