package ingot.nn;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.autodiff.Gradients;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Interpreter;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.testkit.GradientCheck;
import ingot.testkit.RandomTensors;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class LoraTest {
    private static final Lora.Settings SETTINGS = new Lora.Settings(2, 6, 0, List.of("c_attn", "*.c_fc"));

    /// x·W with W [in, out], Wᵀ [out, in], and W·x, over one weight each.
    private static Graph three() {
        GraphBuilder b = new GraphBuilder("three");
        Value x = b.input("x", Type.f32(3, 4));
        Value straight = b.matmul(x, b.weight("straight.weight", Type.f32(4, 5)));
        Value turned = Layers.linearTransposed(b, x, b.weight("turned.weight", Type.f32(5, 4)), null);
        Value transposed = b.matmul(x, b.transpose(b.weight("transposed.weight", Type.f32(5, 4)), 1, 0));
        Value left = b.matmul(b.weight("left", Type.f32(5, 4)), b.transpose(x, 1, 0)); // [5, 3]
        b.output("straight", straight);
        b.output("turned", turned);
        b.output("transposed", transposed);
        b.output("left", left);
        return b.build();
    }

    private static Map<String, Tensor> weights(Graph graph) {
        Map<String, Tensor> weights = new LinkedHashMap<>();
        for (Value weight : graph.weights()) {
            String name = ((Op.Weight) weight.op()).name();
            weights.put(name, RandomTensors.of(weight.type(), name.hashCode()));
        }
        return weights;
    }

    /// The adapted graph computes what the merged weights do.
    @Test
    void everyLayoutAndItsMerge() {
        Graph graph = three();
        Lora lora = Lora.of(new Lora.Settings(2, 3, 0, List.of("straight", "turned", "transposed", "left")), graph);
        assertThat(lora.sites())
                .containsExactly(
                        new Lora.Site("straight.weight", 4, 5, false),
                        new Lora.Site("turned.weight", 4, 5, true),
                        new Lora.Site("transposed.weight", 4, 5, true),
                        new Lora.Site("left", 4, 5, true));
        Graph adapted = lora.adapt(graph);
        Map<String, Tensor> inputs = Map.of("x", RandomTensors.of(Type.f32(3, 4), 7));
        Map<String, Tensor> weights = weights(adapted);
        Map<String, Tensor> found = Interpreter.run(adapted, inputs, weights);
        for (Lora.Site site : lora.sites()) {
            Lora.merge(site, 2, 1.5, weights.get(site.weight()), weights.get(site.nameA()), weights.get(site.nameB()));
        }
        Interpreter.run(graph, inputs, weights).forEach((name, expected) -> {
            for (int i = 0; i < 15; i++) {
                assertThat(found.get(name).getFloat(i))
                        .as(name)
                        .isCloseTo(expected.getFloat(i), org.assertj.core.data.Offset.offset(1e-4f));
            }
        });
    }

    @Test
    void aModelBeginsWithItsOwnBits() {
        Gpt gpt = Gpt.of(GptConfig.of(20, 8, 16, 2, 4));
        Graph graph = gpt.logitsGraph(2, 6, false);
        Lora lora = Lora.of(SETTINGS, graph);
        assertThat(lora.sites()).hasSize(4);
        assertThat(lora.parameters().getFirst().name())
                .isEqualTo("base_model.model.transformer.h.0.attn.c_attn.lora_A.weight");
        Graph adapted = lora.adapt(graph);
        Map<String, Tensor> weights = weights(graph);
        lora.parameters().forEach(parameter -> {
            Tensor tensor = Tensor.zeros(parameter.type());
            parameter.initializer().fill(tensor, 1, parameter.name());
            weights.put(parameter.name(), tensor);
        });
        Map<String, Tensor> inputs =
                Map.of("tokens", RandomTensors.indices(Shape.of(2, 6), 20, new SplittableRandom(2)));
        Tensor expected = Interpreter.run(graph, inputs, weights).get("logits");
        assertThat(Interpreter.run(adapted, inputs, weights).get("logits").sameBits(expected))
                .isTrue();
        assertThat(weights.get(lora.sites().getFirst().nameA()).getFloat(0)).isNotZero();
    }

    @Test
    void gradients() {
        GraphBuilder b = new GraphBuilder("tiny");
        Value x = b.input("x", Type.f32(3, 4));
        Value h = b.tanh(b.matmul(x, b.weight("first.weight", Type.f32(4, 5))));
        Value y = Layers.linearTransposed(b, h, b.weight("second.weight", Type.f32(2, 5)), null);
        b.output("loss", b.sum(b.multiply(y, y), 0, 1));
        Graph graph = b.build();
        Lora lora = Lora.of(new Lora.Settings(2, 4, 0, List.of("*")), graph);
        Graph adapted = lora.adapt(graph);

        GraphBuilder c = new GraphBuilder("checked");
        Value loss = c.inline(adapted, List.of(c.input("x", Type.f32(3, 4)))).getFirst();
        List<Value> wrt = c.values().stream()
                .filter(v -> v.op() instanceof Op.Weight w && w.name().contains("lora"))
                .toList();
        assertThat(wrt).hasSize(4);
        List<Value> gradients = Gradients.of(c, loss, wrt);
        c.output("loss", loss);
        Map<String, String> names = new LinkedHashMap<>();
        for (int i = 0; i < wrt.size(); i++) {
            String name = ((Op.Weight) wrt.get(i).op()).name();
            c.output("d" + i, gradients.get(i));
            names.put(name, "d" + i);
        }
        Graph checked = c.build();
        Map<String, Tensor> tensors = weights(checked);
        tensors.put("x", RandomTensors.of(Type.f32(3, 4), 3));
        GradientCheck.check(checked, tensors, "loss", names);
    }

    /// Learning drops what goes into the terms, and nothing else; each row by its own number.
    @Test
    void dropout() {
        GraphBuilder b = new GraphBuilder("wide");
        b.output("y", b.matmul(b.input("x", Type.f32(2, 64)), b.weight("w.weight", Type.f32(64, 1))));
        Graph graph = b.build();
        Lora lora = Lora.of(new Lora.Settings(1, 1, 0.5, List.of("w")), graph);
        Graph learning = lora.adaptForLearning(graph, 2);
        Map<String, Tensor> weights = new LinkedHashMap<>();
        weights.put("w.weight", Tensor.zeros(Type.f32(64, 1)));
        weights.put(lora.sites().getFirst().nameA(), ones(Type.f32(1, 64)));
        weights.put(lora.sites().getFirst().nameB(), ones(Type.f32(1, 1)));
        Map<String, Tensor> inputs = Map.of("x", ones(Type.f32(2, 64)), "key", Tensor.of(Shape.of(4), 1, 2, 3, 0));
        List<Float> sums = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            sums.add(Interpreter.run(learning, inputs, weights).get("y").getFloat(i));
        }
        assertThat(sums).allSatisfy(sum -> assertThat(sum % 2).isZero());
        assertThat(sums).allSatisfy(sum -> assertThat(sum).isBetween(32f, 96f));
        assertThat(sums.get(0)).isNotEqualTo(sums.get(1));
        assertThat(lora.adapt(graph).inputs()).hasSize(1);
    }

    private static Tensor ones(Type type) {
        Tensor tensor = Tensor.zeros(type);
        for (int i = 0; i < type.shape().elements(); i++) {
            tensor.setFloat(i, 1);
        }
        return tensor;
    }

    @Test
    void aTargetThatIsNotThere() {
        Graph graph = three();
        assertThatThrownBy(() -> Lora.of(new Lora.Settings(1, 1, 0, List.of("straight", "query")), graph))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("the target query names no matrix that a product reads; there are turned");
        assertThatThrownBy(() -> new Lora.Settings(0, 1, 0, List.of("a")))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("a rank from 1");
    }
}
