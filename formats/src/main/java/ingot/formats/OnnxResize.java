package ingot.formats;

import static ingot.formats.OnnxOperator.one;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op.CompareKind;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Value;
import java.util.List;
import java.util.Map;

/// Interpolation, one axis after the other: each result is a sum of a few elements with weights that are known at
/// import.
final class OnnxResize {
    private OnnxResize() {}

    static void addTo(Map<String, OnnxOperator> t) {
        t.put("Resize", one(OnnxResize::resize));
        t.put("Upsample", one(OnnxResize::upsample));
    }

    /// How one axis is resized. `roi` is the part of it that is seen, for `tf_crop_and_resize`.
    private record Axis(int size, int result, double scale, double roiStart, double roiEnd) {}

    /// The settings of a node.
    private record Rule(
            String mode, String coordinates, String nearest, double cubic, boolean excludeOutside, boolean antialias) {}

    private static Value upsample(OnnxCall c) {
        Shape shape = c.in(0).shape();
        List<Float> scales = c.has(1) ? c.floats(1) : c.numbers("scales");
        Rule rule = new Rule(c.text("mode", "nearest"), "asymmetric", "floor", -0.75, false, false);
        Value x = c.in(0);
        for (int i = 0; i < shape.rank(); i++) {
            int result = (int) Math.floor(shape.dim(i) * (double) scales.get(i));
            x = along(c, x, i, new Axis(shape.dim(i), result, scales.get(i), 0, 1), rule);
        }
        return x;
    }

    private static Value resize(OnnxCall c) {
        Value x = c.in(0);
        int rank = x.shape().rank();
        boolean old = c.opset() < 11; // inputs: x, scales
        Rule rule = new Rule(
                c.text("mode", "nearest"),
                c.text("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel"),
                c.text("nearest_mode", old ? "floor" : "round_prefer_floor"),
                c.number("cubic_coeff_a", -0.75),
                c.flag("exclude_outside"),
                c.flag("antialias"));
        int scalesAt = old ? 1 : 2;
        boolean sized = c.has(3) && c.in(3).shape().elements() > 0;
        List<Float> scales = !sized && c.has(scalesAt) ? c.floats(scalesAt) : List.of();
        List<Long> sizes = sized ? c.longs(3) : List.of();
        List<Long> given = c.ints("axes");
        List<Float> roi = !old && rule.coordinates().equals("tf_crop_and_resize") ? c.floats(1) : List.of();
        int count = given.isEmpty() ? rank : given.size();
        if (scales.size() != count && sizes.size() != count) {
            throw new IngotException("expected " + count + " scales or sizes, got " + scales + " and " + sizes);
        }
        double shared = sharedScale(c, sizes, given, rank);
        for (int k = 0; k < count; k++) {
            int i = given.isEmpty() ? k : c.axis(given.get(k), rank);
            int size = x.shape().dim(i);
            double scale = sized ? shared > 0 ? shared : sizes.get(k) / (double) size : scales.get(k);
            int result = !sized
                    ? (int) Math.floor(size * scale)
                    : shared > 0 ? (int) Math.round(size * shared) : Math.toIntExact(sizes.get(k));
            double from = roi.isEmpty() ? 0 : roi.get(k);
            double to = roi.isEmpty() ? 1 : roi.get(k + count);
            x = along(c, x, i, new Axis(size, result, scale, from, to), rule);
        }
        return x;
    }

    /// With an aspect-ratio policy one scale serves all axes; 0 without.
    private static double sharedScale(OnnxCall c, List<Long> sizes, List<Long> given, int rank) {
        String policy = c.text("keep_aspect_ratio_policy", "stretch");
        if (sizes.isEmpty() || policy.equals("stretch")) {
            return 0;
        }
        double best = policy.equals("not_larger") ? Double.POSITIVE_INFINITY : 0;
        for (int k = 0; k < sizes.size(); k++) {
            int i = given.isEmpty() ? k : c.axis(given.get(k), rank);
            double scale = sizes.get(k) / (double) c.in(0).shape().dim(i);
            best = policy.equals("not_larger") ? Math.min(best, scale) : Math.max(best, scale);
        }
        return best;
    }

    private static Value along(OnnxCall c, Value x, int axis, Axis how, Rule rule) {
        boolean same = how.size() == how.result()
                && how.scale() == 1
                && !rule.coordinates().startsWith("tf_crop");
        if (same) {
            return x;
        }
        Taps taps = Taps.of(how, rule);
        return taps.apply(c.b(), x, axis, c.number("extrapolation_value", 0));
    }

    /// For each place of the result: which elements count, with which weights. `outside` marks places beyond the input.
    private record Taps(int[][] at, double[][] weight, boolean[] outside) {
        static Taps of(Axis how, Rule rule) {
            int n = how.result();
            // antialiased kernels are wider by the factor by which the axis shrinks
            double stretch = rule.antialias() && how.scale() < 1 ? how.scale() : 1;
            int reach = switch (rule.mode()) {
                case "nearest" -> 1;
                case "linear" -> (int) Math.ceil(1 / stretch) * 2;
                case "cubic" -> (int) Math.ceil(2 / stretch) * 2;
                case String other -> throw new IngotException("interpolation mode " + other + " is not known");
            };
            int[][] at = new int[reach][n];
            double[][] weight = new double[reach][n];
            boolean[] outside = new boolean[n];
            for (int i = 0; i < n; i++) {
                double x = coordinate(i, how, rule);
                outside[i] = rule.coordinates().equals("tf_crop_and_resize") && (x < 0 || x > how.size() - 1);
                if (reach == 1) {
                    at[0][i] = Math.clamp(nearest(x, rule.nearest(), how), 0, how.size() - 1);
                    weight[0][i] = 1;
                    continue;
                }
                int first = (int) Math.floor(x) - reach / 2 + 1;
                double total = 0;
                for (int k = 0; k < reach; k++) {
                    boolean beyond = first + k < 0 || first + k >= how.size();
                    at[k][i] = Math.clamp(first + k, 0, how.size() - 1);
                    double distance = Math.abs(x - (first + k)) * stretch;
                    boolean skipped = beyond && rule.excludeOutside();
                    weight[k][i] = skipped ? 0 : kernel(distance, rule);
                    total += weight[k][i];
                }
                for (int k = 0; k < reach; k++) {
                    weight[k][i] /= total;
                }
            }
            return new Taps(at, weight, outside);
        }

        /// Σ over taps of x[at] · weight.
        Value apply(GraphBuilder b, Value x, int axis, double extrapolation) {
            int n = outside.length;
            Value source = at.length == 1 ? x : b.convert(x, DType.F32);
            Value sum = part(b, source, axis, 0);
            for (int k = 1; k < at.length; k++) {
                sum = b.add(sum, part(b, source, axis, k));
            }
            boolean any = false;
            float[] mask = new float[n];
            for (int i = 0; i < n; i++) {
                mask[i] = outside[i] ? 1 : 0;
                any |= outside[i];
            }
            if (any) {
                Value beyond =
                        b.compare(CompareKind.NOT_EQUAL, b.constant(Tensor.of(Shape.of(n), mask)), b.constant(0f));
                sum = b.select(b.broadcast(beyond, sum.shape(), List.of(axis)), b.scalarLike(sum, extrapolation), sum);
            }
            return b.convert(sum, x.dtype());
        }

        private Value part(GraphBuilder b, Value source, int axis, int k) {
            Value taken = b.gather(source, b.constant(Tensor.of(Shape.of(outside.length), at[k])), axis);
            return at.length == 1 ? taken : b.multiply(taken, line(b, weight[k], taken.shape(), axis));
        }

        private static Value line(GraphBuilder b, double[] weights, Shape shape, int axis) {
            float[] floats = new float[weights.length];
            for (int i = 0; i < floats.length; i++) {
                floats[i] = (float) weights[i];
            }
            return b.broadcast(b.constant(Tensor.of(Shape.of(floats.length), floats)), shape, List.of(axis));
        }
    }

    /// Where a place of the result lies in the input.
    private static double coordinate(int i, Axis how, Rule rule) {
        double scale = how.scale();
        double length = how.size() * scale; // of the result, before rounding
        return switch (rule.coordinates()) {
            case "half_pixel" -> (i + 0.5) / scale - 0.5;
            case "half_pixel_symmetric" -> {
                double adjustment = how.result() / length;
                double centre = how.size() / 2.0;
                yield centre * (1 - adjustment) + (i + 0.5) / scale - 0.5;
            }
            case "pytorch_half_pixel" -> how.result() > 1 ? (i + 0.5) / scale - 0.5 : 0;
            case "align_corners" -> how.result() == 1 ? 0 : i * (how.size() - 1.0) / (length - 1);
            case "asymmetric" -> i / scale;
            case "tf_half_pixel_for_nn" -> (i + 0.5) / scale;
            case "tf_crop_and_resize" ->
                how.result() > 1
                        ? how.roiStart() * (how.size() - 1)
                                + i * (how.roiEnd() - how.roiStart()) * (how.size() - 1) / (how.result() - 1)
                        : 0.5 * (how.roiStart() + how.roiEnd()) * (how.size() - 1);
            case String other -> throw new IngotException("coordinate transformation " + other + " is not known");
        };
    }

    private static int nearest(double x, String mode, Axis how) {
        if (how.scale() == 1 && x == Math.rint(x)) {
            return (int) x;
        }
        return switch (mode) {
            case "round_prefer_floor" -> (int) Math.ceil(x - 0.5);
            case "round_prefer_ceil" -> (int) Math.floor(x + 0.5);
            case "floor" -> (int) Math.floor(x);
            case "ceil" -> (int) Math.ceil(x);
            case String other -> throw new IngotException("nearest mode " + other + " is not known");
        };
    }

    /// The weight of an element at a distance: a triangle, or the cubic of Keys (1981).
    private static double kernel(double d, Rule rule) {
        if (rule.mode().equals("linear")) {
            return Math.max(0, 1 - d);
        }
        double a = rule.cubic();
        if (d <= 1) {
            return ((a + 2) * d - (a + 3)) * d * d + 1;
        }
        return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
    }
}
