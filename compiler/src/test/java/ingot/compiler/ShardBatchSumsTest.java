package ingot.compiler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.autodiff.Gradients;
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
import ingot.nn.Initializer;
import ingot.nn.Layers;
import ingot.nn.Mlp;
import ingot.nn.Parameter;
import ingot.nn.Randomness;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.IntFunction;
import org.junit.jupiter.api.Test;

class ShardBatchSumsTest {
    private static final int BATCH = 4;

    @Test
    void gradientsOfAnMlp() {
        Mlp mlp = Mlp.of(5, 7, 3);
        checkParts(
                batch -> {
                    GraphBuilder b = new GraphBuilder("mlp");
                    Value x = b.input("x", Type.f32(batch, 5));
                    Value targets = b.input("targets", Type.i32(batch));
                    Value loss = mlp.loss(b, x, targets, b.input("scale", Type.f32()));
                    return withGradients(b, loss, mlp.parameters());
                },
                mlp.parameters(),
                List.of("x", "targets"));
    }

    @Test
    void gradientsOfAGpt() {
        checkGpt(Gpt.of(GptConfig.of(11, 8, 8, 2, 2)));
    }

    /// Where only a part of the positions is used, and dropout draws by row.
    @Test
    void gradientsOfAGptWithDropout() {
        checkGpt(Gpt.of(GptConfig.of(11, 16, 8, 1, 2).withDropout(0.3)));
    }

    private static void checkGpt(Gpt gpt) {
        checkParts(
                batch -> {
                    GraphBuilder b = new GraphBuilder("gpt");
                    Value tokens = b.input("tokens", Type.i32(batch, 8));
                    Value targets = b.input("targets", Type.i32(batch, 8));
                    Value scale = b.input("scale", Type.f32());
                    Randomness random = gpt.config().residualDropout() > 0 ? Randomness.input(b) : null;
                    return withGradients(b, gpt.loss(b, tokens, targets, scale, random), gpt.parameters());
                },
                gpt.parameters(),
                List.of("tokens", "targets"));
    }

    @Test
    void gradientsOfAConvolution() {
        List<Parameter> parameters = List.of(
                new Parameter("kernel", Type.f32(4, 3, 3, 3), new Initializer.Normal(1), true),
                new Parameter("bias", Type.f32(4), new Initializer.Normal(1), true),
                new Parameter("head", Type.f32(16, 2), new Initializer.Normal(1), true));
        checkParts(
                batch -> {
                    GraphBuilder b = new GraphBuilder("convolution");
                    Value x = b.input("x", Type.f32(batch, 3, 5, 5));
                    Value kernel = b.weight("kernel", Type.f32(4, 3, 3, 3));
                    Value y = Layers.conv2d(b, x, kernel, b.weight("bias", Type.f32(4)), 1, 1, 1);
                    Value pooled = b.reshape(Layers.maxPool2d(b, y, 2, 2, 0), batch, 16);
                    Value out = Layers.linear(b, pooled, b.weight("head", Type.f32(16, 2)), null);
                    return withGradients(b, b.sum(b.multiply(out, out), 0, 1), parameters);
                },
                parameters,
                List.of("x"));
    }

    @Test
    void everySumOverTheBatchGetsSegmentsAndNoOtherOne() {
        GraphBuilder b = new GraphBuilder("sums");
        Value x = b.input("x", Type.f32(4, 3, 8));
        Value y = b.input("y", Type.f32(4, 3, 8));
        b.output("outer", b.dot(x, y, List.of(), List.of(), List.of(1, 0), List.of(1, 0)));
        b.output("inner", b.sum(x, 2));
        b.output("over", b.sum(b.transpose(x, 1, 0, 2), 0, 1));
        Graph sharded = ShardBatchSums.shard(b.build(), List.of("x", "y"), 2);
        Op.Dot outer = (Op.Dot) sharded.output("outer").op();
        assertThat(outer.segments()).isEqualTo(2);
        assertThat(outer.contractA()).containsExactly(0, 1);
        assertThat(((Op.Reduce) sharded.output("inner").op()).segments()).isEqualTo(1);
        Op.Reduce over = (Op.Reduce) sharded.output("over").op();
        assertThat(over.segments()).isEqualTo(2);
        assertThat(over.x().shape()).isEqualTo(Shape.of(4, 3, 8));
    }

    @Test
    void oneShardIsTheGraphItselfUpToTheOrderOfSummation() {
        GraphBuilder b = new GraphBuilder("plain");
        b.output("sum", b.sum(b.input("x", Type.f32(4, 3)), 0));
        Graph graph = b.build();
        assertThat(ShardBatchSums.shard(graph, List.of("x"), 1)).isEqualTo(graph);
    }

    @Test
    void sortedBatchIsNamedWhenSummed() {
        GraphBuilder b = new GraphBuilder("sorted");
        Value x = b.input("x", Type.f32(4, 3));
        Value order = b.scope("sorting", () -> b.add(new Op.ArgSort(x, 0, false)));
        b.output("order", order);
        Value sorted = b.add(new Op.TakeAlong(b.weight("w", Type.f32(4, 3)), order, 0));
        assertThat(ShardBatchSums.shard(b.build(), List.of("x"), 2)).isNotNull();
        b.output("sum", b.sum(sorted, 0));
        assertThatThrownBy(() -> ShardBatchSums.shard(b.build(), List.of("x"), 2))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("ArgSort at %1 (sorting) mixes the rows of the batch");
    }

    @Test
    void whatCannotBeShardedSaysWhy() {
        GraphBuilder b = new GraphBuilder("wrong");
        Value x = b.input("x", Type.f32(4, 3));
        b.input("y", Type.f32(5, 3));
        b.output("similar", b.matmul(x, b.transpose(x, 1, 0)));
        Graph graph = b.build();
        assertThatThrownBy(() -> ShardBatchSums.shard(graph, List.of("x"), 3))
                .hasMessage("shard: a batch of 4 does not divide into 3 shards");
        assertThatThrownBy(() -> ShardBatchSums.shard(graph, List.of("z"), 2))
                .hasMessage("shard: graph wrong has no input z");
        assertThatThrownBy(() -> ShardBatchSums.shard(graph, List.of("x", "y"), 2))
                .hasMessage("shard: input y : f32[5, 3] has no batch of 4 on axis 0");
        assertThatThrownBy(() -> ShardBatchSums.shard(graph, List.of("x"), 2))
                .hasMessageContaining("the batch is on axis 0 and on axis 1 of %3");
    }

    @Test
    void batchStatisticsCannotBeSplit() {
        GraphBuilder b = new GraphBuilder("statistics");
        Value x = b.input("x", Type.f32(4, 3));
        Value mean = b.multiply(b.sum(x, 0), 0.25);
        Value deviation = b.subtract(x, b.broadcast(mean, x.shape(), List.of(1)));
        b.output("loss", b.sum(b.multiply(deviation, deviation), 0, 1));
        Graph graph = b.build();
        assertThat(ShardBatchSums.shard(graph, List.of("x"), 4)).isNotNull();
        assertThatThrownBy(() -> ShardBatchSums.split(graph, List.of("x"), 4))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("such a batch cannot be divided");
    }

    /// The whole batch at once = parts of 1 and of 2 rows combined in the tree, bit for bit.
    private static void checkParts(IntFunction<Graph> ofBatch, List<Parameter> parameters, List<String> batched) {
        Map<String, Tensor> weights = new HashMap<>();
        for (Parameter parameter : parameters) {
            Tensor tensor = Tensor.zeros(parameter.type());
            new Initializer.Normal(0.4).fill(tensor, 1, parameter.name());
            weights.put(parameter.name(), tensor);
        }
        Graph whole = ofBatch.apply(BATCH);
        Map<String, Tensor> inputs = inputs(whole);
        ShardBatchSums.Split split = ShardBatchSums.split(whole, batched, BATCH);
        Map<String, Tensor> expected = finish(split, Interpreter.run(split.sums(), inputs, weights), inputs, weights);

        // Sharding alone computes the same as sharding and cutting.
        Map<String, Tensor> sharded = Interpreter.run(ShardBatchSums.shard(whole, batched, BATCH), inputs, weights);
        expected.forEach((name, value) ->
                assertThat(sharded.get(name).sameBits(value)).as(name).isTrue());

        // And something else than one chain over all rows, or this test would show nothing.
        Map<String, Tensor> plain = Interpreter.run(whole, inputs, weights);
        assertThat(expected.keySet())
                .anySatisfy(name ->
                        assertThat(plain.get(name).sameBits(expected.get(name))).isFalse());

        for (int rows : new int[] {1, 2}) {
            ShardBatchSums.Split part = ShardBatchSums.split(ofBatch.apply(rows), batched, rows);
            List<Map<String, Tensor>> results = new ArrayList<>();
            for (int first = 0; first < BATCH; first += rows) {
                results.add(Interpreter.run(part.sums(), rows(inputs, batched, first, rows), weights));
            }
            Map<String, Tensor> total = tree(results, part.partials());
            Map<String, Tensor> found = finish(part, total, inputs, weights);
            assertThat(found.keySet()).isEqualTo(expected.keySet()).hasSize(parameters.size() + 1);
            expected.forEach((name, value) -> assertThat(found.get(name).sameBits(value))
                    .as(name + " of " + rows + " rows: " + found.get(name) + " " + value)
                    .isTrue());
        }
    }

    private static Map<String, Tensor> finish(
            ShardBatchSums.Split split,
            Map<String, Tensor> sums,
            Map<String, Tensor> inputs,
            Map<String, Tensor> weights) {
        Map<String, Tensor> all = new HashMap<>(inputs);
        all.putAll(sums);
        return Interpreter.run(split.finish(), all, weights);
    }

    private static Map<String, Tensor> tree(List<Map<String, Tensor>> parts, List<String> names) {
        if (parts.size() == 1) {
            return parts.getFirst();
        }
        int half = parts.size() / 2;
        Map<String, Tensor> left = tree(parts.subList(0, half), names);
        Map<String, Tensor> right = tree(parts.subList(half, parts.size()), names);
        Map<String, Tensor> sum = new LinkedHashMap<>();
        for (String name : names) {
            Tensor total = Tensor.zeros(left.get(name).type());
            for (long i = 0; i < total.shape().elements(); i++) {
                total.setFloat(i, left.get(name).getFloat(i) + right.get(name).getFloat(i));
            }
            sum.put(name, total);
        }
        return sum;
    }

    private static Graph withGradients(GraphBuilder b, Value loss, List<Parameter> parameters) {
        List<Value> weights =
                parameters.stream().map(p -> b.weight(p.name(), p.type())).toList();
        List<Value> gradients = Gradients.of(b, loss, weights);
        b.output("loss", loss);
        for (int i = 0; i < gradients.size(); i++) {
            b.output("grad." + parameters.get(i).name(), gradients.get(i));
        }
        return b.build();
    }

    private static Map<String, Tensor> inputs(Graph graph) {
        Map<String, Tensor> inputs = new LinkedHashMap<>();
        SplittableRandom random = new SplittableRandom(11);
        for (Value value : graph.inputs()) {
            Tensor tensor = Tensor.zeros(value.type());
            for (long i = 0; i < tensor.shape().elements(); i++) {
                if (value.dtype() == DType.F32) {
                    tensor.setFloat(i, (float) random.nextDouble(-1, 1));
                } else {
                    tensor.setLong(i, random.nextInt(3));
                }
            }
            inputs.put(((Op.Input) value.op()).name(), tensor);
        }
        if (inputs.containsKey("key")) {
            inputs.put("key", Tensor.of(Shape.of(4), 1, 2, 3, 0));
        }
        return inputs;
    }

    private static Map<String, Tensor> rows(Map<String, Tensor> inputs, List<String> batched, int first, int rows) {
        Map<String, Tensor> part = new LinkedHashMap<>(inputs);
        for (String name : batched) {
            Tensor whole = inputs.get(name);
            Type type = whole.type().with(whole.shape().with(0, rows));
            long bytes = whole.type().bytes() / BATCH;
            part.put(name, Tensor.over(type, whole.data().asSlice(first * bytes, rows * bytes)));
        }
        if (inputs.containsKey("key")) {
            part.put("key", Tensor.of(Shape.of(4), 1, 2, 3, first));
        }
        return part;
    }
}
