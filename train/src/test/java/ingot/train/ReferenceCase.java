package ingot.train;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.store.Safetensors;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// A folder of the PyTorch reference: `shared/reference` beside the checkout, or where the property `ingot.reference`
/// says.
record ReferenceCase(Path folder) {
    /// Skips the calling test, saying so, when the reference is not there.
    static ReferenceCase orSkip(String name) {
        String property = System.getProperty("ingot.reference");
        Path found = property == null ? null : Path.of(property);
        for (Path at = Path.of("").toAbsolutePath(); at != null && found == null; at = at.getParent()) {
            Path candidate = at.resolve("shared/reference");
            found = Files.isDirectory(candidate) ? candidate : null;
        }
        boolean there = found != null && Files.isDirectory(found.resolve(name));
        if (!there) {
            System.err.println("SKIPPED: no reference case " + name
                    + "; it is looked for in ../shared/reference of the checkout or -Dingot.reference=FOLDER");
        }
        assumeTrue(there, "no reference case " + name);
        return new ReferenceCase(found.resolve(name));
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
