package ingot.nn;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import ingot.autodiff.Gradients;
import ingot.ir.Function;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Interpreter;
import ingot.ir.Op;
import ingot.ir.Operands;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.testkit.GradientCheck;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class FunctionGradientTest {
    @Test
    void noFunctionIsMissing() {
        TreeSet<String> missing = new TreeSet<>(FunctionTable.required());
        FunctionTable.rows().forEach(row -> missing.remove(row.function()));
        assertThat(missing).as("functions without a row in FunctionTable").isEmpty();
    }

    static List<FunctionTable.Row> rows() {
        return FunctionTable.rows();
    }

    /// Hand-written gradients give what differentiating the definition gives, up to rounding.
    @ParameterizedTest
    @MethodSource("rows")
    void handWrittenGradientsAreThoseOfTheDefinition(FunctionTable.Row row) {
        Graph graph = loss(row);
        Map<String, Tensor> inputs = sample(graph);
        int operands = row.operands().size();
        Map<String, Tensor> byHand = Interpreter.run(differentiated(graph, operands), inputs, Map.of());
        Map<String, Tensor> byDefinition =
                Interpreter.run(differentiated(withoutGradients(graph), operands), inputs, Map.of());
        assertThat(byHand.get("loss").sameBits(byDefinition.get("loss"))).isTrue();
        for (int i = 0; i < operands; i++) {
            float[] found = byHand.get("x" + i).toFloats();
            float[] expected = byDefinition.get("x" + i).toFloats();
            for (int e = 0; e < found.length; e++) {
                assertThat(found[e]).as("operand " + i + " element " + e).isCloseTo(expected[e], within(3e-5f));
            }
        }
    }

    @ParameterizedTest
    @MethodSource("rows")
    void gradientsAgreeWithFiniteDifferences(FunctionTable.Row row) {
        Map<String, String> gradients = new LinkedHashMap<>();
        for (int i = 0; i < row.operands().size(); i++) {
            gradients.put("x" + i, "x" + i);
        }
        Graph graph = differentiated(loss(row), row.operands().size());
        GradientCheck.check(graph, sample(graph), "loss", gradients);
    }

    /// The weighted sum of what the row computes.
    private static Graph loss(FunctionTable.Row row) {
        GraphBuilder forward = new GraphBuilder(row.function());
        List<Value> x = new ArrayList<>();
        for (Shape shape : row.operands()) {
            x.add(forward.input("x" + x.size(), Type.f32(shape.dims())));
        }
        Value y = row.body().apply(forward, x);
        Value weights = forward.input("weights", y.type());
        int[] all = IntStream.range(0, y.shape().rank()).toArray();
        forward.output("loss", forward.sum(forward.multiply(y, weights), all));
        return forward.build();
    }

    private static Map<String, Tensor> sample(Graph graph) {
        Map<String, Tensor> inputs = new HashMap<>();
        for (Value input : graph.inputs()) {
            String name = ((Op.Input) input.op()).name();
            inputs.put(name, Sample.floats(name.hashCode(), input.shape().dims()));
        }
        return inputs;
    }

    private static Graph differentiated(Graph graph, int operands) {
        GraphBuilder builder = new GraphBuilder(graph.name());
        List<Value> inputs = new ArrayList<>();
        for (Value input : graph.inputs()) {
            inputs.add(builder.input(((Op.Input) input.op()).name(), input.type()));
        }
        Value loss = builder.inline(graph, inputs).getFirst();
        builder.output("loss", loss);
        List<Value> gradients = Gradients.of(builder, loss, inputs.subList(0, operands));
        for (int i = 0; i < operands; i++) {
            builder.output("x" + i, gradients.get(i));
        }
        return builder.build();
    }

    private static Graph withoutGradients(Graph graph) {
        GraphBuilder builder = new GraphBuilder(graph.name());
        Map<Value, Value> mapped = new HashMap<>();
        for (Value value : graph.values()) {
            Op op = Operands.replace(value.op(), mapped::get);
            mapped.put(value, builder.add(op instanceof Op.Composite composite ? plain(composite) : op));
        }
        graph.outputs().forEach((name, value) -> builder.output(name, mapped.get(value)));
        return builder.build();
    }

    private static Op plain(Op.Composite composite) {
        Function function = composite.function();
        return new Op.Composite(
                new Function(function.name(), function.attributes(), withoutGradients(function.definition()), null),
                composite.operands());
    }
}
