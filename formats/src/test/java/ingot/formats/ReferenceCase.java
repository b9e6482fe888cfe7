package ingot.formats;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import ingot.ir.DType;
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
