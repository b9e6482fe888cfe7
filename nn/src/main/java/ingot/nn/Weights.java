package ingot.nn;

import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.function.Predicate;

/// Declares the weights of a model while its graph is built: PyTorch's layouts, under names below `prefix`.
record Weights(GraphBuilder b, String prefix) {
    Weights at(String part) {
        return new Weights(b, prefix + part + ".");
    }

    /// Builds a part of the model below `part`, in the scope of that name.
    Value within(String part, Function<Weights, Value> body) {
        return b.scope(part, () -> body.apply(at(part)));
    }

    Value of(String name, int... dims) {
        return b.weight(prefix + name, Type.f32(dims));
    }

    /// x [..., in] → [..., out] by `name.weight` [out, in] and perhaps `name.bias` [out].
    Value linear(String name, Value x, int out, boolean bias) {
        return b.scope(name, () -> {
            Value weight = of(name + ".weight", out, x.shape().dim(-1));
            return Layers.linearTransposed(b, x, weight, bias ? of(name + ".bias", out) : null);
        });
    }

    Value layerNorm(String name, Value x, double epsilon) {
        int width = x.shape().dim(-1);
        return b.scope(
                name, () -> Norms.layerNorm(b, x, of(name + ".weight", width), of(name + ".bias", width), epsilon));
    }

    Value rmsNorm(String name, Value x, double epsilon) {
        return b.scope(
                name, () -> Norms.rmsNorm(b, x, of(name + ".weight", x.shape().dim(-1)), epsilon));
    }

    /// Rows of `name.weight` [size, width].
    Value embedding(String name, Value ids, int size, int width) {
        return b.scope(name, () -> Layers.embedding(b, of(name + ".weight", size, width), ids));
    }

    /// x [batch, in, height, width] by `name.weight` [out, in / groups, size, size].
    Value convolution(String name, Value x, int out, int size, int stride, int groups) {
        return b.scope(name, () -> {
            Value kernel = of(name + ".weight", out, x.shape().dim(1) / groups, size, size);
            return Layers.conv2d(b, x, kernel, null, stride, size / 2, groups);
        });
    }

    /// Normalises the channels of x by the statistics that are stored, or, if these are tracked, by those of the batch,
    /// which they follow: the mean moves by `momentum` to the batch's, the variance to the batch's unbiased one.
    Value batchNorm(String name, Value x, double epsilon, double momentum, Predicate<String> tracked) {
        int channels = x.shape().dim(1);
        return b.scope(name, () -> {
            Value weight = of(name + ".weight", channels);
            Value bias = of(name + ".bias", channels);
            Value mean = of(name + ".running_mean", channels);
            Value variance = of(name + ".running_var", channels);
            boolean follows = tracked.test(prefix + name + ".running_mean");
            if (follows != tracked.test(prefix + name + ".running_var")) {
                throw new IngotException("batch norm: of " + prefix + name + ".running_mean and .running_var one is"
                        + " frozen and the other not; freeze both or none");
            }
            if (!follows) {
                return Norms.batchNorm(b, x, weight, bias, mean, variance, epsilon);
            }
            Norms.BatchNorm norm = Norms.batchNormTraining(b, x, weight, bias, epsilon);
            double count = x.shape().elements() / (double) channels;
            Value unbiased = b.multiply(norm.variance(), count / Math.max(1, count - 1));
            Value once = Norms.tracked(b, norm.result(), mean, norm.mean(), momentum);
            return Norms.tracked(b, once, variance, unbiased, momentum);
        });
    }

    /// The statistics among the weights that a graph declares.
    static List<Parameter> statistics(Graph graph) {
        List<Parameter> all = new ArrayList<>();
        for (Value value : graph.values()) {
            if (value.op() instanceof Op.Weight(String name, Type type) && isStatistic(name)) {
                all.add(new Parameter(
                        name,
                        type,
                        new Initializer.Constant(name.endsWith("running_var") ? 1 : 0),
                        Parameter.Rule.RUNNING));
            }
        }
        return all;
    }

    private static boolean isStatistic(String name) {
        return name.endsWith(".running_mean") || name.endsWith(".running_var");
    }

    /// The weights that a graph declares, in its order: normal tables and matrices that decay, zero biases, and `gain`
    /// in the other vectors, those of norms.
    static List<Parameter> declared(Graph graph, double deviation, double gain) {
        List<Parameter> all = new ArrayList<>();
        for (Value value : graph.values()) {
            if (value.op() instanceof Op.Weight(String name, Type type) && !isStatistic(name)) {
                boolean matrix = type.shape().rank() > 1;
                Initializer first = matrix
                        ? new Initializer.Normal(deviation)
                        : new Initializer.Constant(name.endsWith("bias") ? 0 : gain);
                all.add(new Parameter(name, type, first, matrix));
            }
        }
        return all;
    }

    /// The weights of a network of convolutions that a graph declares: kernels are normal with the deviation that keeps
    /// the size of activations through relu, √(2 / inputs of an output) (He et al. 2015), matrices with `deviation`.
    static List<Parameter> convolutional(Graph graph, double deviation) {
        return declared(graph, deviation, 1).stream()
                .map(parameter -> {
                    Shape shape = parameter.type().shape();
                    if (shape.rank() < 4) {
                        return parameter;
                    }
                    double inputs = shape.elements() / (double) shape.dim(0);
                    return new Parameter(
                            parameter.name(),
                            parameter.type(),
                            new Initializer.Normal(Math.sqrt(2 / inputs)),
                            parameter.rule());
                })
                .toList();
    }
}
