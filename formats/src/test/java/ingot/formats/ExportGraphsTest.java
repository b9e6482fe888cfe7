package ingot.formats;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.ir.Graph;
import ingot.ir.Interpreter;
import ingot.ir.Op;
import ingot.ir.Tensor;
import ingot.ir.Value;
import ingot.testkit.RandomTensors;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Hugging Face folders written as ONNX with open sizes: for any sizes, the bits of the model itself.
class ExportGraphsTest {
    @TempDir
    private Path folder;

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
                "qwen2"
            })
    void textsOfAnyLength(String name) {
        OnnxWriter.Written written = roundTrip(
                ReferenceCase.orSkip(name).folder(),
                List.of(Map.of("batch", 2, "sequence", 5), Map.of("batch", 3, "sequence", 8)));
        assertThat(written.open()).containsExactly("batch", "sequence");
    }

    @ParameterizedTest
    @ValueSource(strings = {"vit", "mobilenet_v2", "resnet-small-train"})
    void anyNumberOfImages(String name) {
        OnnxWriter.Written written =
                roundTrip(ReferenceCase.orSkip(name).folder(), List.of(Map.of("batch", 1), Map.of("batch", 3)));
        assertThat(written.open()).containsExactly("batch");
    }

    /// A recurrent network is written step by step: its length is fixed.
    @Test
    void aLengthThatCannotBeOpen() {
        OnnxWriter.Written written =
                roundTrip(ReferenceCase.orSkip("lstm-classifier").folder(), List.of(Map.of("batch", 3, "sequence", 6)));
        assertThat(written.open()).containsExactly("batch");
        assertThat(written.fixed()).isEqualTo(Map.of("sequence", 6));
    }

    @Test
    void standardOperators() {
        Path file = folder.resolve("model.onnx");
        try (HuggingFace source = HuggingFace.open(ReferenceCase.orSkip("bert").folder())) {
            OnnxWriter.write(file, ExportGraphs.of(source.model()), 6, source.weights());
        }
        try (OnnxModel model = OnnxModel.open(file)) {
            OnnxReport report = OnnxReport.of(model);
            assertThat(report.inputs())
                    .containsExactlyInAnyOrder(
                            "input_ids : INT64[batch, sequence]",
                            "attention_mask : INT64[batch, sequence]",
                            "token_type_ids : INT64[batch, sequence]");
            assertThat(report.outputs().getFirst()).startsWith("last_hidden_state : FLOAT[batch, sequence, ");
            assertThat(report.operators())
                    .containsKeys("MatMul", "Softmax", "LayerNormalization", "Gelu")
                    .doesNotContainKeys("Exp", "Erf", "ReduceMax");
        }
    }

    private OnnxWriter.Written roundTrip(Path from, List<Map<String, Integer>> sizes) {
        Path file = folder.resolve("model.onnx");
        try (HuggingFace source = HuggingFace.open(from)) {
            SizedGraph graphs = ExportGraphs.of(source.model());
            OnnxWriter.Written written = OnnxWriter.write(file, graphs, 6, source.weights());
            for (Map<String, Integer> each : sizes) {
                Graph graph = graphs.of(each);
                Map<String, Tensor> inputs = inputs(graph);
                Map<String, Tensor> expected = Interpreter.run(graph, inputs, OnnxRun.weights(source.weights()));
                try (OnnxImport again = OnnxImport.of(OnnxModel.open(file), OnnxBinding.sizes(each))) {
                    Map<String, Tensor> found = Interpreter.run(again.graph(), inputs, OnnxRun.weights(again));
                    assertThat(found.keySet()).isEqualTo(expected.keySet());
                    expected.forEach((key, value) -> assertThat(found.get(key).sameBits(value))
                            .as(key + " for " + each)
                            .isTrue());
                }
            }
            return written;
        }
    }

    /// Small ids; the mask has padding at the end of the first row.
    static Map<String, Tensor> inputs(Graph graph) {
        Map<String, Tensor> inputs = new LinkedHashMap<>();
        for (Value input : graph.inputs()) {
            String name = ((Op.Input) input.op()).name();
            Tensor tensor = input.dtype().isFloating() ? RandomTensors.of(input.type(), 3) : Tensor.zeros(input.type());
            for (long i = 0; !input.dtype().isFloating() && i < tensor.shape().elements(); i++) {
                tensor.setLong(
                        i,
                        switch (name) {
                            case "attention_mask" -> i == input.shape().dim(-1) - 1 ? 0 : 1;
                            case "token_type_ids" -> i % 2;
                            default -> 3 + i * 7 % 20;
                        });
            }
            inputs.put(name, tensor);
        }
        return inputs;
    }
}
