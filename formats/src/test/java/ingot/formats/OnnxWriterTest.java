package ingot.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Interpreter;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.Gpt;
import ingot.nn.GptConfig;
import ingot.nn.Mlp;
import ingot.testkit.RandomTensors;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What is written and read again computes the same bits.
class OnnxWriterTest {
    @TempDir
    private Path folder;

    @Test
    void multilayerPerceptron() {
        GraphBuilder b = new GraphBuilder("mlp");
        b.output("logits", Mlp.of(5, 7, 3).logits(b, b.input("x", Type.f32(4, 5))));
        roundTrip(b.build(), Map.of("x", RandomTensors.of(Type.f32(4, 5), 1)));
    }

    @Test
    void gptWithMaskedTokens() {
        GraphBuilder b = new GraphBuilder("gpt");
        Value tokens = b.input("tokens", Type.i32(2, 6));
        Value mask = b.input("mask", Type.bool(2, 6));
        b.output("logits", Gpt.of(GptConfig.of(20, 8, 16, 2, 4)).logits(b, tokens, mask));
        Tensor seen = Tensor.zeros(Type.bool(2, 6));
        for (int i = 0; i < 12; i++) {
            seen.setLong(i, i < 9 ? 1 : 0);
        }
        roundTrip(
                b.build(),
                Map.of("tokens", RandomTensors.indices(Shape.of(2, 6), 20, new SplittableRandom(2)), "mask", seen));
    }

    /// import → export → import.
    @ParameterizedTest
    @ValueSource(strings = {"gpt2", "bert", "llama", "lstm-classifier", "mobilenet_v2"})
    void importedModels(String name) {
        Path file = ReferenceCase.orSkip(name).folder().resolve("model.onnx");
        try (OnnxModel model = OnnxModel.open(file)) {
            OnnxBinding binding = OnnxBinding.sizes(Map.of("batch", 2, "sequence", 5));
            OnnxImport imported = OnnxImport.of(model, binding);
            Map<String, Tensor> inputs = new LinkedHashMap<>();
            imported.graph().inputs().forEach(value -> {
                Tensor tensor = RandomTensors.of(value.type(), 3);
                for (long i = 0;
                        !value.dtype().isFloating() && i < tensor.shape().elements();
                        i++) {
                    tensor.setLong(i, i % 2);
                }
                inputs.put(((Op.Input) value.op()).name(), tensor);
            });
            roundTrip(imported.graph(), inputs, imported, OnnxRun.weights(imported));
        }
    }

    @Test
    void everyOpThatCannotBeWrittenIsNamed() {
        GraphBuilder b = new GraphBuilder("odd");
        Value x = b.input("x", Type.i32(4));
        Value bits = b.scope("shift", () -> b.binary(Op.BinaryKind.SHIFT_RIGHT, x, b.constant(2)));
        Value odd = b.scope("cast", () -> b.bitcast(bits, DType.F32));
        b.output("y", odd);
        assertThatThrownBy(() -> OnnxWriter.write(folder.resolve("odd.onnx"), b.build(), OnnxRun.source(Map.of())))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("Binary at shift")
                .hasMessageContaining("Bitcast at cast");
    }

    private void roundTrip(Graph graph, Map<String, Tensor> inputs) {
        Map<String, Tensor> weights = new LinkedHashMap<>();
        long seed = 10;
        for (Value weight : graph.weights()) {
            weights.put(((Op.Weight) weight.op()).name(), RandomTensors.of(weight.type(), seed++));
        }
        roundTrip(graph, inputs, OnnxRun.source(weights), weights);
    }

    private void roundTrip(Graph graph, Map<String, Tensor> inputs, WeightSource source, Map<String, Tensor> weights) {
        Map<String, Tensor> expected = Interpreter.run(graph, inputs, weights);
        Path first = folder.resolve("first.onnx");
        OnnxWriter.write(first, graph, source);
        try (OnnxImport again = OnnxImport.of(OnnxModel.open(first), OnnxBinding.NONE)) {
            assertThat(again.types().keySet()).isEqualTo(weights.keySet());
            Map<String, Tensor> found = Interpreter.run(again.graph(), inputs, OnnxRun.weights(again));
            assertThat(found.keySet()).isEqualTo(expected.keySet());
            expected.forEach((name, value) ->
                    assertThat(found.get(name).sameBits(value)).as(name).isTrue());
        }
    }
}
