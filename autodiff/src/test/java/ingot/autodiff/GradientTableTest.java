package ingot.autodiff;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Interpreter;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Every op against finite differences, in one random direction each.
class GradientTableTest {
    @Test
    void noOpIsMissing() {
        TreeSet<String> missing = new TreeSet<>(OpTable.required());
        OpTable.rows().forEach(row -> missing.remove(row.op()));
        assertThat(missing).as("ops without a row in OpTable").isEmpty();
    }

    static List<OpTable.Row> rows() {
        return OpTable.rows();
    }

    @ParameterizedTest
    @MethodSource("rows")
    void agreesWithFiniteDifferences(OpTable.Row row) {
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
        Graph graph = b.build();

        SplittableRandom random = new SplittableRandom(row.toString().hashCode());
        Map<String, Tensor> at = new HashMap<>();
        at.put("weights", sample(random, y.shape(), -1, 1));
        List<Tensor> direction = new ArrayList<>();
        for (int i = 0; i < x.size(); i++) {
            at.put("x" + i, sample(random, x.get(i).shape(), row.low(), row.high()));
            direction.add(sample(random, x.get(i).shape(), -1, 1));
        }
        Map<String, Tensor> found = Interpreter.run(graph, at, Map.of());
        double expected = 0;
        double magnitude = 0;
        for (int i = 0; i < x.size(); i++) {
            for (long e = 0; e < x.get(i).shape().elements(); e++) {
                double term = (double) found.get("d" + i).getFloat(e)
                        * direction.get(i).getFloat(e);
                expected += term;
                magnitude += Math.abs(term);
            }
        }
        double step = 5e-3;
        double up = loss(graph, at, direction, step);
        double down = loss(graph, at, direction, -step);
        assertThat((up - down) / (2 * step)).isCloseTo(expected, within(3e-3 * (magnitude + 1)));
    }

    private static double loss(Graph graph, Map<String, Tensor> at, List<Tensor> direction, double step) {
        Map<String, Tensor> moved = new HashMap<>(at);
        for (int i = 0; i < direction.size(); i++) {
            Tensor x = at.get("x" + i);
            Tensor y = Tensor.zeros(x.type());
            for (long e = 0; e < x.shape().elements(); e++) {
                y.setFloat(e, (float) (x.getFloat(e) + step * direction.get(i).getFloat(e)));
            }
            moved.put("x" + i, y);
        }
        return Interpreter.run(graph, moved, Map.of()).get("loss").getFloat(0);
    }

    /// Values apart from each other, so that a step changes no order.
    private static Tensor sample(SplittableRandom random, Shape shape, double low, double high) {
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
