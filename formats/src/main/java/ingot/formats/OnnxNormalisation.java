package ingot.formats;

import static ingot.formats.OnnxOperator.one;

import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Shape;
import ingot.ir.Value;
import ingot.nn.Norms;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/// Normalisation by the statistics of a batch, a layer, an instance or a neighbourhood.
final class OnnxNormalisation {
    private OnnxNormalisation() {}

    static void addTo(Map<String, OnnxOperator> t) {
        t.put("BatchNormalization", OnnxNormalisation::batch);
        t.put("LayerNormalization", OnnxNormalisation::layer);
        t.put("RMSNormalization", one(OnnxNormalisation::rootMeanSquare));
        t.put("InstanceNormalization", one(c -> groups(c, c.in(0).shape().dim(1))));
        t.put("GroupNormalization", one(c -> groups(c, Math.toIntExact(c.integer("num_groups", 1)))));
        t.put("MeanVarianceNormalization", one(OnnxNormalisation::meanVariance));
        t.put("LpNormalization", one(OnnxNormalisation::norm));
        t.put("LRN", one(OnnxNormalisation::localResponse));
    }

    /// By stored statistics, or by those of the batch: results, then the running statistics after it.
    private static List<Value> batch(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        double epsilon = c.number("epsilon", 1e-5f);
        boolean marked = c.flag("training_mode") || (c.opset() < 14 && c.opset() >= 7 && c.outputs() > 1);
        if (!marked && !c.isTraining()) {
            return List.of(flatBatch(c, x, epsilon));
        }
        Norms.BatchNorm norm = Norms.batchNormTraining(b, x, c.in(1), c.in(2), epsilon);
        double kept = c.number("momentum", 0.9f);
        Value mean = b.add(b.multiply(c.in(3), kept), b.multiply(norm.mean(), 1 - kept));
        Value variance = b.add(b.multiply(c.in(4), kept), b.multiply(norm.variance(), 1 - kept));
        return List.of(norm.result(), mean, variance);
    }

    /// Also for x [batch, features], which has no spatial axes.
    private static Value flatBatch(OnnxCall c, Value x, double epsilon) {
        if (x.shape().rank() < 2) {
            throw new IngotException("batch normalisation of " + x.shape() + ", which has no channels");
        }
        return Norms.batchNorm(c.b(), x, c.in(1), c.in(2), c.in(3), c.in(4), epsilon);
    }

    /// Over the axes from `axis` on: results, means and inverse deviations.
    private static List<Value> layer(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        int rank = x.shape().rank();
        int axis = c.axis("axis", -1, rank);
        double epsilon = c.number("epsilon", 1e-5f);
        int width = OnnxShapes.product(x.shape().dims(), axis, rank);
        int rows = OnnxShapes.product(x.shape().dims(), 0, axis);
        Value flat = b.reshape(x, rows, width);
        Value weight = b.reshape(b.broadcast(c.in(1), inner(x.shape(), axis)), width);
        Value bias = c.has(2) ? b.reshape(b.broadcast(c.in(2), inner(x.shape(), axis)), width) : b.fullLike(weight, 0);
        List<Value> results = new ArrayList<>();
        results.add(b.reshape(Norms.layerNorm(b, flat, weight, bias, epsilon), x.shape()));
        if (c.wants(1) || c.wants(2)) {
            int[] kept = x.shape().dims();
            java.util.Arrays.fill(kept, axis, rank, 1);
            Value mean = b.multiply(b.reduceKeep(ReduceKind.SUM, flat, 1), 1.0 / width);
            Value off = b.subtract(flat, mean);
            Value variance = b.multiply(b.reduceKeep(ReduceKind.SUM, b.multiply(off, off), 1), 1.0 / width);
            Value inverse = b.divide(b.scalarLike(x, 1), b.sqrt(b.add(variance, epsilon)));
            results.add(b.reshape(mean, kept));
            results.add(b.reshape(inverse, kept));
        }
        return results;
    }

    private static Shape inner(Shape shape, int axis) {
        return Shape.of(java.util.Arrays.copyOfRange(shape.dims(), axis, shape.rank()));
    }

    private static Value rootMeanSquare(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        int rank = x.shape().rank();
        int axis = c.axis("axis", -1, rank);
        int width = OnnxShapes.product(x.shape().dims(), axis, rank);
        Value flat = b.reshape(x, OnnxShapes.product(x.shape().dims(), 0, axis), width);
        Value weight = b.reshape(b.broadcast(c.in(1), inner(x.shape(), axis)), width);
        return b.reshape(Norms.rmsNorm(b, flat, weight, c.number("epsilon", 1e-5f)), x.shape());
    }

    /// Normalises groups of channels of each example; weight and bias per channel, or per group in opset 18.
    private static Value groups(OnnxCall c, int groups) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        int batch = x.shape().dim(0);
        int channels = x.shape().dim(1);
        Value rows = b.reshape(x, batch * groups, -1);
        double share = 1.0 / rows.shape().dim(1);
        Value off = b.subtract(rows, b.multiply(b.reduceKeep(ReduceKind.SUM, rows, 1), share));
        Value variance = b.multiply(b.reduceKeep(ReduceKind.SUM, b.multiply(off, off), 1), share);
        Value deviation = b.sqrt(b.add(variance, c.number("epsilon", 1e-5f)));
        Value normal = b.reshape(b.divide(off, deviation), x.shape());
        return b.fma(normal, perChannel(b, c.in(1), x, channels), perChannel(b, c.in(2), x, channels));
    }

    private static Value perChannel(GraphBuilder b, Value values, Value x, int channels) {
        int n = values.shape().dim(0);
        Value each = n == channels
                ? values
                : b.reshape(b.broadcast(values, Shape.of(n, channels / n), List.of(0)), channels);
        return b.broadcast(each, x.shape(), List.of(1));
    }

    /// (x − mean) / deviation over `axes`.
    private static Value meanVariance(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        List<Long> given = c.ints("axes");
        int[] axes = (given.isEmpty() ? List.of(0L, 2L, 3L) : given)
                .stream().mapToInt(a -> c.axis(a, x.shape().rank())).sorted().toArray();
        double share = 1.0 / IntStream.of(axes).mapToLong(x.shape()::dim).reduce(1, Math::multiplyExact);
        Value off = b.subtract(x, b.multiply(b.reduceKeep(ReduceKind.SUM, x, axes), share));
        Value variance = b.multiply(b.reduceKeep(ReduceKind.SUM, b.multiply(off, off), axes), share);
        return b.divide(off, b.add(b.sqrt(variance), 1e-9));
    }

    private static Value norm(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        int axis = c.axis("axis", -1, x.shape().rank());
        long p = c.integer("p", 2);
        Value size = p == 1 ? b.unary(UnaryKind.ABS, x) : b.multiply(x, x);
        Value sum = b.reduceKeep(ReduceKind.SUM, size, axis);
        return b.divide(x, p == 1 ? sum : b.sqrt(sum));
    }

    /// x / (bias + α/size · Σ x² over neighbouring channels)^β (Krizhevsky et al. 2012).
    private static Value localResponse(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        int rank = x.shape().rank();
        int size = Math.toIntExact(c.integer("size", 1));
        List<Integer> ones = Collections.nCopies(rank, 1);
        List<Integer> window = new ArrayList<>(ones);
        window.set(1, size);
        List<Integer> low = new ArrayList<>(Collections.nCopies(rank, 0));
        List<Integer> high = new ArrayList<>(low);
        low.set(1, (size - 1) / 2);
        high.set(1, size / 2);
        Value sum = b.add(new Op.ReduceWindow(
                ReduceKind.SUM, b.multiply(x, x), window, new Op.Window(ones, low, high, ones, ones)));
        Value base = b.add(b.multiply(sum, c.number("alpha", 1e-4f) / size), c.number("bias", 1));
        return b.divide(x, OnnxWindows.power(b, base, c.number("beta", 0.75)));
    }
}
