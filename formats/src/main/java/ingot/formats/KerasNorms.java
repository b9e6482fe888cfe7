package ingot.formats;

import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Value;
import ingot.nn.Norms;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.IntStream;

/// The layers that normalise.
final class KerasNorms {
    private KerasNorms() {}

    static void addTo(Map<String, Function<KerasCall, List<Value>>> t) {
        for (String kind : List.of("BatchNormalization", "BatchNormalizationV1", "SyncBatchNormalization")) {
            KerasLayers.one(t, kind, KerasNorms::batch);
        }
        KerasLayers.one(t, "LayerNormalization", KerasNorms::layer);
        KerasLayers.one(t, "RMSNormalization", KerasNorms::rms);
        KerasLayers.one(t, "GroupNormalization", KerasNorms::group);
        KerasLayers.one(t, "Normalization", KerasNorms::fixed);
    }

    private static int axis(KerasCall c) {
        List<Integer> axes = c.layer().has("axis") ? c.layer().integers("axis") : List.of(-1);
        KerasCall.refuse(axes.size() != 1, "normalisation over axes " + axes);
        return GraphBuilder.axis(c.in(), axes.getFirst());
    }

    private static int lastAxis(KerasCall c) {
        int axis = axis(c);
        KerasCall.refuse(axis != c.in().shape().rank() - 1, "normalisation over axis " + axis + " (the last one is)");
        return axis;
    }

    /// Gamma and beta, or ones and zeros.
    private record Affine(Value scale, Value shift, int weights) {
        static Affine of(KerasCall c, int size) {
            boolean scales = c.layer().flag("scale", true);
            boolean shifts = c.layer().flag("center", true);
            Value scale = scales ? c.weight(0, "gamma", size) : KerasLayers.filled(c.b(), size, 1);
            Value shift = shifts ? c.weight(scales ? 1 : 0, "beta", size) : KerasLayers.filled(c.b(), size, 0);
            return new Affine(scale, shift, (scales ? 1 : 0) + (shifts ? 1 : 0));
        }
    }

    /// In training by the statistics of the batch, which the moving ones follow: moving = momentum·moving + (1 −
    /// momentum)·batch.
    private static Value batch(KerasCall c) {
        GraphBuilder b = c.b();
        int axis = axis(c);
        int rank = c.in().shape().rank();
        List<Integer> order = new ArrayList<>(IntStream.range(0, rank).boxed().toList());
        Collections.swap(order, 1, axis); // its own inverse
        Value x = axis == 1 ? c.in() : b.transpose(c.in(), order);
        int channels = x.shape().dim(1);
        Affine affine = Affine.of(c, channels);
        Value mean = c.statistic(affine.weights(), "moving_mean", channels);
        Value variance = c.statistic(affine.weights() + 1, "moving_variance", channels);
        double epsilon = c.layer().number("epsilon", 1e-3);
        String path = c.place().path();
        boolean follows = c.place().trainable() && c.pass().tracked().test(path + "/moving_mean");
        if (follows != (c.place().trainable() && c.pass().tracked().test(path + "/moving_variance"))) {
            throw new IngotException("of moving_mean and moving_variance one is frozen; freeze both or none");
        }
        Value y;
        if (follows) {
            double share = 1 - c.layer().number("momentum", 0.99);
            Norms.BatchNorm norm = Norms.batchNormTraining(b, x, affine.scale(), affine.shift(), epsilon);
            Value once = Norms.tracked(b, norm.result(), mean, norm.mean(), share);
            y = Norms.tracked(b, once, variance, norm.variance(), share);
        } else {
            y = Norms.batchNorm(b, x, affine.scale(), affine.shift(), mean, variance, epsilon);
        }
        return axis == 1 ? y : b.transpose(y, order);
    }

    private static Value layer(KerasCall c) {
        KerasCall.refuse(c.layer().flag("rms_scaling", false), "rms_scaling");
        Affine affine = Affine.of(c, c.in().shape().dim(lastAxis(c)));
        return Norms.layerNorm(
                c.b(), c.in(), affine.scale(), affine.shift(), c.layer().number("epsilon", 1e-3));
    }

    private static Value rms(KerasCall c) {
        Value scale = c.weight(0, "scale", c.in().shape().dim(lastAxis(c)));
        return Norms.rmsNorm(c.b(), c.in(), scale, c.layer().number("epsilon", 1e-6));
    }

    /// Wu and He 2018: mean and variance of every row over a group of channels and all places.
    private static Value group(KerasCall c) {
        GraphBuilder b = c.b();
        Value x = c.in();
        int axis = lastAxis(c);
        int channels = x.shape().dim(axis);
        int groups = c.layer().integer("groups", 32);
        groups = groups == -1 ? channels : groups;
        if (groups < 1 || channels % groups != 0) {
            throw new IngotException(groups + " groups do not divide " + channels + " channels");
        }
        Affine affine = Affine.of(c, channels);
        int batch = x.shape().dim(0);
        int places = Math.toIntExact(x.shape().elements() / batch / channels);
        Value parts = b.reshape(x, batch, places, groups, channels / groups);
        double share = 1.0 / ((double) places * (channels / groups));
        Value mean = b.multiply(b.reduceKeep(ReduceKind.SUM, parts, 1, 3), share);
        Value deviation = b.subtract(parts, mean);
        Value variance = b.multiply(b.reduceKeep(ReduceKind.SUM, b.multiply(deviation, deviation), 1, 3), share);
        Value normal = b.divide(deviation, b.sqrt(b.add(variance, c.layer().number("epsilon", 1e-3))));
        return b.add(b.multiply(b.reshape(normal, x.shape()), affine.scale()), affine.shift());
    }

    /// (x − mean) / max(√variance, 10⁻⁷) by numbers of the configuration, or of the weights where it was adapted.
    private static Value fixed(KerasCall c) {
        GraphBuilder b = c.b();
        Value x = KerasLayers.floating(c);
        KerasCall.refuse(c.layer().flag("invert", false), "invert");
        Value mean;
        Value variance;
        if (c.layer().has("mean")) {
            mean = KerasLayers.numbers(c, "mean", 0);
            variance = KerasLayers.numbers(c, "variance", 1);
        } else {
            int[] kept = c.layer().has("axis") ? new int[] {x.shape().dim(lastAxis(c))} : new int[0];
            mean = c.statistic(0, "mean", kept);
            variance = c.statistic(1, "variance", kept);
            c.unused(2, "count");
        }
        Value deviation = b.max(b.sqrt(variance), b.scalarLike(variance, 1e-7));
        return b.divide(b.subtract(x, mean), deviation);
    }
}
