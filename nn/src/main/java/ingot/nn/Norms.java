package ingot.nn;

import ingot.ir.Function;
import ingot.ir.GraphBuilder;
import ingot.ir.Value;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/// Normalisation: layerNorm and rmsNorm over the last axis, batchNorm over all but the channels.
public final class Norms {
    private Norms() {}

    /// (x − mean) / √(variance + epsilon) · weight + bias over the last axis; weight and bias [width] (Ba et al. 2016).
    public static Value layerNorm(GraphBuilder b, Value x, Value weight, Value bias, double epsilon) {
        Map<String, Double> attributes = Map.of("epsilon", epsilon);
        Function gradient = Definition.of(
                "layerNormGradient", attributes, Definition.types(x, weight, bias, x, x), null, (g, in) -> {
                    Value dy = in.get(4);
                    Value deviation = deviation(g, in.get(0));
                    Value scale = inverseDeviation(g, deviation, epsilon);
                    Value normal = g.multiply(deviation, scale); // x̂
                    Value h = g.multiply(dy, in.get(1)); // ∂/∂x̂
                    // dx = (h − mean h − x̂ · mean(h·x̂)) / √(variance + epsilon)
                    Value centred = g.subtract(h, mean(g, h));
                    Value dx =
                            g.multiply(g.subtract(centred, g.multiply(normal, mean(g, g.multiply(h, normal)))), scale);
                    return List.of(dx, overRows(g, g.multiply(dy, normal)), overRows(g, dy));
                });
        Function layerNorm =
                Definition.of("layerNorm", attributes, Definition.types(x, weight, bias), gradient, (g, in) -> {
                    Value deviation = deviation(g, in.get(0));
                    Value normal = g.multiply(deviation, inverseDeviation(g, deviation, epsilon));
                    return List.of(g.fma(normal, in.get(1), in.get(2)));
                });
        return b.call(layerNorm, List.of(x, weight, bias)).getFirst();
    }

    /// x / √(mean x² + epsilon) · weight over the last axis; weight [width] (Zhang and Sennrich 2019).
    public static Value rmsNorm(GraphBuilder b, Value x, Value weight, double epsilon) {
        Map<String, Double> attributes = Map.of("epsilon", epsilon);
        Function gradient =
                Definition.of("rmsNormGradient", attributes, Definition.types(x, weight, x, x), null, (g, in) -> {
                    Value dy = in.get(3);
                    Value scale = inverseDeviation(g, in.get(0), epsilon);
                    Value normal = g.multiply(in.get(0), scale); // x̂
                    Value h = g.multiply(dy, in.get(1));
                    // dx = (h − x̂ · mean(h·x̂)) / √(mean x² + epsilon)
                    Value dx = g.multiply(g.subtract(h, g.multiply(normal, mean(g, g.multiply(h, normal)))), scale);
                    return List.of(dx, overRows(g, g.multiply(dy, normal)));
                });
        Function rmsNorm = Definition.of("rmsNorm", attributes, Definition.types(x, weight), gradient, (g, in) -> {
            Value scale = inverseDeviation(g, in.get(0), epsilon);
            return List.of(g.multiply(g.multiply(in.get(0), scale), in.get(1)));
        });
        return b.call(rmsNorm, List.of(x, weight)).getFirst();
    }

    /// What a batchNorm pass gives: the result, and mean and (biased) variance per channel of this batch.
    public record BatchNorm(Value result, Value mean, Value variance) {}

    /// Normalises every channel of x [batch, channels, …] by the statistics of the batch itself (Ioffe and Szegedy
    /// 2015).
    public static BatchNorm batchNormTraining(GraphBuilder b, Value x, Value weight, Value bias, double epsilon) {
        int[] axes = IntStream.range(0, x.shape().rank()).filter(i -> i != 1).toArray();
        double share = 1.0 / (x.shape().elements() / (double) x.shape().dim(1));
        Value mean = b.multiply(b.sum(x, axes), share); // [channels]
        Value deviation = b.subtract(x, perChannel(b, mean, x));
        Value variance = b.multiply(b.sum(b.multiply(deviation, deviation), axes), share);
        Value scale = b.multiply(weight, b.divide(b.scalarLike(x, 1), b.sqrt(b.add(variance, epsilon))));
        Value result = b.fma(deviation, perChannel(b, scale, x), perChannel(b, bias, x));
        return new BatchNorm(result, mean, variance);
    }

    /// Normalises every channel of x [batch, channels, …] by stored statistics.
    public static Value batchNorm(
            GraphBuilder b, Value x, Value weight, Value bias, Value mean, Value variance, double epsilon) {
        Value scale = b.multiply(weight, b.divide(b.scalarLike(x, 1), b.sqrt(b.add(variance, epsilon))));
        Value shift = b.subtract(bias, b.multiply(mean, scale));
        return b.fma(x, perChannel(b, scale, x), perChannel(b, shift, x));
    }

    private static Value perChannel(GraphBuilder b, Value channels, Value like) {
        return b.broadcast(channels, like.shape(), List.of(1));
    }

    private static Value deviation(GraphBuilder b, Value x) {
        return b.subtract(x, mean(b, x));
    }

    /// 1 / √(mean d² + epsilon) of each row, repeated along it.
    private static Value inverseDeviation(GraphBuilder b, Value d, double epsilon) {
        Value variance = b.add(Rows.mean(b, b.multiply(d, d)), epsilon);
        return Rows.spread(b, b.divide(b.scalarLike(d, 1), b.sqrt(variance)), d);
    }

    /// The mean of each row, repeated along it.
    private static Value mean(GraphBuilder b, Value x) {
        return Rows.spread(b, Rows.mean(b, x), x);
    }

    /// Σ over all axes but the last.
    private static Value overRows(GraphBuilder b, Value x) {
        return b.sum(b.reshape(x, -1, x.shape().dim(-1)), 0);
    }
}
