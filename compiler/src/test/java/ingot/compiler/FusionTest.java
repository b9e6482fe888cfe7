package ingot.compiler;

import static ingot.compiler.Lowerings.checked;
import static ingot.compiler.Lowerings.graph;
import static ingot.compiler.Lowerings.kinds;
import static org.assertj.core.api.Assertions.assertThat;

import ingot.autodiff.Gradients;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.Activations;
import ingot.nn.Attention;
import ingot.nn.CrossEntropy;
import ingot.nn.Gpt;
import ingot.nn.GptConfig;
import ingot.nn.Layers;
import ingot.nn.Norms;
import ingot.nn.Parameter;
import ingot.nn.Randomness;
import ingot.nn.Softmax;
import ingot.testkit.Golden;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

/// How many kernels the functions of a transformer take, with the same bits as their graphs; goldens show them.
class FusionTest {
    /// The function's value and its gradients by a given cotangent.
    private static Graph withGradients(Function<GraphBuilder, Value> body) {
        GraphBuilder b = new GraphBuilder("test");
        Value y = body.apply(b);
        List<Value> wrt = b.values().stream()
                .filter(v -> v.op() instanceof Op.Input && v.dtype().isFloating())
                .toList();
        Value cotangent = b.input("dy", y.type());
        List<Value> gradients = Gradients.vjp(b, List.of(y), List.of(cotangent), wrt);
        b.output("y", y);
        for (int i = 0; i < wrt.size(); i++) {
            b.output("d" + ((Op.Input) wrt.get(i).op()).name(), gradients.get(i));
        }
        return b.build();
    }

    private static Value softmax(GraphBuilder b) {
        return Softmax.softmax(b, b.multiply(b.input("x", Type.f32(2, 3, 20)), 0.25));
    }

    private static Value layerNorm(GraphBuilder b) {
        return Norms.layerNorm(
                b,
                b.input("x", Type.f32(3, 4, 20)),
                b.input("weight", Type.f32(20)),
                b.input("bias", Type.f32(20)),
                1e-5);
    }

    @Test
    void softmaxIsOneKernel() {
        assertThat(kinds(checked(graph(FusionTest::softmax)))).containsExactly("row");
    }

    @Test
    void softmaxAndItsGradientAreTwoKernels() {
        Lowered lowered = checked(withGradients(FusionTest::softmax));
        assertThat(kinds(lowered)).hasSizeLessThanOrEqualTo(2).containsOnly("row");
        Golden.check("softmax", lowered.describe());
    }

    @Test
    void layerNormIsOneKernel() {
        assertThat(kinds(checked(graph(FusionTest::layerNorm)))).containsExactly("row");
    }

    @Test
    void layerNormAndItsGradientAreARowAndAColumn() {
        Lowered lowered = checked(withGradients(FusionTest::layerNorm));
        assertThat(kinds(lowered)).containsExactly("row", "column");
        Golden.check("layerNorm", lowered.describe());
    }

    @Test
    void residualAndNormAreOneKernel() {
        GraphBuilder b = new GraphBuilder("test");
        Value sum = b.add(b.input("a", Type.f32(6, 20)), b.input("b", Type.f32(6, 20)));
        b.output("sum", sum);
        b.output("normal", Norms.layerNorm(b, sum, b.input("w", Type.f32(20)), b.input("c", Type.f32(20)), 1e-5));
        assertThat(kinds(checked(b.build()))).containsExactly("row");
    }

    @Test
    void geluIsOneMapEachWay() {
        Lowered lowered = checked(withGradients(b -> Activations.geluTanh(b, b.input("x", Type.f32(4, 20)))));
        assertThat(kinds(lowered)).hasSizeLessThanOrEqualTo(2).containsOnly("map");
    }

    @Test
    void crossEntropyIsOneKernel() {
        Lowered lowered = checked(graph(b ->
                CrossEntropy.crossEntropy(b, b.input("logits", Type.f32(6, 20)), b.input("targets", Type.i32(6)))));
        assertThat(kinds(lowered)).containsExactly("row");
    }

    @Test
    void attentionHasNoCopies() {
        Lowered lowered = checked(withGradients(b -> {
            List<Value> parts = new ArrayList<>();
            Value all = b.multiply(b.input("qkv", Type.f32(2, 7, 3 * 12)), 1.5);
            for (Value part : Layers.split(b, all, 3, 2)) {
                parts.add(b.reshape(part, 2, 7, 3, 4));
            }
            Attention.Options options = Attention.Options.of(true, 4);
            Value mixed = Attention.attention(b, parts.get(0), parts.get(1), parts.get(2), null, options, null);
            return b.reshape(mixed, 14, 12);
        }));
        assertThat(lowered.calls()).noneMatch(FusionTest::isCopy);
        assertThat(kinds(lowered).stream().filter("matmul"::equals)).hasSize(6);
        Golden.check("attention", lowered.describe());
    }

    @Test
    void gptTrainingStep() {
        Lowered lowered = checked(gpt(false));
        assertThat(lowered.calls()).noneMatch(FusionTest::isCopy);
        assertThat(kinds(lowered)).noneMatch(kind -> kind.startsWith("loop"));
        Golden.check("gpt", lowered.describe());
    }

    @Test
    void gptTrainingStepWithDropout() {
        Lowered lowered = checked(gpt(true));
        assertThat(lowered.calls()).noneMatch(FusionTest::isCopy);
    }

    @Test
    void equalGraphsLowerToEqualKernels() {
        assertThat(Lowering.lower(gpt(true))).isEqualTo(Lowering.lower(gpt(true)));
    }

    private static boolean isCopy(Lowered.Call call) {
        return call.kernel() instanceof Kernel.Map map
                && map.body().outputs().values().stream().allMatch(value -> value.op() instanceof Op.Input);
    }

    private static Graph gpt(boolean dropout) {
        GraphBuilder b = new GraphBuilder("gpt");
        GptConfig base = GptConfig.of(50, 8, 32, 1, 2);
        double rate = dropout ? 0.1 : 0;
        Gpt gpt = Gpt.of(new GptConfig(
                50, 8, 32, 1, 2, base.inner(), rate, rate, rate, base.epsilon(), base.activation(), base.deviation()));
        Value tokens = b.input("tokens", Type.i32(2, 8));
        Value targets = b.input("targets", Type.i32(2, 8));
        Value scale = b.input("scale", Type.f32(16));
        Value loss = gpt.loss(b, tokens, targets, scale, dropout ? Randomness.input(b) : null);
        List<Value> weights = new ArrayList<>();
        for (Parameter parameter : gpt.parameters()) {
            weights.add(b.weight(parameter.name(), parameter.type()));
        }
        List<Value> gradients = Gradients.of(b, loss, weights);
        b.output("loss", loss);
        for (int i = 0; i < weights.size(); i++) {
            b.output("gradient " + gpt.parameters().get(i).name(), gradients.get(i));
        }
        return b.build();
    }
}
