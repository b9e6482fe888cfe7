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
        Map<String, Double> attributes = Map.of("epsilon", epsilon);
        Function gradient = Definition.of(
                "batchNormGradient",
                attributes,
                Definition.types(x, weight, bias, x, weight, weight, x, weight, weight),
                null,
                (g, in) -> {
                    Value dy = in.get(6);
                    Value deviation = g.subtract(in.get(0), perChannel(g, in.get(4), in.get(0)));
                    Value inverse = inverse(g, in.get(5), epsilon); // [channels]
                    Value sum = g.sum(dy, axes);
                    Value along = g.multiply(g.sum(g.multiply(dy, deviation), axes), inverse); // Σ dy·x̂
                    // dx = scale·(dy − mean dy − x̂·mean(dy·x̂)), and what mean and variance are used for besides:
                    // scale·dy + slope·(x − mean) + shift with numbers per channel
                    Value scale = g.multiply(in.get(1), inverse);
                    Value slope = g.subtract(
                            g.multiply(in.get(8), 2 * share),
                            g.multiply(g.multiply(g.multiply(scale, inverse), along), share));
                    Value shift = g.multiply(g.subtract(in.get(7), g.multiply(scale, sum)), share);
                    Value dx = g.fma(
                            dy,
                            perChannel(g, scale, dy),
                            g.fma(deviation, perChannel(g, slope, dy), perChannel(g, shift, dy)));
                    return List.of(dx, along, sum);
                });
        Function batchNorm =
                Definition.of("batchNormTraining", attributes, Definition.types(x, weight, bias), gradient, (g, in) -> {
                    Value mean = g.multiply(g.sum(in.get(0), axes), share); // [channels]
                    Value deviation = g.subtract(in.get(0), perChannel(g, mean, in.get(0)));
                    Value variance = g.multiply(g.sum(g.multiply(deviation, deviation), axes), share);
                    Value scale = g.multiply(in.get(1), inverse(g, variance, epsilon));
                    Value result =
                            g.fma(deviation, perChannel(g, scale, in.get(0)), perChannel(g, in.get(2), in.get(0)));
                    return List.of(result, mean, variance);
                });
        List<Value> results = b.call(batchNorm, List.of(x, weight, bias));
        return new BatchNorm(results.get(0), results.get(1), results.get(2));
    }

    /// `result` as it is; while it is differentiated, the gradient of the weight `running` is how far it has to go
    /// down: momentum · (running − batch).
    ///
    /// So a running statistic is a weight with a learning rule of its own, `Parameter.Rule.RUNNING`: subtract the
    /// gradient. It passes through stores, stages and checkpoints as any weight does.
    public static Value tracked(GraphBuilder b, Value result, Value running, Value batch, double momentum) {
        Map<String, Double> attributes = Map.of("momentum", momentum);
        Function gradient = Definition.of(
                "trackedGradient",
                attributes,
                Definition.types(result, running, batch, result, result),
                null,
                (g, in) -> List.of(
                        in.get(4), g.multiply(g.subtract(in.get(1), in.get(2)), momentum), g.fullLike(in.get(2), 0)));
        Function tracked = Definition.of(
                "tracked",
                attributes,
                Definition.types(result, running, batch),
                gradient,
                (g, in) -> List.of(in.getFirst()));
        return b.call(tracked, List.of(result, running, batch)).getFirst();
    }

    /// Normalises every channel of x [batch, channels, …] by stored statistics.
    public static Value batchNorm(
            GraphBuilder b, Value x, Value weight, Value bias, Value mean, Value variance, double epsilon) {
        Value scale = b.multiply(weight, inverse(b, variance, epsilon));
        Value shift = b.subtract(bias, b.multiply(mean, scale));
        return b.fma(x, perChannel(b, scale, x), perChannel(b, shift, x));
    }

    /// 1 / √(variance + epsilon)
    private static Value inverse(GraphBuilder b, Value variance, double epsilon) {
        return b.divide(b.scalarLike(variance, 1), b.sqrt(b.add(variance, epsilon)));
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
