package ingot.nn;

import ingot.ir.Function;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Linear maps, table look-up, convolution and pooling.
public final class Layers {
    private Layers() {}

    /// x [..., in] · weight [in, out] + bias [out]: the layout of GPT-2's Conv1D.
    public static Value linear(GraphBuilder b, Value x, Value weight, @Nullable Value bias) {
        return plus(b, b.dot(x, weight, List.of(), List.of(), List.of(x.shape().rank() - 1), List.of(0)), bias);
    }

    /// x [..., in] · weightᵀ + bias with weight [out, in]: the layout of PyTorch's Linear.
    public static Value linearTransposed(GraphBuilder b, Value x, Value weight, @Nullable Value bias) {
        return plus(b, b.dot(x, weight, List.of(), List.of(), List.of(x.shape().rank() - 1), List.of(1)), bias);
    }

    /// Equal parts along an axis. One function, so that its gradient is one concatenation and not a sum of padded
    /// parts.
    public static List<Value> split(GraphBuilder b, Value x, int parts, int axis) {
        if (x.shape().dim(axis) % parts != 0) {
            throw new IngotException(
                    "split: axis " + axis + " of " + x.shape() + " does not divide into " + parts + " parts at " + x);
        }
        int size = x.shape().dim(axis) / parts;
        Type part = x.type().with(x.shape().with(axis, size));
        List<Type> backward = new ArrayList<>(List.of(x.type()));
        backward.addAll(Collections.nCopies(2 * parts, part));
        Map<String, Double> attributes = Map.of("parts", (double) parts, "axis", (double) axis);
        Function gradient = Definition.of(
                "splitGradient",
                attributes,
                backward,
                null,
                (g, in) -> List.of(g.concatenate(in.subList(1 + parts, 1 + 2 * parts), axis)));
        Function split = Definition.of(
                "split",
                attributes,
                Definition.types(x),
                gradient,
                (g, in) -> IntStream.range(0, parts)
                        .mapToObj(i -> g.slice(in.getFirst(), axis, i * size, (i + 1) * size))
                        .toList());
        return b.call(split, List.of(x));
    }

    /// Rows of `table` [size, width] by `ids` (I32): shape ids + [width].
    public static Value embedding(GraphBuilder b, Value table, Value ids) {
        return b.gather(table, ids, 0);
    }

    /// x [batch, channels, height, width] with kernel [out, channels / groups, height, width], the same stride and
    /// padding on both axes.
    public static Value conv2d(
            GraphBuilder b, Value x, Value kernel, @Nullable Value bias, int stride, int padding, int groups) {
        Op.Window window = new Op.Window(
                List.of(stride, stride),
                List.of(padding, padding),
                List.of(padding, padding),
                List.of(1, 1),
                List.of(1, 1));
        Value y = b.add(new Op.Convolution(x, kernel, window, groups, 1, 1));
        return bias == null ? y : b.add(y, b.broadcast(bias, y.shape(), List.of(1)));
    }

    /// Largest element of every size × size window of x [batch, channels, height, width].
    public static Value maxPool2d(GraphBuilder b, Value x, int size, int stride, int padding) {
        return b.add(new Op.ReduceWindow(ReduceKind.MAX, x, List.of(1, 1, size, size), pooling(stride, padding)));
    }

    /// Mean of every size × size window of x [batch, channels, height, width]; padding counts as zeros.
    public static Value averagePool2d(GraphBuilder b, Value x, int size, int stride, int padding) {
        Value sum = b.add(new Op.ReduceWindow(ReduceKind.SUM, x, List.of(1, 1, size, size), pooling(stride, padding)));
        return b.multiply(sum, 1.0 / (size * size));
    }

    private static Op.Window pooling(int stride, int padding) {
        List<Integer> ones = Collections.nCopies(4, 1);
        List<Integer> around = List.of(0, 0, padding, padding);
        return new Op.Window(List.of(1, 1, stride, stride), around, around, ones, ones);
    }

    private static Value plus(GraphBuilder b, Value y, @Nullable Value bias) {
        return bias == null ? y : b.add(y, bias);
    }
}
