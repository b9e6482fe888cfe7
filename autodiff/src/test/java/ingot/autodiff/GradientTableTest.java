package ingot.autodiff;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Interpreter;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.testkit.GradientCheck;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Every op against finite differences.
class GradientTableTest {
    /// What has no meaning in double precision.
    private static final Set<String> SINGLE = Set.of("Bitcast", "Custom");

    @Test
    void noOpIsMissing() {
        TreeSet<String> missing = new TreeSet<>(OpTable.required());
        OpTable.rows().forEach(row -> missing.remove(row.op()));
        assertThat(missing).as("ops without a row in OpTable").isEmpty();
    }

    static List<OpTable.Row> inDouble() {
        return OpTable.rows().stream().filter(row -> !SINGLE.contains(row.op())).toList();
    }

    static List<OpTable.Row> inSingle() {
        return OpTable.rows().stream().filter(row -> SINGLE.contains(row.op())).toList();
    }

    @ParameterizedTest
    @MethodSource("inDouble")
    void agreesWithDifferencesInDouble(OpTable.Row row) {
        Map<String, String> gradients = new LinkedHashMap<>();
        for (int i = 0; i < row.operands().size(); i++) {
            gradients.put("x" + i, "d" + i);
        }
        Graph graph = graph(row);
        GradientCheck.check(graph, sample(row, graph), "loss", gradients);
    }

    @ParameterizedTest
    @MethodSource("inSingle")
    void agreesWithDifferencesInSingle(OpTable.Row row) {
        Graph graph = graph(row);
        Map<String, Tensor> at = sample(row, graph);
        Map<String, Tensor> found = Interpreter.run(graph, at, Map.of());
        float step = 5e-3f;
        for (int i = 0; i < at.get("x0").shape().elements(); i++) {
            float up = moved(graph, at, i, step);
            float down = moved(graph, at, i, -step);
            assertThat((up - down) / (2 * step)).isCloseTo(found.get("d0").getFloat(i), within(2e-3f));
        }
    }

    private static float moved(Graph graph, Map<String, Tensor> at, int element, float step) {
        Tensor x = Tensor.of(at.get("x0").shape(), at.get("x0").toFloats());
        x.setFloat(element, x.getFloat(element) + step);
        Map<String, Tensor> moved = new HashMap<>(at);
        moved.put("x0", x);
        return Interpreter.run(graph, moved, Map.of()).get("loss").getFloat(0);
    }

    /// The row's value weighted and summed to `loss`, and its derivatives `d0`, `d1`, … for the operands `x0`, `x1`, ….
    private static Graph graph(OpTable.Row row) {
        GraphBuilder b = new GraphBuilder(row.op());
        List<Value> x = new ArrayList<>();
        for (Shape shape : row.operands()) {
            x.add(b.input("x" + x.size(), Type.f32(shape.dims())));
        }
        Value y = row.body().apply(b, x);
        Value weights = b.input("weights", y.type());
        int[] all = IntStream.range(0, y.shape().rank()).toArray();
        Value loss = b.sum(b.multiply(y, weights), all);
        List<Value> gradients = Gradients.of(b, loss, x);
        b.output("loss", loss);
        for (int i = 0; i < x.size(); i++) {
            b.output("d" + i, gradients.get(i));
        }
        return b.build();
    }

    private static Map<String, Tensor> sample(OpTable.Row row, Graph graph) {
        SplittableRandom random = new SplittableRandom(row.toString().hashCode());
        Map<String, Tensor> tensors = new LinkedHashMap<>();
        for (Value input : graph.inputs()) {
            String name = ((Op.Input) input.op()).name();
            boolean operand = !name.equals("weights");
            tensors.put(name, apart(random, input.shape(), operand ? row.low() : -1, operand ? row.high() : 1));
        }
        return tensors;
    }

    /// Values apart from each other, so that a step changes no order.
    private static Tensor apart(SplittableRandom random, Shape shape, double low, double high) {
        Tensor tensor = Tensor.zeros(Type.f32(shape.dims()));
        List<Integer> places = new ArrayList<>(
                IntStream.range(0, (int) shape.elements()).boxed().toList());
        Collections.shuffle(places, new Random(random.nextLong()));
        for (int i = 0; i < places.size(); i++) {
            double at = (places.get(i) + random.nextDouble(0.2, 0.8)) / places.size();
            tensor.setFloat(i, (float) (low + (high - low) * at));
        }
        return tensor;
    }
}
