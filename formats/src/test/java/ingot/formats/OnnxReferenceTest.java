package ingot.formats;

import static ingot.testkit.Reference.difference;
import static ingot.testkit.Reference.largest;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import ingot.autodiff.Gradients;
import ingot.cpu.TilePool;
import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Interpreter;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.CrossEntropy;
import ingot.store.Safetensors;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The `model.onnx` of the PyTorch reference, in float64: outputs, losses and the gradients of imported weights.
class OnnxReferenceTest {
    private static final double OUTPUT_TOLERANCE = 2e-5;
    private static final double LOSS_TOLERANCE = 1e-5;
    /// Of the largest element of all gradients.
    private static final double GRADIENT_TOLERANCE = 1e-5;

    @ParameterizedTest
    @ValueSource(strings = {"gpt2", "bert", "llama", "lstm-classifier", "mobilenet_v2"})
    void outputsAndGradients(String name) {
        Path folder = ReferenceCase.orSkip(name).folder();
        Map<String, Tensor> expected = tensors(folder.resolve("expected.safetensors"));
        try (OnnxModel model = OnnxModel.open(folder.resolve("model.onnx"))) {
            OnnxImport imported = OnnxImport.of(model, binding(model, expected));
            Map<String, Tensor> weights = OnnxRun.weights(imported);
            Map<String, Tensor> inputs = new LinkedHashMap<>();
            for (Value input : imported.graph().inputs()) {
                String key = ((Op.Input) input.op()).name();
                inputs.put(key, expected.get(key));
            }

            Map<String, Tensor> found = Interpreter.run(imported.graph(), inputs, weights);
            found.forEach((key, value) ->
                    assertThat(difference(value, expected.get(key))).as(key).isLessThan(OUTPUT_TOLERANCE));
            try (TilePool pool = new TilePool(2)) {
                Map<String, Tensor> compiled = OnnxRun.compiled(imported.graph(), inputs, weights, pool);
                found.forEach((key, value) ->
                        assertThat(compiled.get(key).sameBits(value)).as(key).isTrue());
            }
            gradients(imported.graph(), inputs, weights, expected, tensors(folder.resolve("model.safetensors")));
        }
    }

    private static void gradients(
            Graph graph,
            Map<String, Tensor> inputs,
            Map<String, Tensor> weights,
            Map<String, Tensor> expected,
            Map<String, Tensor> parameters) {
        GraphBuilder b = new GraphBuilder("loss");
        List<Value> operands = new ArrayList<>();
        for (Value input : graph.inputs()) {
            operands.add(b.input(((Op.Input) input.op()).name(), input.type()));
        }
        List<Value> results = b.inline(graph, operands);
        Map<String, Value> outputs = new HashMap<>();
        int i = 0;
        for (String key : graph.outputs().keySet()) {
            outputs.put(key, results.get(i++));
        }
        Value loss = outputs.containsKey("logits")
                ? crossEntropy(b, outputs.get("logits"), expected.get("labels"))
                : distance(b, outputs, expected);
        List<Value> wrt = b.values().stream()
                .filter(v -> v.op() instanceof Op.Weight && v.dtype() == DType.F32)
                .toList();
        List<Value> gradients = Gradients.of(b, loss, wrt);
        b.output("loss", loss);
        for (int k = 0; k < wrt.size(); k++) {
            b.output("grad." + ((Op.Weight) wrt.get(k).op()).name(), gradients.get(k));
        }
        Map<String, Tensor> found = Interpreter.run(b.build(), inputs, weights);
        assertThat((double) found.get("loss").getFloat(0))
                .isCloseTo(expected.get("loss").getFloat(0), within(LOSS_TOLERANCE));

        double largest = 0;
        for (String key : parameters.keySet()) {
            Tensor gradient = expected.get("grad." + key);
            largest = gradient == null ? largest : Math.max(largest, largest(gradient.toFloats()));
        }
        int compared = 0;
        for (Map.Entry<String, Tensor> parameter : parameters.entrySet()) {
            Tensor gradient = expected.get("grad." + parameter.getKey());
            float[] sum = sumOfMatching(parameter.getValue(), weights, found);
            if (gradient != null && sum != null) {
                float[] wanted = gradient.toFloats();
                for (int k = 0; k < sum.length; k++) {
                    sum[k] -= wanted[k];
                }
                assertThat(largest(sum)).as(parameter.getKey()).isLessThan(GRADIENT_TOLERANCE * largest);
                compared++;
            }
        }
        // an export renames, transposes, merges and folds parameters; those that it keeps are enough to see a wrong rule
        assertThat(compared).isGreaterThanOrEqualTo(2);
    }

    /// Exporters store a matrix under another name, transposed, or twice when it is shared: the gradient of a parameter
    /// is the sum over all weights with its values.
    private static float[] sumOfMatching(Tensor parameter, Map<String, Tensor> weights, Map<String, Tensor> found) {
        float[] values = parameter.type().dtype() == DType.F32 ? parameter.toFloats() : new float[0];
        float[] sum = null;
        for (Map.Entry<String, Tensor> weight : weights.entrySet()) {
            Tensor gradient = found.get("grad." + weight.getKey());
            if (gradient == null || gradient.shape().elements() != values.length || values.length < 2) {
                continue;
            }
            boolean same = java.util.Arrays.equals(weight.getValue().toFloats(), values);
            boolean turned = !same
                    && gradient.shape().rank() == 2
                    && java.util.Arrays.equals(transposed(weight.getValue()), values);
            if (same || turned) {
                float[] own = turned ? transposed(gradient) : gradient.toFloats();
                sum = sum == null ? new float[own.length] : sum;
                for (int i = 0; i < own.length; i++) {
                    sum[i] += own[i];
                }
            }
        }
        // a vector of equal values (ones, zeros) matches any of its kind
        boolean unclear =
                values.length > 0 && values[0] == values[values.length - 1] && values[0] == values[values.length / 2];
        return unclear ? null : sum;
    }

    private static float[] transposed(Tensor matrix) {
        int rows = matrix.shape().dim(0);
        int columns = matrix.shape().dim(1);
        float[] turned = new float[rows * columns];
        for (int i = 0; i < turned.length; i++) {
            turned[i] = matrix.getFloat((long) i % rows * columns + i / rows);
        }
        return turned;
    }

    /// A decoder predicts the next token; a classifier the label of its row.
    private static Value crossEntropy(GraphBuilder b, Value logits, Tensor labels) {
        boolean next = logits.shape().rank() == 3;
        int time = next ? logits.shape().dim(1) : 1;
        int rows = logits.shape().dim(0);
        int kept = next ? time - 1 : 1;
        int[] targets = new int[rows * kept];
        int counted = 0;
        for (int i = 0; i < targets.length; i++) {
            targets[i] = labels.getInt(next ? (long) i / kept * time + i % kept + 1 : i);
            counted += targets[i] == CrossEntropy.IGNORED ? 0 : 1;
        }
        Value seen = next ? b.slice(logits, 1, 0, kept) : logits;
        Value losses = CrossEntropy.crossEntropy(
                b,
                b.reshape(seen, rows * kept, logits.shape().dim(-1)),
                b.constant(Tensor.of(Shape.of(targets.length), targets)));
        return b.multiply(b.sum(losses, 0), 1.0 / counted);
    }

    private static Value distance(GraphBuilder b, Map<String, Value> outputs, Map<String, Tensor> expected) {
        Tensor mask = expected.get("attention_mask");
        float[] kept = new float[Math.toIntExact(mask.shape().elements())];
        int tokens = 0;
        for (int i = 0; i < kept.length; i++) {
            kept[i] = mask.getLong(i);
            tokens += mask.getInt(i);
        }
        Value hidden = outputs.get("last_hidden_state");
        Value off = b.subtract(hidden, b.constant(expected.get("target_hidden")));
        Value seen = b.broadcast(b.constant(Tensor.of(mask.shape(), kept)), hidden.shape(), List.of(0, 1));
        Value first = b.multiply(
                b.sum(b.multiply(b.multiply(off, off), seen), 0, 1, 2),
                1.0 / (tokens * hidden.shape().dim(2)));
        Value pooled = b.subtract(outputs.get("pooler_output"), b.constant(expected.get("target_pooled")));
        return b.add(
                first,
                b.multiply(
                        b.sum(b.multiply(pooled, pooled), 0, 1),
                        1.0 / pooled.shape().elements()));
    }

    private static OnnxBinding binding(OnnxModel model, Map<String, Tensor> expected) {
        OnnxBinding binding = OnnxBinding.NONE;
        for (OnnxGraph.Port port : model.graph().freeInputs()) {
            binding = binding.shape(port.name(), expected.get(port.name()).shape());
        }
        return binding;
    }

    private static Map<String, Tensor> tensors(Path file) {
        Map<String, Tensor> tensors = new LinkedHashMap<>();
        try (Safetensors opened = Safetensors.open(file)) {
            for (Map.Entry<String, Type> entry : opened.tensors().entrySet()) {
                tensors.put(entry.getKey(), opened.read(entry.getKey()));
            }
        }
        return tensors;
    }
}
