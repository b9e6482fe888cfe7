package ingot.compiler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.compiler.BatchFlow.Flow;
import ingot.compiler.BatchFlow.Kind;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.Norms;
import java.util.List;
import java.util.Set;
import java.util.function.BiFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class BatchFlowTest {
    private static final int TIME = 5;
    private static final int WIDTH = 6;

    @ParameterizedTest
    @ValueSource(ints = {1, 3})
    void kinds(int rows) {
        expect(rows, (b, x) -> b.iota(Type.i32(7), 0), Flow.INVARIANT);
        expect(rows, (b, x) -> b.exp(weight(b)), Flow.STEADY);
        expect(rows, (b, x) -> b.add(b.input("scale", Type.f32()), 1), Flow.STEADY);
        expect(rows, (b, x) -> b.sum(x, 0, 1, 2), Flow.SUM);
        expect(rows, (b, x) -> b.multiply(b.sum(x, 0, 1, 2), 2), Flow.ONCE);
        expect(rows, (b, x) -> b.multiply(b.sum(x, 0), b.slice(weight(b), 0, 0, TIME)), Flow.ONCE);
        expect(rows, (b, x) -> b.matmul(x, weight(b)), Flow.along(0));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 3})
    void theBatchMovesWithItsAxis(int rows) {
        expect(rows, (b, x) -> b.transpose(x, 2, 0, 1), Flow.along(1));
        expect(rows, (b, x) -> b.reshape(x, rows * TIME, WIDTH), Flow.along(0));
        expect(rows, (b, x) -> b.reshape(b.reshape(x, rows * TIME, WIDTH), rows, TIME, 2, 3), Flow.along(0));
        expect(rows, (b, x) -> b.sum(b.transpose(x, 1, 0, 2), 0), Flow.along(0));
        expect(rows, (b, x) -> b.broadcast(x, Shape.of(4, rows, TIME, WIDTH)), Flow.along(1));
        expect(rows, (b, x) -> b.dot(weight(b), x, List.of(), List.of(), List.of(1), List.of(2)), Flow.along(1));
        expect(rows, (b, x) -> b.dot(x, x, List.of(0), List.of(0), List.of(2), List.of(2)), Flow.along(0));
        expect(rows, (b, x) -> b.gather(weight(b), b.convert(x, ingot.ir.DType.I32), 0), Flow.along(0));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 3})
    void gradientsOfWeightsAreSums(int rows) {
        expect(
                rows,
                (b, x) -> {
                    Value flat = b.reshape(x, rows * TIME, WIDTH);
                    return b.dot(flat, flat, List.of(), List.of(), List.of(0), List.of(0));
                },
                Flow.SUM);
        expect(
                rows,
                (b, x) -> b.add(new Op.ScatterAdd(
                        b.convert(b.reshape(b.slice(x, 2, 0, 1), rows, TIME), ingot.ir.DType.I32), x, 0, 9, 1)),
                Flow.SUM);
    }

    @Test
    void whatCouplesRowsIsRefused() {
        refused((b, x) -> b.subtract(x, b.broadcast(b.sum(x, 0), x.shape(), List.of(1, 2))), "binary at %");
        refused((b, x) -> b.reduce(Op.ReduceKind.MAX, x, 0), "takes the max over the batch");
        refused((b, x) -> b.slice(x, 0, 0, 2), "takes a part of the rows");
        refused((b, x) -> b.concatenate(List.of(x, x), 0), "joins batches");
        refused((b, x) -> b.add(new Op.Reverse(x, List.of(0))), "reverses the batch");
        refused((b, x) -> b.add(new Op.Cumulative(Op.ReduceKind.SUM, x, 0, false)), "runs along the batch");
        refused(
                (b, x) -> {
                    Value flat = b.reshape(x, 3 * TIME, WIDTH);
                    return b.matmul(flat, b.transpose(flat, 1, 0));
                },
                "multiplies all rows with all rows");
        refused((b, x) -> b.reshape(b.transpose(x, 1, 0, 2), TIME * 3, WIDTH), "tears the rows");
    }

    @Test
    void aSingleMicroBatchMayMixItsRows() {
        GraphBuilder b = new GraphBuilder("norm");
        Value x = b.input("x", Type.f32(3, TIME, WIDTH));
        Value y = b.subtract(x, b.broadcast(b.sum(x, 0), x.shape(), List.of(1, 2)));
        b.output("y", y);
        List<Flow> flows = BatchFlow.single(b.build(), Set.of("x"), Set.of());
        assertThat(flows.get(y.id()).kind()).isEqualTo(Kind.MICRO);
    }

    @Test
    void compositesAreSeenThrough() {
        expect(
                3,
                (b, x) -> Norms.layerNorm(b, x, b.weight("g", Type.f32(WIDTH)), b.weight("c", Type.f32(WIDTH)), 1e-5),
                Flow.along(0));
    }

    @Test
    void keysDifferByMicroBatch() {
        GraphBuilder b = new GraphBuilder("random");
        Value key = b.input("key", Type.i32(4));
        Value bits = b.add(new Op.RandomBits(Shape.of(3, 2), 0, key));
        b.output("y", bits);
        List<Flow> flows = BatchFlow.of(b.build(), 3, Set.of(), Set.of("key"));
        assertThat(flows.get(key.id())).isEqualTo(Flow.WHOLE);
        assertThat(flows.get(bits.id())).isEqualTo(Flow.along(0));
    }

    private static Value weight(GraphBuilder b) {
        return b.weight("w", Type.f32(WIDTH, WIDTH));
    }

    private static Flow flow(int rows, BiFunction<GraphBuilder, Value, Value> body) {
        GraphBuilder b = new GraphBuilder("flow");
        Value y = body.apply(b, b.input("x", Type.f32(rows, TIME, WIDTH)));
        b.output("y", y);
        Graph graph = b.build();
        return BatchFlow.of(graph, rows, Set.of("x"), Set.of()).get(y.id());
    }

    private static void expect(int rows, BiFunction<GraphBuilder, Value, Value> body, Flow expected) {
        assertThat(flow(rows, body)).isEqualTo(expected);
    }

    private static void refused(BiFunction<GraphBuilder, Value, Value> body, String message) {
        assertThatThrownBy(() -> flow(3, body))
                .hasMessageContaining(message)
                .hasMessageContaining("couples the rows of a batch")
                .hasMessageContaining("use train.micro-batch = batch");
    }
}
