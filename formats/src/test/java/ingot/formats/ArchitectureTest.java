package ingot.formats;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.ir.DType;
import ingot.ir.Interpreter;
import ingot.ir.Tensor;
import ingot.nn.T5;
import ingot.store.Safetensors;
import ingot.testkit.Reference;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Tiny models against PyTorch in float64, made by `make_models.py`: what the larger reference has no case for.
class ArchitectureTest {
    /// fp32 round-off of one or two blocks; a wrong rule moves the logits by 1e-3 or more.
    private static final double TOLERANCE = 2e-5;

    @TempDir
    Path folder;

    private Map<String, Tensor> copy(String name) throws IOException {
        for (String file : new String[] {"config.json", "model.safetensors", "expected.safetensors"}) {
            try (InputStream in = ArchitectureTest.class.getResourceAsStream("models/" + name + "/" + file)) {
                Files.copy(in, folder.resolve(file));
            }
        }
        Map<String, Tensor> expected = new LinkedHashMap<>();
        try (Safetensors file = Safetensors.open(folder.resolve("expected.safetensors"))) {
            for (String tensor : file.tensors().keySet()) {
                Tensor read = file.read(tensor);
                expected.put(
                        tensor,
                        read.type().dtype() == DType.F32
                                ? read
                                : ReferenceCase.as(read, tensor.equals("mask") ? DType.BOOL : DType.I32));
            }
        }
        return expected;
    }

    @ParameterizedTest
    @ValueSource(strings = {"llama3-rope", "yarn-rope", "qwen3", "gemma", "phi", "neox", "neox-serial"})
    void decoders(String name) throws IOException {
        Map<String, Tensor> expected = copy(name);
        try (HuggingFace opened = HuggingFace.open(folder)) {
            Map<String, Tensor> found = Interpreter.run(
                    opened.languageModel().logitsGraph(2, 7, true),
                    Map.of("tokens", expected.get("tokens"), "mask", expected.get("mask")),
                    ReferenceTest.weights(opened.weights()));
            assertThat(Reference.difference(found.get("logits"), expected.get("logits")))
                    .isLessThan(TOLERANCE);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"t5", "t5-gated"})
    void encoderAndDecoder(String name) throws IOException {
        Map<String, Tensor> expected = copy(name);
        try (HuggingFace opened = HuggingFace.open(folder)) {
            Map<String, Tensor> inputs = new LinkedHashMap<>(expected);
            inputs.remove("logits");
            Map<String, Tensor> found = Interpreter.run(
                    ((T5) opened.model()).logitsGraph(2, 7, 5), inputs, ReferenceTest.weights(opened.weights()));
            assertThat(Reference.difference(found.get("logits"), expected.get("logits")))
                    .isLessThan(TOLERANCE);
        }
    }

    @Test
    void everyRowOfTheTableIsInAlphabeticalOrder() {
        assertThat(Architecture.ALL.stream().map(Architecture::type)).isSorted().doesNotHaveDuplicates();
    }
}
