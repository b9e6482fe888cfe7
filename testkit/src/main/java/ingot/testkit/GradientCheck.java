package ingot.testkit;

import ingot.ir.Graph;
import ingot.ir.Interpreter;
import ingot.ir.Tensor;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/// Compares gradients that a graph computes with central differences of its scalar output, in double precision.
///
/// (f(x + h) − f(x − h)) / 2h with h = 10⁻⁵·max(1, |x|): an error of h²·f‴/6 and 10⁻¹¹·|f|. Keep inputs away from kinks
/// (max, abs, floor …) by more than h. The same gradients in fp32 must agree loosely.
public final class GradientCheck {
    private static final double STEP = 1e-5;
    private static final double TOLERANCE = 1e-6;
    private static final double TOLERANCE_F32 = 1e-3;
    private static final int ELEMENTS = 48;

    private GradientCheck() {}

    /// `gradients` maps each input or weight to the output that holds ∂`output`/∂it; `tensors` has all inputs and weights.
    public static void check(Graph graph, Map<String, Tensor> tensors, String output, Map<String, String> gradients) {
        if (graph.output(output).shape().elements() != 1) {
            throw new IllegalArgumentException("the output " + output + " is not a scalar: "
                    + graph.output(output).type());
        }
        Map<String, double[]> exact = new LinkedHashMap<>();
        tensors.forEach((name, tensor) -> exact.put(name, DoubleInterpreter.doubles(tensor)));
        Map<String, double[]> analytic = DoubleInterpreter.run(graph, exact, gradients.values());
        Map<String, Tensor> single = Interpreter.run(graph, tensors, tensors);
        SplittableRandom random = new SplittableRandom(graph.values().size());
        gradients.forEach((name, gradient) -> {
            double[] x = found(exact, name);
            double[] got = found(analytic, gradient);
            if (got.length != x.length) {
                throw new AssertionError(
                        "gradient " + gradient + " has " + got.length + " elements, " + name + " has " + x.length);
            }
            for (int i : some(x.length, random)) {
                double numeric = difference(graph, exact, output, name, i);
                close(graph, name, i, numeric, got[i], TOLERANCE);
            }
            Tensor rounded = found(single, gradient);
            double scale = IntStream.range(0, got.length)
                    .mapToDouble(i -> Math.abs(got[i]))
                    .max()
                    .orElse(0);
            for (int i = 0; i < got.length; i++) {
                if (!(Math.abs(rounded.getFloat(i) - got[i]) <= TOLERANCE_F32 * Math.max(1e-3, scale))) {
                    throw new AssertionError(graph.name() + ": ∂/∂" + name + "[" + i + "] in fp32 is "
                            + rounded.getFloat(i) + ", in double " + got[i]);
                }
            }
        });
    }

    private static double difference(Graph graph, Map<String, double[]> tensors, String output, String name, int i) {
        double[] x = found(tensors, name);
        double h = STEP * Math.max(1, Math.abs(x[i]));
        Map<String, double[]> moved = new LinkedHashMap<>(tensors);
        double[] up = x.clone();
        up[i] += h;
        double[] down = x.clone();
        down[i] -= h;
        moved.put(name, up);
        double above = found(DoubleInterpreter.run(graph, moved, List.of(output)), output)[0];
        moved.put(name, down);
        double below = found(DoubleInterpreter.run(graph, moved, List.of(output)), output)[0];
        return (above - below) / (up[i] - down[i]);
    }

    private static <T> T found(Map<String, T> map, String key) {
        T value = map.get(key);
        if (value == null) {
            throw new IllegalArgumentException("no tensor " + key + ", there are " + map.keySet());
        }
        return value;
    }

    private static void close(Graph graph, String name, int i, double numeric, double got, double tolerance) {
        double allowed = tolerance * Math.max(1, Math.max(Math.abs(numeric), Math.abs(got)));
        if (!(Math.abs(numeric - got) <= allowed)) {
            throw new AssertionError("%s: ∂/∂%s[%d]: finite difference %.10g, gradient %.10g"
                    .formatted(graph.name(), name, i, numeric, got));
        }
    }

    /// All indices, or a random choice of `ELEMENTS` of them.
    private static int[] some(int n, SplittableRandom random) {
        return n <= ELEMENTS
                ? IntStream.range(0, n).toArray()
                : random.ints(0, n).distinct().limit(ELEMENTS).toArray();
    }
}
