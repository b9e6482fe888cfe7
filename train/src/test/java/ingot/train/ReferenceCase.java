package ingot.train;

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

    Map<String, Tensor> tensors(String file) {
        Map<String, Tensor> tensors = new LinkedHashMap<>();
        try (Safetensors opened = Safetensors.open(folder.resolve(file))) {
            for (Map.Entry<String, Type> entry : opened.tensors().entrySet()) {
                tensors.put(entry.getKey(), opened.read(entry.getKey()));
            }
        }
        return tensors;
    }

    JsonNode trajectory() {
        return JsonMapper.shared().readTree(folder.resolve("trajectory.json").toFile());
    }
}
