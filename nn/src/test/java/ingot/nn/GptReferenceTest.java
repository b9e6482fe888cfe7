package ingot.nn;

import static ingot.testkit.Reference.difference;
import static ingot.testkit.Reference.largest;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import ingot.autodiff.Gradients;
import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.Interpreter;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Gpt against PyTorch in float64: the `gpt2` case, 2 sequences of 14 tokens, 4 of them padding.
class GptReferenceTest {
    private static final double OUTPUT_TOLERANCE = 2e-5;
    private static final double LOSS_TOLERANCE = 1e-5;
    /// Of the largest element of all gradients.
    private static final double GRADIENT_TOLERANCE = 1e-5;

    private final Gpt gpt = Gpt.of(GptConfig.of(120, 32, 32, 2, 4));
    private Map<String, Tensor> weights;
    private Map<String, Tensor> expected;

    @BeforeEach
    void load() {
        ReferenceCase reference = ReferenceCase.orSkip("gpt2");
        weights = reference.tensors("model.safetensors");
        expected = reference.tensors("expected.safetensors");
    }

    @Test
    void parametersHaveTheNamesAndShapesOfTheFile() {
        Map<String, Type> declared = new HashMap<>();
        gpt.parameters().forEach(parameter -> declared.put(parameter.name(), parameter.type()));
        Map<String, Type> stored = new HashMap<>();
        weights.forEach((name, tensor) -> stored.put(name, tensor.type()));
        assertThat(declared).isEqualTo(stored);
    }

    @Test
    void lossAndEveryGradient() {
        GraphBuilder builder = new GraphBuilder("gpt2");
        Value tokens = builder.input("tokens", Type.i32(2, 14));
        Value targets = builder.input("targets", Type.i32(2, 14));
        Value scale = builder.input("scale", Type.f32());
        Value loss = gpt.loss(builder, tokens, targets, scale, null);
        List<Parameter> parameters = gpt.parameters();
        List<Value> gradients = Gradients.of(
                builder,
                loss,
                parameters.stream().map(p -> builder.weight(p.name(), p.type())).toList());
        builder.output("loss", loss);
        for (int i = 0; i < gradients.size(); i++) {
            builder.output(parameters.get(i).name(), gradients.get(i));
        }
        Tensor next = shifted(expected.get("labels"));
        int counted = 0;
        for (int target : next.toInts()) {
            counted += target == CrossEntropy.IGNORED ? 0 : 1;
        }
        Map<String, Tensor> inputs =
                Map.of("tokens", expected.get("input_ids"), "targets", next, "scale", Tensor.scalar(1f / counted));

        Map<String, Tensor> found = Interpreter.run(builder.build(), inputs, weights);

        assertThat(found.get("loss").getFloat(0))
                .isCloseTo(expected.get("loss").getFloat(0), within((float) LOSS_TOLERANCE));
        double largest = parameters.stream()
                .mapToDouble(p -> largest(expected.get("grad." + p.name()).toFloats()))
                .max()
                .orElseThrow();
        for (Parameter parameter : parameters) {
            assertThat(difference(found.get(parameter.name()), expected.get("grad." + parameter.name())))
                    .as(parameter.name())
                    .isLessThan(GRADIENT_TOLERANCE * largest);
        }
    }

    @Test
    void logitsWithPaddingMasked() {
        Tensor attended = expected.get("attention_mask");
        Tensor mask = Tensor.zeros(new Type(DType.BOOL, attended.shape()));
        for (long i = 0; i < attended.shape().elements(); i++) {
            mask.setLong(i, attended.getLong(i));
        }
        Map<String, Tensor> found = Interpreter.run(
                gpt.logitsGraph(2, 14, true), Map.of("tokens", expected.get("input_ids"), "mask", mask), weights);
        assertThat(difference(found.get("logits"), expected.get("logits"))).isLessThan(OUTPUT_TOLERANCE);
    }

    /// The label of each position is the next token; the last has none.
    private static Tensor shifted(Tensor labels) {
        int rows = labels.shape().dim(0);
        int time = labels.shape().dim(1);
        Tensor next = Tensor.zeros(labels.type());
        for (int row = 0; row < rows; row++) {
            for (int t = 0; t < time; t++) {
                long label = t + 1 < time ? labels.getLong((long) row * time + t + 1) : CrossEntropy.IGNORED;
                next.setLong((long) row * time + t, label);
            }
        }
        return next;
    }
}
