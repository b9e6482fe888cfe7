package ingot.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import ingot.ir.Graph;
import ingot.ir.Interpreter;
import ingot.ir.Tensor;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What is exported gives the same numbers in ONNX Runtime (Maven profile `onnxruntime`).
class OnnxRuntimeTest {
    /// Sums in another order; the models' outputs are of the order of 1.
    private static final double TOLERANCE = 2e-5;

    @TempDir
    private Path folder;

    @BeforeAll
    static void needed() {
        if (!OnnxRuntime.isThere()) {
            System.err.println("SKIPPED: ONNX Runtime is not there; run with -Ponnxruntime");
        }
        assumeTrue(OnnxRuntime.isThere(), "ONNX Runtime is not there; run with -Ponnxruntime");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "gpt2",
                "bert",
                "bert-classification",
                "distilbert-classification",
                "roberta-classification",
                "llama",
                "mistral",
                "mixtral",
                "qwen2",
                "vit",
                "mobilenet_v2",
                "resnet-small-train",
                "lstm-classifier"
            })
    void folders(String name) {
        Path file = folder.resolve("model.onnx");
        try (HuggingFace source = HuggingFace.open(ReferenceCase.orSkip(name).folder())) {
            SizedGraph graphs = ExportGraphs.of(source.model());
            OnnxWriter.Written written = OnnxWriter.write(file, graphs, 6, source.weights());
            List<Map<String, Integer>> sizes = written.fixed().isEmpty()
                    ? List.of(Map.of("batch", 2, "sequence", 5), Map.of("batch", 3, "sequence", 8))
                    : List.of(Map.of("batch", 3, "sequence", 6));
            try (OnnxRuntime runtime = new OnnxRuntime(file)) {
                for (Map<String, Integer> each : sizes) {
                    compare(graphs.of(each), source.weights(), runtime);
                }
            }
        }
    }

    /// Models of other exporters, written again by us at fixed sizes.
    @ParameterizedTest
    @ValueSource(strings = {"gpt2", "bert", "llama", "lstm-classifier", "mobilenet_v2"})
    void importedModels(String name) {
        Path file = folder.resolve("again.onnx");
        OnnxModel model = OnnxModel.open(ReferenceCase.orSkip(name).folder().resolve("model.onnx"));
        try (OnnxImport imported = OnnxImport.of(model, OnnxBinding.sizes(Map.of("batch", 2, "sequence", 5)))) {
            OnnxWriter.write(file, imported.graph(), imported);
            try (OnnxRuntime runtime = new OnnxRuntime(file)) {
                compare(imported.graph(), imported, runtime);
            }
        }
    }

    private static void compare(Graph graph, WeightSource weights, OnnxRuntime runtime) {
        Map<String, Tensor> inputs = ExportGraphsTest.inputs(graph);
        Map<String, Tensor> expected = Interpreter.run(graph, inputs, OnnxRun.weights(weights));
        Map<String, float[]> found = runtime.run(inputs, expected.keySet());
        expected.forEach((name, tensor) -> {
            float[] values = tensor.toFloats();
            double most = 0;
            for (int i = 0; i < values.length; i++) {
                most = Math.max(most, Math.abs(values[i] - found.get(name)[i]));
            }
            assertThat(found.get(name)).hasSameSizeAs(values);
            assertThat(most).as(name).isLessThan(TOLERANCE);
        });
    }
}
