package ingot.compiler;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.List;
import java.util.function.BiFunction;
import org.junit.jupiter.api.Test;

class SimplifyTest {
    private static final Type TYPE = Type.f32(3, 4);

    @Test
    void fires() {
        becomesX((b, x) -> b.multiply(x, 1));
        becomesX((b, x) -> b.multiply(b.fullLike(x, 1), x));
        becomesX((b, x) -> b.divide(x, b.fullLike(x, 1)));
        becomesX((b, x) -> b.subtract(x, b.fullLike(x, 0)));
        becomesX((b, x) -> b.add(x, b.fullLike(x, -0.0)));
        becomesX((b, x) -> b.negate(b.negate(x)));
        becomesX((b, x) -> b.transpose(b.transpose(x, 1, 0), 1, 0));
        becomesX((b, x) -> b.reshape(b.reshape(x, 12), 3, 4));
        becomesX((b, x) -> b.bitcast(b.bitcast(x, DType.I32), DType.F32));
        becomesX((b, x) -> b.select(b.constant(true), x, b.fullLike(x, 2)));
        becomesX((b, x) -> b.select(b.constant(false), b.fullLike(x, 2), x));
        becomesX((b, x) -> b.add(new Op.Select(b.broadcast(b.input("c", Type.bool()), x.shape()), x, x)));
        becomesX((b, x) -> b.add(new Op.Convert(x, DType.F32)));
        becomesX((b, x) -> b.add(new Op.Slice(x, List.of(0, 0), List.of(3, 4), List.of(1, 1))));
        becomesX((b, x) -> b.add(new Op.Concatenate(List.of(x), 0)));
        becomesX((b, x) -> b.add(new Op.Pad(x, b.constant(7f), List.of(0, 0), List.of(0, 0), List.of(0, 0))));
    }

    @Test
    void composesViews() {
        Graph graph = simplified((b, x) -> {
            Value moved = b.transpose(b.reshape(x, 3, 2, 2), 2, 0, 1);
            return b.transpose(moved, 2, 0, 1);
        });
        assertThat(output(graph).op())
                .isInstanceOfSatisfying(
                        Op.Transpose.class, op -> assertThat(op.permutation()).isEqualTo(List.of(1, 2, 0)));
        Graph repeated = simplified((b, x) -> {
            Value row = b.reshape(b.slice(x, 0, 0, 1), 4);
            return b.broadcast(b.broadcast(row, Shape.of(5, 4), List.of(1)), Shape.of(5, 6, 4), List.of(0, 2));
        });
        assertThat(output(repeated).op())
                .isInstanceOfSatisfying(
                        Op.Broadcast.class, op -> assertThat(op.axes()).isEqualTo(List.of(2)));
    }

    @Test
    void doesNotFire() {
        stays((b, x) -> b.add(x, b.fullLike(x, 0))); // −0 + 0 = +0
        stays((b, x) -> b.subtract(x, b.fullLike(x, -0.0))); // −0 − −0 = +0
        stays((b, x) -> b.multiply(x, 0)); // NaN · 0 = NaN
        stays((b, x) -> b.subtract(b.fullLike(x, 0), x));
        stays((b, x) -> b.divide(b.fullLike(x, 1), x));
        stays((b, x) -> b.negate(b.exp(b.negate(x))));
        stays((b, x) -> b.slice(x, 0, 0, 2));
        stays((b, x) -> b.transpose(x, 1, 0));
    }

    @Test
    void integersHaveOneZero() {
        GraphBuilder b = new GraphBuilder("ints");
        Value x = b.input("x", Type.i32(3));
        b.output("y", b.add(x, b.fullLike(x, 0)));
        assertThat(output(Simplify.apply(b.build())).op()).isInstanceOf(Op.Input.class);
    }

    private static void becomesX(BiFunction<GraphBuilder, Value, Value> body) {
        assertThat(output(simplified(body)).op()).isEqualTo(new Op.Input("x", TYPE));
    }

    private static void stays(BiFunction<GraphBuilder, Value, Value> body) {
        Graph before = graph(body);
        assertThat(Simplify.apply(before)).isEqualTo(before);
    }

    private static Graph simplified(BiFunction<GraphBuilder, Value, Value> body) {
        Graph once = Simplify.apply(graph(body));
        assertThat(Simplify.apply(once)).as("idempotent").isEqualTo(once);
        return once;
    }

    private static Graph graph(BiFunction<GraphBuilder, Value, Value> body) {
        GraphBuilder b = new GraphBuilder("simplify");
        b.output("y", body.apply(b, b.input("x", TYPE)));
        return b.build();
    }

    private static Value output(Graph graph) {
        return graph.output("y");
    }
}
