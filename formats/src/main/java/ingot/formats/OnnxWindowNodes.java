package ingot.formats;

import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/// Padding, convolution and pooling as nodes.
final class OnnxWindowNodes {
    private final OnnxNodes nodes;

    OnnxWindowNodes(OnnxNodes nodes) {
        this.nodes = nodes;
    }

    /// Pad has no elements in between and cuts nothing off: these become Reshape and Slice.
    String pad(Op.Pad x, String in, String padding, String scope) {
        return pad(x.x().shape(), in, padding, x.low(), x.high(), x.interior(), scope);
    }

    private String pad(
            Shape shape,
            String in,
            String padding,
            List<Integer> low,
            List<Integer> high,
            List<Integer> interior,
            String scope) {
        String y = in;
        int[] dims = shape.dims();
        for (int axis = 0; axis < dims.length; axis++) {
            if (interior.get(axis) > 0 && dims[axis] > 1) {
                y = apart(y, dims, axis, interior.get(axis), padding, scope);
                dims[axis] += (dims[axis] - 1) * interior.get(axis);
            }
        }
        List<Integer> pads = new ArrayList<>();
        low.forEach(n -> pads.add(Math.max(0, n)));
        high.forEach(n -> pads.add(Math.max(0, n)));
        if (pads.stream().anyMatch(n -> n > 0)) {
            y = nodes.one("Pad", List.of(y, nodes.numbers(OnnxNodes.longs(pads)), padding), scope);
        }
        for (int axis = 0; axis < dims.length; axis++) {
            int from = Math.max(0, -low.get(axis));
            int to = Math.max(0, low.get(axis)) + dims[axis] + high.get(axis);
            if (from > 0 || high.get(axis) < 0) {
                y = slice(y, axis, from, to, scope);
            }
        }
        return y;
    }

    /// [.., n, ..] → [.., n, 1, ..] → [.., n, 1 + gap, ..] → [.., n·(1 + gap), ..] without the last gap.
    private String apart(String x, int[] dims, int axis, int gap, String padding, String scope) {
        List<Integer> split = new ArrayList<>(IntStream.of(dims).boxed().toList());
        split.add(axis + 1, 1);
        long[] pads = new long[2 * split.size()];
        pads[split.size() + axis + 1] = gap;
        int[] joined = dims.clone();
        joined[axis] *= 1 + gap;
        String y = nodes.one("Reshape", List.of(x, nodes.numbers(OnnxNodes.longs(split))), scope);
        y = nodes.one("Pad", List.of(y, nodes.numbers(pads), padding), scope);
        y = nodes.one("Reshape", List.of(y, nodes.numbers(OnnxNodes.longs(Shape.of(joined)))), scope);
        return slice(y, axis, 0, joined[axis] - gap, scope);
    }

    private String slice(String x, int axis, long from, long to, String scope) {
        return nodes.one(
                "Slice",
                List.of(
                        x,
                        nodes.numbers(new long[] {from}),
                        nodes.numbers(new long[] {to}),
                        nodes.constants(new long[] {axis})),
                scope);
    }

    /// Gaps between inputs, which ConvTranspose stands for, and padding that cuts off are written before it.
    String convolution(Op.Convolution x, List<String> in, String scope) {
        Op.Window window = x.window();
        boolean plain = window.inputDilation().stream().allMatch(i -> i == 1)
                && window.low().stream().allMatch(i -> i >= 0)
                && window.high().stream().allMatch(i -> i >= 0);
        int spatial = window.strides().size();
        List<Integer> pads = new ArrayList<>(plain ? window.low() : none(spatial));
        pads.addAll(plain ? window.high() : none(spatial));
        String input = plain
                ? in.get(0)
                : pad(
                        x.x().shape(),
                        in.get(0),
                        nodes.constant(Tensor.zeros(x.x().type().with(Shape.SCALAR))),
                        outer(window.low()),
                        outer(window.high()),
                        outer(window.inputDilation().stream().map(n -> n - 1).toList()),
                        scope);
        return nodes.one(
                "Conv",
                List.of(input, in.get(1)),
                scope,
                OnnxNodes.integers("strides", window.strides()),
                OnnxNodes.integers("dilations", window.windowDilation()),
                OnnxNodes.integers("pads", pads),
                OnnxNodes.integer("group", x.groups()));
    }

    private static List<Integer> none(int count) {
        return java.util.Collections.nCopies(count, 0);
    }

    /// Zeros for batch and channels before those of the spatial axes.
    private static List<Integer> outer(List<Integer> spatial) {
        List<Integer> all = new ArrayList<>(List.of(0, 0));
        all.addAll(spatial);
        return all;
    }

    /// The largest of each window, or of floating elements the sum.
    static boolean isPooling(Op.ReduceWindow x) {
        boolean known = x.kind() == Op.ReduceKind.MAX
                || (x.kind() == Op.ReduceKind.SUM && x.x().dtype().isFloating());
        return known
                && x.window().inputDilation().stream().allMatch(i -> i == 1)
                && x.size().size() > 1;
    }

    /// ONNX has windows behind batch and channels only: what lies before the first axis with one is the batch then.
    String pooled(Op.ReduceWindow x, String in, String scope) {
        int rank = x.size().size();
        int first = 0;
        while (first < rank - 1 && !isWindow(x, first)) {
            first++;
        }
        if (rank > 2 && first > 1) {
            return pool(x, in, scope);
        }
        int[] from = x.x().shape().dims();
        int[] dims = new int[2 + rank - first];
        dims[0] = 1;
        for (int i = 0; i < first; i++) {
            dims[0] *= from[i];
        }
        dims[1] = 1;
        System.arraycopy(from, first, dims, 2, rank - first);
        Op.Window w = x.window();
        Op.Window moved = new Op.Window(
                later(w.strides(), first, 1),
                later(w.low(), first, 0),
                later(w.high(), first, 0),
                later(w.inputDilation(), first, 1),
                later(w.windowDilation(), first, 1));
        Value turned = new Value(0, x.x().op(), x.x().type().with(Shape.of(dims)));
        String y = nodes.one("Reshape", List.of(in, nodes.numbers(OnnxNodes.longs(Shape.of(dims)))), scope);
        y = pool(new Op.ReduceWindow(x.kind(), turned, later(x.size(), first, 1), moved), y, scope);
        int[] to = from.clone();
        for (int i = 0; i < rank; i++) {
            int reach = (x.size().get(i) - 1) * w.windowDilation().get(i) + 1;
            to[i] = (from[i] + w.low().get(i) + w.high().get(i) - reach)
                            / w.strides().get(i)
                    + 1;
        }
        return nodes.one("Reshape", List.of(y, nodes.numbers(OnnxNodes.longs(Shape.of(to)))), scope);
    }

    private static boolean isWindow(Op.ReduceWindow x, int axis) {
        Op.Window w = x.window();
        return x.size().get(axis) > 1
                || w.strides().get(axis) > 1
                || w.low().get(axis) != 0
                || w.high().get(axis) != 0;
    }

    private static List<Integer> later(List<Integer> values, int first, int fill) {
        List<Integer> all = new ArrayList<>(List.of(fill, fill));
        all.addAll(values.subList(first, values.size()));
        return all;
    }

    private String pool(Op.ReduceWindow x, String in, String scope) {
        int rank = x.size().size();
        List<Integer> pads = new ArrayList<>(x.window().low().subList(2, rank));
        pads.addAll(x.window().high().subList(2, rank));
        List<OnnxFields> attributes = List.of(
                OnnxNodes.integers("kernel_shape", x.size().subList(2, rank)),
                OnnxNodes.integers("strides", x.window().strides().subList(2, rank)),
                OnnxNodes.integers("dilations", x.window().windowDilation().subList(2, rank)),
                OnnxNodes.integers("pads", pads));
        return x.kind() == Op.ReduceKind.MAX
                ? nodes.one("MaxPool", List.of(in), scope, attributes.toArray(OnnxFields[]::new))
                : sums(x, in, attributes, scope);
    }

    /// ONNX has means of windows only; a convolution of every channel with ones adds in the same order.
    private String sums(Op.ReduceWindow x, String in, List<OnnxFields> attributes, String scope) {
        int channels = x.x().shape().dim(1);
        int rank = x.size().size();
        int[] dims = new int[rank];
        dims[0] = channels;
        for (int i = 1; i < rank; i++) {
            dims[i] = x.size().get(i);
        }
        Tensor one = Tensor.zeros(new Type(x.x().dtype(), Shape.SCALAR));
        one.setFloat(0, 1);
        String ones = nodes.one(
                "Expand", List.of(nodes.constant(one), nodes.numbers(OnnxNodes.longs(Shape.of(dims)))), scope);
        List<OnnxFields> all = new ArrayList<>(attributes);
        all.add(OnnxNodes.integer("group", channels));
        return nodes.one("Conv", List.of(in, ones), scope, all.toArray(OnnxFields[]::new));
    }
}
