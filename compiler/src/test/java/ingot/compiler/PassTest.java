package ingot.compiler;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Interpreter;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.Norms;
import ingot.nn.Softmax;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

/// FoldConstants, RemoveDead, InlineComposites, ExpandRandomBits.
class PassTest {
    @Test
    void foldConstantsFires() {
        GraphBuilder b = new GraphBuilder("fold");
        Value x = b.input("x", Type.f32(100, 100));
        Value five = b.add(b.fullLike(x, 2), b.fullLike(x, 3));
        b.output("repeated", b.multiply(x, five));
        b.output(
                "small",
                b.multiply(b.constant(Tensor.of(Shape.of(2), 1f, 2f)), b.constant(Tensor.of(Shape.of(2), 3f, 4f))));
        Graph folded = FoldConstants.apply(b.build());
        assertThat(Simplify.scalar(folded.output("repeated").op().operands().get(1)))
                .isEqualTo(Tensor.scalar(5f));
        assertThat(folded.output("small").op()).isEqualTo(new Op.Constant(Tensor.of(Shape.of(2), 3f, 8f)));
    }

    @Test
    void foldConstantsDoesNotFire() {
        GraphBuilder b = new GraphBuilder("fold");
        Tensor large = Tensor.zeros(Type.f32(65));
        b.output("large", b.negate(b.constant(large)));
        b.output("variable", b.add(b.input("x", Type.f32()), 1));
        b.output("repeated", b.fullLike(b.input("y", Type.f32(7)), 1));
        Graph before = b.build();
        assertThat(FoldConstants.apply(before)).isEqualTo(before);
    }

    @Test
    void removeDeadFires() {
        GraphBuilder b = new GraphBuilder("dead");
        Value x = b.input("x", Type.f32(2));
        b.input("unused", Type.f32(3));
        Value y = b.exp(x);
        b.log(y);
        b.output("y", y);
        Graph alive = RemoveDead.apply(b.build());
        assertThat(alive.values()).hasSize(3);
        assertThat(alive.inputs()).hasSize(2);
        assertThat(RemoveDead.apply(alive)).isEqualTo(alive);
    }

    @Test
    void inlineCompositesFiresUnlessKept() {
        GraphBuilder b = new GraphBuilder("inline");
        Value x = b.input("x", Type.f32(3, 8));
        Value gain = b.weight("gain", Type.f32(8));
        Value bias = b.weight("bias", Type.f32(8));
        b.output("y", Softmax.softmax(b, Norms.layerNorm(b, x, gain, bias, 1e-5)));
        Graph graph = b.build();
        String norm = composites(graph).getFirst();
        assertThat(composites(InlineComposites.apply(graph, Set.of()))).isEmpty();
        assertThat(composites(InlineComposites.apply(graph, Set.of(norm)))).containsExactly(norm);
        sameBits(graph, InlineComposites.apply(graph, Set.of()));
    }

    private static List<String> composites(Graph graph) {
        return graph.values().stream()
                .filter(value -> value.op() instanceof Op.Composite)
                .map(value -> ((Op.Composite) value.op()).function().name())
                .toList();
    }

    @Test
    void expandRandomBitsFires() {
        GraphBuilder b = new GraphBuilder("random");
        b.output("bits", b.add(new Op.RandomBits(Shape.of(3, 5), 2, b.input("key", Type.i32(4)))));
        Graph graph = b.build();
        Graph expanded = ExpandRandomBits.apply(graph);
        assertThat(expanded.values()).noneMatch(value -> value.op() instanceof Op.RandomBits);
        sameBits(graph, expanded);
    }

    static void sameBits(Graph before, Graph after) {
        Random random = new Random(3);
        Map<String, Tensor> inputs = new HashMap<>();
        Map<String, Tensor> weights = new HashMap<>();
        before.inputs()
                .forEach(value ->
                        inputs.put(((Op.Input) value.op()).name(), ProgramTest.random(value.type(), random, 5)));
        before.weights()
                .forEach(value ->
                        weights.put(((Op.Weight) value.op()).name(), ProgramTest.random(value.type(), random, 5)));
        Map<String, Tensor> expected = Interpreter.run(before, inputs, weights);
        Map<String, Tensor> found = Interpreter.run(after, inputs, weights);
        assertThat(found.keySet()).isEqualTo(expected.keySet());
        found.forEach((name, tensor) ->
                assertThat(tensor.sameBits(expected.get(name))).as(name).isTrue());
    }
}
