package ingot.autodiff;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Interpreter;
import ingot.ir.Op;
import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import org.junit.jupiter.api.Test;

class GradientsTest {
    @Test
    void cotangentsAreAddedInTheOrderOfTheUsers() {
        GraphBuilder b = new GraphBuilder("order");
        Value x = b.input("x", Type.f32());
        Value exp = b.exp(x);
        Value sine = b.unary(Op.UnaryKind.SIN, x);
        Value square = b.multiply(x, x);
        Value loss = b.add(b.add(square, sine), exp);
        Value dx = Gradients.of(b, loss, List.of(x)).getFirst();
        // ((exp′ + sin′) + x) + x
        Op.Binary last = add(dx);
        assertThat(last.b()).isEqualTo(x);
        Op.Binary middle = add(last.a());
        assertThat(middle.b()).isEqualTo(x);
        Op.Binary first = add(middle.a());
        assertThat(first.a()).isEqualTo(exp);
        assertThat(first.b().op()).isEqualTo(new Op.Unary(Op.UnaryKind.COS, x));
    }

    @Test
    void noMultiplicationByOneAndNoAdditionOfZero() {
        GraphBuilder b = new GraphBuilder("cheap");
        Value x = b.input("x", Type.f32(4));
        Value loss = b.sum(b.exp(x), 0);
        int before = b.values().size();
        Value dx = Gradients.of(b, loss, List.of(x)).getFirst();
        assertThat(dx.op()).isInstanceOf(Op.Unary.class); // eˣ itself
        assertThat(b.values().size() - before).isEqualTo(2); // the 1 and its repetition
    }

    @Test
    void dotGradientsNeedNoTransposeInEitherWeightLayout() {
        for (int axis : new int[] {0, 1}) {
            GraphBuilder b = new GraphBuilder("dot");
            Value x = b.input("x", Type.f32(2, 3, 4));
            Value w = b.input("w", axis == 0 ? Type.f32(4, 5) : Type.f32(5, 4));
            Value y = b.dot(x, w, List.of(), List.of(), List.of(2), List.of(axis));
            List<Value> gradients = Gradients.of(b, b.sum(b.multiply(y, y), 0, 1, 2), List.of(x, w));
            assertThat(gradients).allSatisfy(g -> assertThat(g.op()).isInstanceOf(Op.Dot.class));
            assertThat(((Op.Dot) gradients.get(1).op()).contractA()).containsExactly(0, 1);
        }
    }

    @Test
    void nodesCarryTheScopeOfTheirForwardValue() {
        GraphBuilder b = new GraphBuilder("scopes");
        Value x = b.input("x", Type.f32(3));
        Value y = b.scope("h.0", () -> b.scope("attn", () -> b.unary(Op.UnaryKind.SIN, x)));
        Value dx = Gradients.of(b, b.sum(b.multiply(y, y), 0), List.of(x)).getFirst();
        assertThat(b.scope(dx)).isEqualTo("h.0.attn′");
        assertThat(b.scope()).isEmpty();
    }

    @Test
    void whatTheLossDoesNotDependOnGetsZeros() {
        GraphBuilder b = new GraphBuilder("unused");
        Value x = b.input("x", Type.f32(2));
        Value unused = b.input("unused", Type.f32(3));
        b.output("d", Gradients.of(b, b.sum(x, 0), List.of(x, unused)).get(1));
        assertThat(run(b, Map.of())).containsExactly(0, 0, 0);
    }

    @Test
    void derivativesAreTotal() {
        GraphBuilder b = new GraphBuilder("total");
        Value x = b.input("x", Type.f32());
        Value square = b.multiply(x, x);
        List<Value> gradients = Gradients.of(b, b.multiply(square, x), List.of(x, square));
        b.output("d", gradients.get(0));
        b.output("e", gradients.get(1));
        Map<String, Tensor> found = Interpreter.run(b.build(), Map.of("x", Tensor.scalar(3f)), Map.of());
        assertThat(found.get("d").getFloat(0)).isEqualTo(27); // (x³)′, through the square as well
        assertThat(found.get("e").getFloat(0)).isEqualTo(3);
    }

    @Test
    void severalOutputsWithTheirCotangents() {
        GraphBuilder b = new GraphBuilder("vjp");
        Value x = b.input("x", Type.f32(2));
        Value y = b.multiply(x, 3);
        Value z = b.sum(b.multiply(x, x), 0);
        Value dy = b.constant(Tensor.of(Shape.of(2), 1f, 10f));
        b.output(
                "d",
                Gradients.vjp(b, List.of(y, z, x), List.of(dy, b.constant(100f), dy), List.of(x))
                        .getFirst());
        // 3·dy + 200·x + dy
        assertThat(run(b, Map.of("x", Tensor.of(Shape.of(2), 1f, 2f)))).containsExactly(204, 440);
    }

    @Test
    void equalOperandsShareTheGradientOfAnExtreme() {
        Tensor x = Tensor.of(Shape.of(4), 1f, 2f, 2f, 0f);
        assertThat(slopes((b, v) -> b.reduce(ReduceKind.MAX, v, 0), x)).containsExactly(0, 0.5f, 0.5f, 0);
        Tensor y = Tensor.of(Shape.of(4), 1f, 0f, 0f, 0f);
        assertThat(slopes((b, v) -> b.reduce(ReduceKind.MIN, v, 0), y))
                .containsExactly(new float[] {0, 1 / 3f, 1 / 3f, 1 / 3f});
        assertThat(slopes((b, v) -> b.sum(b.max(v, b.constant(2f)), 0), x)).containsExactly(0, 0.5f, 0.5f, 0);
        // A running maximum is the first of equal elements: 1, 2, 2, 2
        Op.ReduceKind max = ReduceKind.MAX;
        assertThat(slopes((b, v) -> b.sum(b.add(new Op.Cumulative(max, v, 0, false)), 0), x))
                .containsExactly(1, 3, 0, 0);
        // From the other end 2, 2, 2, 0
        assertThat(slopes((b, v) -> b.sum(b.add(new Op.Cumulative(max, v, 0, true)), 0), x))
                .containsExactly(0, 0, 3, 1);
    }

    @Test
    void gradientsOfGradients() {
        GraphBuilder b = new GraphBuilder("second");
        Value x = b.input("x", Type.f32());
        Value first =
                Gradients.of(b, b.multiply(b.multiply(x, x), x), List.of(x)).getFirst();
        b.output("d", Gradients.of(b, first, List.of(x)).getFirst());
        assertThat(run(b, Map.of("x", Tensor.scalar(5f)))).containsExactly(30);
    }

    @Test
    void wrongQuestionsAreNamed() {
        GraphBuilder b = new GraphBuilder("wrong");
        Value x = b.input("x", Type.f32(2));
        Value i = b.input("i", Type.i32());
        assertThatThrownBy(() -> Gradients.of(b, x, List.of(x)))
                .isInstanceOf(IngotException.class)
                .hasMessage("gradient: the loss must be a floating-point scalar, got f32[2] at %0; reduce it first");
        assertThatThrownBy(() -> Gradients.of(b, b.sum(x, 0), List.of(i)))
                .isInstanceOf(IngotException.class)
                .hasMessage("gradient: %1 : i32[] has none, only floating-point values do");
    }

    private static float[] slopes(BiFunction<GraphBuilder, Value, Value> loss, Tensor at) {
        GraphBuilder b = new GraphBuilder("slopes");
        Value x = b.input("x", at.type());
        b.output("d", Gradients.of(b, loss.apply(b, x), List.of(x)).getFirst());
        return run(b, Map.of("x", at));
    }

    private static float[] run(GraphBuilder b, Map<String, Tensor> inputs) {
        Graph graph = b.build();
        Map<String, Tensor> all = new java.util.HashMap<>(inputs);
        graph.inputs().forEach(v -> all.putIfAbsent(((Op.Input) v.op()).name(), Tensor.zeros(v.type())));
        return Interpreter.run(graph, all, Map.of()).get("d").toFloats();
    }

    private static Op.Binary add(Value value) {
        Op.Binary op = (Op.Binary) value.op();
        assertThat(op.kind()).isEqualTo(BinaryKind.ADD);
        return op;
    }
}
