package ingot.compiler;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;

/// An `Op.Convolution` as products of its kernel with windows of its input, which are layouts: nothing is copied but
/// the padding.
///
/// With dilated input the outputs of every remainder modulo the dilation read their own part of the kernel and no gaps:
/// each remainder is a product of its own.
final class Convolutions {
    private Convolutions() {}

    /// A kernel (layouts at the origin) and where its operands begin, in bytes.
    record Part(Kernel.Convolution kernel, long weights, long windows, long out) {}

    /// The same over an input that is padded with +0 as far as any window reaches.
    static Op.Convolution padded(GraphBuilder to, Op.Convolution op, Shape out) {
        if (!isProduct(op)) {
            return op;
        }
        List<Integer> before = new ArrayList<>(List.of(0, 0));
        List<Integer> after = new ArrayList<>(List.of(0, 0));
        List<Integer> low = new ArrayList<>();
        List<Integer> high = new ArrayList<>();
        for (int i = 0; i < op.window().low().size(); i++) {
            int dilation = op.window().inputDilation().get(i);
            int first = -op.window().low().get(i);
            int last = first
                    + (out.dim(i + 2) - 1) * op.window().strides().get(i)
                    + (op.kernel().shape().dim(i + 2) - 1)
                            * op.window().windowDilation().get(i);
            int left = Math.max(0, -Math.ceilDiv(first, dilation));
            int right =
                    Math.max(0, Math.floorDiv(last, dilation) - (op.x().shape().dim(i + 2) - 1));
            before.add(left);
            after.add(right);
            low.add(op.window().low().get(i) - left * dilation);
            high.add(op.window().high().get(i) - right * dilation);
        }
        if (Collections.max(before) == 0 && Collections.max(after) == 0) {
            return op;
        }
        Value zero = to.constant(0f);
        Value x = to.add(new Op.Pad(op.x(), zero, before, after, Collections.nCopies(before.size(), 0)));
        Op.Window window = new Op.Window(
                op.window().strides(),
                low,
                high,
                op.window().inputDilation(),
                op.window().windowDilation());
        return new Op.Convolution(x, op.kernel(), window, op.groups(), op.batchGroups(), op.segments());
    }

    /// True for what `parts` can say; the others keep the loops of the interpreter.
    static boolean isProduct(Op.Convolution op) {
        boolean plain = op.x().dtype() == DType.F32
                && (op.groups() == 1 || op.batchGroups() == 1)
                && op.x().shape().elements() > 0
                && op.kernel().shape().elements() > 0;
        for (int i = 0; plain && i < op.window().low().size(); i++) {
            plain = op.window().inputDilation().get(i) == 1
                    || (op.window().strides().get(i) == 1
                            && op.window().windowDilation().get(i) == 1);
        }
        return plain;
    }

    /// The kernels for a padded convolution over these layouts of its operands and its result.
    static List<Part> parts(Op.Convolution op, Layout x, Layout kernel, Layout out) {
        int axes = op.window().low().size();
        List<int[]> remainders = new ArrayList<>(List.of(new int[axes]));
        for (int i = 0; i < axes; i++) {
            int axis = i;
            int count = Math.min(op.window().inputDilation().get(i), out.shape().dim(i + 2));
            List<int[]> more = new ArrayList<>();
            for (int[] some : remainders) {
                for (int r = 0; r < count; r++) {
                    int[] next = some.clone();
                    next[axis] = r;
                    more.add(next);
                }
            }
            remainders = more;
        }
        return remainders.stream().map(r -> part(op, x, kernel, out, r)).toList();
    }

    /// The outputs at positions r, r + dilation, … of every axis.
    private static Part part(Op.Convolution op, Layout x, Layout kernel, Layout out, int[] r) {
        int groups = Math.max(op.groups(), op.batchGroups());
        boolean byChannel = op.batchGroups() == 1;
        int outChannels = kernel.shape().dim(0) / groups;
        int batch = out.shape().dim(0);
        Axes k = new Axes();
        Axes n = new Axes();
        k.add(kernel.shape().dim(1), x.stride(1), kernel.stride(1));
        n.add(batch, x.stride(0), out.stride(0));
        long at = x.offset();
        long weights = kernel.offset();
        long to = out.offset();
        for (int i = 0; i < r.length; i++) {
            int axis = i + 2;
            int dilation = op.window().inputDilation().get(i);
            int low = op.window().low().get(i);
            int first = Math.floorMod(low - r[i], dilation);
            int taps = Math.max(0, Math.ceilDiv(kernel.shape().dim(axis) - first, dilation));
            int positions = Math.ceilDiv(out.shape().dim(axis) - r[i], dilation);
            at += taps == 0 ? 0 : x.stride(axis) * ((r[i] + first - low) / dilation);
            weights += taps == 0 ? 0 : kernel.stride(axis) * first;
            to += out.stride(axis) * r[i];
            k.add(taps, x.stride(axis) * op.window().windowDilation().get(i), kernel.stride(axis) * dilation);
            n.add(positions, x.stride(axis) * op.window().strides().get(i), out.stride(axis) * dilation);
        }
        long group = byChannel
                ? x.stride(1) * (x.shape().dim(1) / groups)
                : x.stride(0) * (x.shape().dim(0) / groups);
        k.merge();
        n.merge();
        Kernel.Convolution product = new Kernel.Convolution(
                layout(
                        List.of(groups, outChannels),
                        List.of(kernel.stride(0) * outChannels, kernel.stride(0)),
                        k.sizes,
                        k.other,
                        List.of(),
                        List.of()),
                layout(List.of(groups), List.of(group), k.sizes, k.windows, n.sizes, n.windows),
                layout(
                        List.of(groups, outChannels),
                        List.of(out.stride(1) * outChannels, out.stride(1)),
                        n.sizes,
                        n.other,
                        List.of(),
                        List.of()),
                op.segments());
        return new Part(product, 4 * weights, 4 * at, 4 * to);
    }

    private static Layout layout(
            List<Integer> lead,
            List<Long> leadSteps,
            List<Integer> middle,
            List<Long> middleSteps,
            List<Integer> last,
            List<Long> lastSteps) {
        List<Integer> dims = new ArrayList<>(lead);
        dims.addAll(middle);
        dims.addAll(last);
        List<Long> steps = new ArrayList<>(leadSteps);
        steps.addAll(middleSteps);
        steps.addAll(lastSteps);
        return new Layout(DType.F32, Shape.of(dims), 0, steps).withUnitSteps();
    }

    /// Axes that the windows and another operand have in common.
    private static final class Axes {
        List<Integer> sizes = new ArrayList<>();
        List<Long> windows = new ArrayList<>();
        List<Long> other = new ArrayList<>();

        void add(int size, long inWindows, long inOther) {
            sizes.add(size);
            windows.add(inWindows);
            other.add(inOther);
        }

        /// Makes one axis of neighbours that both operands step through as one.
        void merge() {
            if (sizes.contains(0)) {
                sizes = List.of(0);
                windows = List.of(1L);
                other = List.of(1L);
                return;
            }
            Shape space = Shape.of(sizes);
            List<Layout> both =
                    List.of(new Layout(DType.F32, space, 0, windows), new Layout(DType.F32, space, 0, other));
            Shape merged = Layout.collapse(space, both);
            windows = both.get(0).reshape(merged).orElseThrow().strides();
            other = both.get(1).reshape(merged).orElseThrow().strides();
            sizes = IntStream.of(merged.dims()).boxed().toList();
        }
    }
}
