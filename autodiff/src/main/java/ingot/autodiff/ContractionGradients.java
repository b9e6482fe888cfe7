package ingot.autodiff;

import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;

/// Derivatives of the contractions, each again one contraction.
final class ContractionGradients {
    private ContractionGradients() {}

    /// y[n, i, j] = Σₖ a[n, i, k]·b[n, j, k]: da = Σⱼ dy·b, db = Σᵢ dy·a; summed axes in ascending order, the batch
    /// first.
    static void dot(GraphBuilder g, Op.Dot op, Value dy, Cotangents flow) {
        List<Integer> freeA = free(op.a().shape(), op.batchA(), op.contractA());
        List<Integer> freeB = free(op.b().shape(), op.batchB(), op.contractB());
        int batches = op.batchA().size();
        List<Integer> batchY = range(0, batches);
        List<Integer> iY = range(batches, freeA.size());
        List<Integer> jY = range(batches + freeA.size(), freeB.size());
        flow.add(
                op.a(),
                () -> side(
                        g,
                        dy,
                        batchY,
                        jY,
                        op.b(),
                        op.batchB(),
                        freeB,
                        op.contractB(),
                        op.batchA(),
                        freeA,
                        op.contractA()));
        flow.add(
                op.b(),
                () -> side(
                        g,
                        dy,
                        batchY,
                        iY,
                        op.a(),
                        op.batchA(),
                        freeA,
                        op.contractA(),
                        op.batchB(),
                        freeB,
                        op.contractB()));
        if (op.start() != null) {
            flow.add(op.start(), () -> dy);
        }
    }

    /// dy contracted with `other`, as a tensor whose axes are `batch`, `free` and `inner` of the operand sought.
    ///
    /// The product leaves axes (batch, free, inner) or, with its factors swapped, (batch, inner, free); the one in the
    /// operand's own order is taken, else one transpose repairs it. `inner` comes out in the ascending order of
    /// `other`'s axes.
    private static Value side(
            GraphBuilder g,
            Value dy,
            List<Integer> batchY,
            List<Integer> summedY,
            Value other,
            List<Integer> otherBatch,
            List<Integer> otherSummed,
            List<Integer> otherInner,
            List<Integer> batch,
            List<Integer> free,
            List<Integer> inner) {
        List<Integer> byOther = otherInner.stream()
                .sorted()
                .map(axis -> inner.get(otherInner.indexOf(axis)))
                .toList();
        List<Integer> straight = concat(batch, free, byOther); // result axis i is this axis of the operand
        List<Integer> swapped = concat(batch, byOther, free);
        if (!ascending(straight) && ascending(swapped)) {
            return g.dot(other, dy, otherBatch, batchY, otherSummed, summedY);
        }
        Value product = g.dot(dy, other, batchY, otherBatch, summedY, otherSummed);
        return g.transpose(product, MovementGradients.inverse(straight));
    }

    /// dx: dy spread by the strides, convolved with the mirrored kernel; dk: x convolved with dy, the batch as input
    /// channels.
    static void convolution(GraphBuilder g, Op.Convolution op, Value dy, Cotangents flow) {
        if (op.batchGroups() == 1) {
            flow.add(op.x(), () -> ofInput(g, op.x().shape(), op.kernel(), op.window(), op.groups(), dy));
            flow.add(op.kernel(), () -> ofKernel(g, op.x(), op.kernel().shape(), op.window(), op.groups(), dy));
            return;
        }
        // With x[g·n, c] seen as [n, g·c] the batch groups are channel groups.
        int groups = op.batchGroups();
        Shape shape = op.x().shape();
        int[] split = concat(new int[] {groups, shape.dim(0) / groups}, tail(shape, 1));
        int[] merged = concat(new int[] {shape.dim(0) / groups, groups * shape.dim(1)}, tail(shape, 2));
        int[] regrouped = split.clone();
        regrouped[0] = split[1];
        regrouped[1] = split[0];
        List<Integer> exchange = new ArrayList<>(range(0, split.length));
        Collections.swap(exchange, 0, 1);
        flow.add(op.x(), () -> {
            Value dx = ofInput(g, Shape.of(merged), op.kernel(), op.window(), groups, dy);
            return g.reshape(g.transpose(g.reshape(dx, regrouped), exchange), shape);
        });
        flow.add(op.kernel(), () -> {
            Value x = g.reshape(g.transpose(g.reshape(op.x(), split), exchange), merged);
            return ofKernel(g, x, op.kernel().shape(), op.window(), groups, dy);
        });
    }

    /// dx[n, c, p] = Σ over out channels o and windows at q that read p: dy[n, o, q]·kernel[o, c, p − q].
    private static Value ofInput(GraphBuilder g, Shape x, Value kernel, Op.Window window, int groups, Value dy) {
        Shape k = kernel.shape();
        int out = k.dim(0);
        int channels = k.dim(1);
        int[] spatial = tail(k, 2);
        Value mirrored = g.add(new Op.Reverse(kernel, range(2, spatial.length)));
        List<Integer> exchange = new ArrayList<>(range(0, spatial.length + 3));
        Collections.swap(exchange, 1, 2);
        Value split = g.reshape(mirrored, concat(new int[] {groups, out / groups, channels}, spatial));
        Value turned =
                g.reshape(g.transpose(split, exchange), concat(new int[] {groups * channels, out / groups}, spatial));
        int[] positions = tail(dy.shape(), 2);
        Op.Window back = WindowGradients.back(tail(x, 2), spatial, positions, window);
        return g.add(new Op.Convolution(dy, turned, back, groups, 1, 1)); // [batch, channels, spatial…]
    }

    /// dk[o, c, w] = Σ over batch n and positions q: x[n, c, q·stride + w·dilation − low]·dy[n, o, q].
    private static Value ofKernel(GraphBuilder g, Value x, Shape kernel, Op.Window window, int groups, Value dy) {
        int axes = kernel.rank() - 2;
        List<Integer> exchange = new ArrayList<>(range(0, axes + 2));
        Collections.swap(exchange, 0, 1);
        List<Integer> high = new ArrayList<>();
        for (int i = 0; i < axes; i++) {
            int size = x.shape().dim(i + 2);
            int dilated = size == 0 ? 0 : (size - 1) * window.inputDilation().get(i) + 1;
            int reach = (dy.shape().dim(i + 2) - 1) * window.strides().get(i) + 1;
            int room = (kernel.dim(i + 2) - 1) * window.windowDilation().get(i);
            high.add(room + reach - dilated - window.low().get(i));
        }
        Op.Window swapped =
                new Op.Window(window.windowDilation(), window.low(), high, window.inputDilation(), window.strides());
        Value product = g.add(new Op.Convolution(
                g.transpose(x, exchange),
                g.transpose(dy, exchange),
                swapped,
                1,
                groups,
                1)); // [channels, out, window…]
        return g.transpose(product, exchange);
    }

    private static List<Integer> free(Shape shape, List<Integer> batch, List<Integer> contract) {
        return IntStream.range(0, shape.rank())
                .filter(i -> !batch.contains(i) && !contract.contains(i))
                .boxed()
                .toList();
    }

    private static List<Integer> range(int start, int count) {
        return IntStream.range(start, start + count).boxed().toList();
    }

    @SafeVarargs
    private static List<Integer> concat(List<Integer>... parts) {
        List<Integer> all = new ArrayList<>();
        for (List<Integer> part : parts) {
            all.addAll(part);
        }
        return all;
    }

    private static int[] concat(int[] a, int[] b) {
        return IntStream.concat(IntStream.of(a), IntStream.of(b)).toArray();
    }

    private static int[] tail(Shape shape, int from) {
        return IntStream.range(from, shape.rank()).map(shape::dim).toArray();
    }

    private static boolean ascending(List<Integer> axes) {
        return IntStream.range(1, axes.size()).allMatch(i -> axes.get(i) > axes.get(i - 1));
    }
}
