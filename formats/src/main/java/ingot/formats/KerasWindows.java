package ingot.formats;

import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.IntStream;

/// Convolution, pooling, padding and growing of images and sequences, whose channels come last in Keras.
///
/// The graph's convolution has them at axis 1: a transposition before and after it, which is a layout.
final class KerasWindows {
    private KerasWindows() {}

    static void addTo(Map<String, Function<KerasCall, List<Value>>> t) {
        for (int n = 1; n <= 3; n++) {
            int rank = n;
            one(t, "Conv" + n + "D", c -> convolution(c, rank));
            one(t, "Conv" + n + "DTranspose", c -> transposed(c, rank));
            one(t, "MaxPooling" + n + "D", c -> maximum(c, rank));
            one(t, "AveragePooling" + n + "D", c -> average(c, rank));
            one(t, "GlobalMaxPooling" + n + "D", c -> global(c, rank, ReduceKind.MAX));
            one(t, "GlobalAveragePooling" + n + "D", c -> global(c, rank, ReduceKind.SUM));
            one(t, "ZeroPadding" + n + "D", c -> padded(c, rank, "padding", 1));
            one(t, "Cropping" + n + "D", c -> padded(c, rank, "cropping", -1));
            one(t, "UpSampling" + n + "D", c -> repeated(c, rank));
        }
        for (int n = 1; n <= 2; n++) {
            int rank = n;
            one(t, "DepthwiseConv" + n + "D", c -> depthwise(c, rank));
            one(t, "SeparableConv" + n + "D", c -> separable(c, rank));
        }
    }

    private static void one(
            Map<String, Function<KerasCall, List<Value>>> t, String kind, Function<KerasCall, Value> meaning) {
        t.put(kind, c -> List.of(meaning.apply(c)));
    }

    // ---- channels

    private static boolean last(KerasCall c) {
        return !c.layer().text("data_format", "channels_last").equals("channels_first");
    }

    private static Value first(KerasCall c, Value x, int n) {
        if (x.shape().rank() != n + 2) {
            throw new IngotException(
                    "the input has the shape " + x.shape() + ", expected batch, " + n + " spatial axes and channels");
        }
        return last(c) ? c.b().transpose(x, order(n, 1, n + 1)) : x;
    }

    private static Value back(KerasCall c, Value y, int n) {
        return last(c) ? c.b().transpose(y, order(n, n + 1, 1)) : y;
    }

    /// The permutation of n + 2 axes that moves axis `from` to `to`.
    private static int[] order(int n, int to, int from) {
        List<Integer> axes = new ArrayList<>(IntStream.range(0, n + 2).boxed().toList());
        axes.add(to, axes.remove(from));
        return axes.stream().mapToInt(i -> i).toArray();
    }

    // ---- convolution

    /// Window, steps and what is padded on each side of n axes.
    private static Op.Window window(KerasCall c, Shape x, List<Integer> size) {
        int n = size.size();
        List<Integer> strides = c.layer().integers("strides", n, 1);
        List<Integer> gaps = c.layer().integers("dilation_rate", n, 1);
        return window(c.layer().text("padding", "valid"), x, size, strides, gaps);
    }

    private static Op.Window window(
            String padding, Shape x, List<Integer> size, List<Integer> strides, List<Integer> gaps) {
        int n = size.size();
        List<Integer> low = new ArrayList<>();
        List<Integer> high = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            int reach = Math.addExact(Math.multiplyExact(size.get(i) - 1, gaps.get(i)), 1);
            int total = Math.max(0, (ceil(x.dim(i + 2), strides.get(i)) - 1) * strides.get(i) + reach - x.dim(i + 2));
            low.add(
                    switch (padding) {
                        case "valid" -> 0;
                        case "same" -> total / 2;
                        case "causal" -> reach - 1;
                        default -> throw new IngotException("padding " + padding + " is not known");
                    });
            high.add(padding.equals("same") ? total - total / 2 : 0);
        }
        return new Op.Window(strides, low, high, Collections.nCopies(n, 1), gaps);
    }

    private static int ceil(int size, int stride) {
        if (stride < 1) {
            throw new IngotException("strides of " + stride + "; expected at least 1");
        }
        return (size + stride - 1) / stride;
    }

    private static int[] dims(List<Integer> window, int... rest) {
        return IntStream.concat(window.stream().mapToInt(i -> i), IntStream.of(rest))
                .toArray();
    }

    /// [window…, a, b] → [b, a, window…]
    private static Value outFirst(GraphBuilder b, Value kernel, int n) {
        return b.transpose(
                kernel,
                IntStream.concat(IntStream.of(n + 1, n), IntStream.range(0, n)).toArray());
    }

    /// [window…, channels, multiplier] → [channels · multiplier, 1, window…]
    private static Value perChannel(GraphBuilder b, Value kernel, int n) {
        int[] k = kernel.shape().dims();
        Value turned = b.transpose(
                kernel,
                IntStream.concat(IntStream.of(n, n + 1), IntStream.range(0, n)).toArray());
        int[] dims = new int[n + 2];
        dims[0] = k[n] * k[n + 1];
        dims[1] = 1;
        System.arraycopy(k, 0, dims, 2, n);
        return b.reshape(turned, dims);
    }

    private static Value convolution(KerasCall c, int n) {
        GraphBuilder b = c.b();
        List<Integer> size = c.layer().integers("kernel_size", n, 0);
        int filters = c.layer().integer("filters");
        int groups = c.layer().integer("groups", 1);
        Value x = first(c, c.in(), n);
        Value kernel = c.weight(0, "kernel", dims(size, x.shape().dim(1) / groups, filters));
        Op.Window window = window(c, x.shape(), size);
        Value y = b.add(new Op.Convolution(x, outFirst(b, kernel, n), window, groups, 1, 1));
        return finished(c, y, n, 1, filters);
    }

    /// Bias, activation, and the channels where they were.
    private static Value finished(KerasCall c, Value y, int n, int index, int filters) {
        Value biased = y;
        if (c.layer().flag("use_bias", true)) {
            biased = c.b().add(y, c.b().broadcast(c.weight(index, "bias", filters), y.shape(), List.of(1)));
        }
        return c.activated("activation", back(c, biased, n));
    }

    private static Value depthwise(KerasCall c, int n) {
        Value x = first(c, c.in(), n);
        List<Integer> size = c.layer().integers("kernel_size", n, 0);
        int channels = x.shape().dim(1);
        int multiplier = c.layer().integer("depth_multiplier", 1);
        String name = c.version() >= 3 ? "kernel" : "depthwise_kernel";
        Value y = depthwise(c, x, size, channels, multiplier, name);
        return finished(c, y, n, 1, channels * multiplier);
    }

    private static Value depthwise(
            KerasCall c, Value x, List<Integer> size, int channels, int multiplier, String name) {
        Value kernel = c.weight(0, name, dims(size, channels, multiplier));
        Op.Window window = window(c, x.shape(), size);
        return c.b().add(new Op.Convolution(x, perChannel(c.b(), kernel, size.size()), window, channels, 1, 1));
    }

    private static Value separable(KerasCall c, int n) {
        GraphBuilder b = c.b();
        Value x = first(c, c.in(), n);
        List<Integer> size = c.layer().integers("kernel_size", n, 0);
        int channels = x.shape().dim(1);
        int multiplier = c.layer().integer("depth_multiplier", 1);
        int filters = c.layer().integer("filters");
        Value spread = depthwise(c, x, size, channels, multiplier, "depthwise_kernel");
        List<Integer> ones = Collections.nCopies(n, 1);
        List<Integer> none = Collections.nCopies(n, 0);
        Value kernel = c.weight(1, "pointwise_kernel", dims(ones, channels * multiplier, filters));
        Op.Window point = new Op.Window(ones, none, none, ones, ones);
        Value y = b.add(new Op.Convolution(spread, outFirst(b, kernel, n), point, 1, 1, 1));
        return finished(c, y, n, 2, filters);
    }

    /// The gradient of a convolution by its input, whose padding it has: the kernel mirrored, over the input with gaps.
    private static Value transposed(KerasCall c, int n) {
        GraphBuilder b = c.b();
        Value x = first(c, c.in(), n);
        List<Integer> size = c.layer().integers("kernel_size", n, 0);
        List<Integer> strides = c.layer().integers("strides", n, 1);
        List<Integer> gaps = c.layer().integers("dilation_rate", n, 1);
        List<Integer> extra = c.layer().integers("output_padding", n, -1);
        int filters = c.layer().integer("filters");
        boolean same = c.layer().text("padding", "valid").equals("same");
        List<Integer> low = new ArrayList<>();
        List<Integer> high = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            int in = x.shape().dim(i + 2);
            int stride = strides.get(i);
            int reach = (size.get(i) - 1) * gaps.get(i) + 1;
            int full = Math.addExact(Math.multiplyExact(in - 1, stride), reach);
            int wanted;
            if (extra.get(i) >= 0) {
                wanted = full - (same ? 2 * (reach / 2) : 0) + extra.get(i);
            } else {
                wanted = Math.multiplyExact(in, stride) + (same ? 0 : Math.max(reach - stride, 0));
            }
            int cut = same ? Math.max(0, full - wanted) / 2 : 0;
            low.add(reach - 1 - cut);
            high.add(wanted - (in - 1) * stride - 1 + cut);
        }
        Value kernel = c.weight(0, "kernel", dims(size, filters, x.shape().dim(1))); // [window…, out, in]
        Value turned = b.transpose(
                kernel,
                IntStream.concat(IntStream.of(n, n + 1), IntStream.range(0, n)).toArray());
        Value mirrored =
                b.add(new Op.Reverse(turned, IntStream.range(2, n + 2).boxed().toList()));
        Op.Window window = new Op.Window(Collections.nCopies(n, 1), low, high, strides, gaps);
        return finished(c, b.add(new Op.Convolution(x, mirrored, window, 1, 1, 1)), n, 1, filters);
    }

    // ---- pooling

    private static Value pooled(KerasCall c, Value x, int n, ReduceKind kind) {
        List<Integer> size = c.layer().integers("pool_size", n, 2);
        Op.Window w = poolWindow(c, x, n);
        return c.b().add(new Op.ReduceWindow(
                kind,
                x,
                front(size, 1),
                new Op.Window(
                        front(w.strides(), 1),
                        front(w.low(), 0),
                        front(w.high(), 0),
                        front(w.inputDilation(), 1),
                        front(w.windowDilation(), 1))));
    }

    private static Op.Window poolWindow(KerasCall c, Value x, int n) {
        List<Integer> size = c.layer().integers("pool_size", n, 2);
        List<Integer> strides = c.layer().has("strides") ? c.layer().integers("strides", n, 1) : size;
        return window(c.layer().text("padding", "valid"), x.shape(), size, strides, Collections.nCopies(n, 1));
    }

    private static List<Integer> front(List<Integer> spatial, int value) {
        List<Integer> all = new ArrayList<>(List.of(value, value));
        all.addAll(spatial);
        return all;
    }

    private static Value maximum(KerasCall c, int n) {
        return back(c, pooled(c, first(c, c.in(), n), n, ReduceKind.MAX), n);
    }

    /// The mean of what lies in a window; padding does not count.
    private static Value average(KerasCall c, int n) {
        GraphBuilder b = c.b();
        Value x = first(c, c.in(), n);
        Value y = pooled(c, x, n, ReduceKind.SUM);
        Op.Window w = poolWindow(c, x, n);
        List<Integer> size = c.layer().integers("pool_size", n, 2);
        for (int i = 0; i < n; i++) {
            float[] share = new float[y.shape().dim(i + 2)];
            for (int at = 0; at < share.length; at++) {
                int from = at * w.strides().get(i) - w.low().get(i);
                int count = Math.min(from + size.get(i), x.shape().dim(i + 2)) - Math.max(from, 0);
                share[at] = 1f / count;
            }
            Value factor = b.constant(Tensor.of(Shape.of(share.length), share));
            y = b.multiply(y, b.broadcast(factor, y.shape(), List.of(i + 2)));
        }
        return back(c, y, n);
    }

    private static Value global(KerasCall c, int n, ReduceKind kind) {
        GraphBuilder b = c.b();
        Value x = c.in();
        int[] axes = IntStream.range(last(c) ? 1 : 2, last(c) ? n + 1 : n + 2).toArray();
        long count = IntStream.of(axes).mapToLong(x.shape()::dim).reduce(1, Math::multiplyExact);
        Value y = c.layer().flag("keepdims", false) ? b.reduceKeep(kind, x, axes) : b.reduce(kind, x, axes);
        return kind == ReduceKind.SUM ? b.multiply(y, 1.0 / count) : y;
    }

    // ---- padding and growing

    /// Zeros added around (`sign` 1), or rows and columns taken away (−1): n numbers, or n pairs.
    private static Value padded(KerasCall c, int n, String key, int sign) {
        int rank = n + 2;
        int[] low = new int[rank];
        int[] high = new int[rank];
        int at = last(c) ? 1 : 2;
        var given = c.layer().config().path(key);
        boolean pairs = given.isArray() && !given.isEmpty() && given.get(0).isArray();
        for (int i = 0; i < n; i++) {
            if (pairs) {
                low[at + i] = sign * given.path(i).path(0).asInt(0);
                high[at + i] = sign * given.path(i).path(1).asInt(0);
            } else if (n == 1) {
                List<Integer> both = c.layer().integers(key, 2, 1);
                low[at] = sign * both.get(0);
                high[at] = sign * both.get(1);
            } else {
                low[at + i] = sign * c.layer().integers(key, n, 1).get(i);
                high[at + i] = low[at + i];
            }
        }
        if (sign * Arrays.stream(low).sum() < 0 || sign * Arrays.stream(high).sum() < 0) {
            throw new IngotException(key + " is " + KerasLayer.brief(given) + ", expected no negative number");
        }
        return OnnxPad.constant(c.b(), c.in(), c.b().scalarLike(c.in(), 0), low, high);
    }

    /// Every row and column several times, or what lies between them.
    private static Value repeated(KerasCall c, int n) {
        String kind = c.layer().text("interpolation", "nearest");
        boolean linear = n == 2 && kind.equals("bilinear");
        KerasCall.refuse(
                !linear && !kind.equals("nearest"),
                "interpolation " + kind + (n == 2 ? " (nearest and bilinear are)" : " (nearest is)"));
        GraphBuilder b = c.b();
        Value y = c.in();
        List<Integer> times = c.layer().integers("size", n, 2);
        for (int i = 0; i < n; i++) {
            int axis = (last(c) ? 1 : 2) + i;
            y = linear ? interpolated(b, y, axis, times.get(i)) : repeated(b, y, axis, times.get(i));
        }
        return y;
    }

    /// A product with the shares that each place of the result has in the places of x. The centres of pixels are
    /// aligned, as `tf.image.resize` does: the centre of o lies at (o + ½) / times − ½; past the border is the border.
    private static Value interpolated(GraphBuilder b, Value x, int axis, int times) {
        int size = x.shape().dim(axis);
        int grown = Math.multiplyExact(size, times);
        float[] shares = new float[Math.multiplyExact(grown, size)]; // [grown, size]
        for (int o = 0; o < grown; o++) {
            double centre = (o + 0.5) / times - 0.5;
            int low = (int) Math.floor(centre);
            shares[o * size + Math.max(low, 0)] += (float) (1 - (centre - low));
            shares[o * size + Math.min(low + 1, size - 1)] += (float) (centre - low);
        }
        Value y = b.dot(
                x,
                b.constant(Tensor.of(Shape.of(grown, size), shares)),
                List.of(),
                List.of(),
                List.of(axis),
                List.of(1));
        List<Integer> order = // the new axis is the last one
                new ArrayList<>(IntStream.range(0, x.shape().rank() - 1).boxed().toList());
        order.add(axis, x.shape().rank() - 1);
        return b.transpose(y, order);
    }

    static Value repeated(GraphBuilder b, Value x, int axis, int times) {
        int[] dims = x.shape().dims();
        int[] grown = new int[dims.length + 1];
        System.arraycopy(dims, 0, grown, 0, axis + 1);
        grown[axis + 1] = times;
        System.arraycopy(dims, axis + 1, grown, axis + 2, dims.length - axis - 1);
        List<Integer> axes =
                new ArrayList<>(IntStream.range(0, grown.length).boxed().toList());
        axes.remove(axis + 1);
        Value spread = b.broadcast(x, Shape.of(grown), axes);
        int[] joined = dims.clone();
        joined[axis] = Math.multiplyExact(dims[axis], times);
        return b.reshape(spread, joined);
    }
}
