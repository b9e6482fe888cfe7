package ingot.formats;

import static ingot.formats.OnnxOperator.one;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.Softmax;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.stream.IntStream;

/// Reductions, running reductions, softmax and their relatives.
final class OnnxReductions {
    private OnnxReductions() {}

    static void addTo(Map<String, OnnxOperator> t) {
        reduction(t, "ReduceSum", (b, x) -> x, ReduceKind.SUM, (b, y) -> y);
        reduction(t, "ReduceProd", (b, x) -> x, ReduceKind.PRODUCT, (b, y) -> y);
        t.put("ReduceMax", one(c -> extreme(c, ReduceKind.MAX)));
        t.put("ReduceMin", one(c -> extreme(c, ReduceKind.MIN)));
        reduction(t, "ReduceL1", (b, x) -> b.unary(UnaryKind.ABS, x), ReduceKind.SUM, (b, y) -> y);
        reduction(t, "ReduceL2", OnnxReductions::square, ReduceKind.SUM, OnnxReductions::root);
        reduction(t, "ReduceSumSquare", OnnxReductions::square, ReduceKind.SUM, (b, y) -> y);
        reduction(t, "ReduceLogSum", (b, x) -> x, ReduceKind.SUM, GraphBuilder::log);
        t.put("ReduceMean", one(OnnxReductions::mean));
        t.put("ReduceLogSumExp", one(OnnxReductions::logSumExp));
        t.put("ArgMax", one(c -> argument(c, true)));
        t.put("ArgMin", one(c -> argument(c, false)));
        t.put("Softmax", one(c -> lastAxis(c, x -> Softmax.softmax(c.b(), x))));
        t.put("LogSoftmax", one(c -> lastAxis(c, x -> Softmax.logSoftmax(c.b(), x))));
        t.put("Hardmax", one(c -> lastAxis(c, x -> hardmax(c.b(), x))));
        t.put("CumSum", one(OnnxReductions::cumulative));
        t.put("CumProd", one(OnnxReductions::cumulativeProduct));
    }

    private static Value square(GraphBuilder b, Value x) {
        return b.multiply(x, x);
    }

    private static Value root(GraphBuilder b, Value x) {
        return x.dtype().isFloating() ? b.sqrt(x) : b.convert(b.sqrt(b.convert(x, DType.F32)), x.dtype());
    }

    private static void reduction(
            Map<String, OnnxOperator> t,
            String name,
            BiFunction<GraphBuilder, Value, Value> before,
            ReduceKind kind,
            BiFunction<GraphBuilder, Value, Value> after) {
        t.put(name, one(c -> after.apply(c.b(), reduce(c, kind, before.apply(c.b(), c.in(0))))));
    }

    /// The axes that the node reduces: all of them where it names none, unless it says that this means nothing.
    private static int[] axes(OnnxCall c) {
        int rank = c.in(0).shape().rank();
        int[] axes = c.axes("axes", 1, rank);
        if (axes == null || axes.length == 0) {
            return c.flag("noop_with_empty_axes")
                    ? new int[0]
                    : IntStream.range(0, rank).toArray();
        }
        return axes;
    }

    private static Value reduce(OnnxCall c, ReduceKind kind, Value x) {
        int[] axes = axes(c);
        if (axes.length == 0) {
            return x;
        }
        return c.integer("keepdims", 1) != 0 ? c.b().reduceKeep(kind, x, axes) : c.b().reduce(kind, x, axes);
    }

    /// BOOL: the largest is true if any is.
    private static Value extreme(OnnxCall c, ReduceKind kind) {
        boolean logical = c.in(0).dtype() == DType.BOOL;
        ReduceKind used = !logical ? kind : kind == ReduceKind.MAX ? ReduceKind.OR : ReduceKind.AND;
        return reduce(c, used, c.in(0));
    }

    private static Value mean(OnnxCall c) {
        Shape shape = c.in(0).shape();
        long count = IntStream.of(axes(c)).mapToLong(shape::dim).reduce(1, Math::multiplyExact);
        Value sum = reduce(c, ReduceKind.SUM, c.in(0));
        return sum.dtype().isFloating() ? c.b().multiply(sum, 1.0 / count) : c.b().divide(sum, c.scalar(sum, count));
    }

    /// max + log Σ e^(x − max): nothing overflows; a line of −∞ gives −∞.
    private static Value logSumExp(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = b.convert(c.in(0), DType.F32);
        int[] axes = axes(c);
        if (axes.length == 0) {
            return x;
        }
        Value max = b.reduceKeep(ReduceKind.MAX, x, axes);
        Value finite =
                b.compare(CompareKind.LESS, b.unary(UnaryKind.ABS, max), b.scalarLike(max, Double.POSITIVE_INFINITY));
        Value shift = b.select(finite, max, b.scalarLike(max, 0));
        Value sum = b.log(b.reduceKeep(ReduceKind.SUM, b.exp(b.subtract(x, shift)), axes));
        Value total = b.add(sum, shift);
        return c.integer("keepdims", 1) != 0
                ? total
                : b.reshape(total, x.shape().without(boxed(axes)));
    }

    private static List<Integer> boxed(int[] axes) {
        return IntStream.of(axes).boxed().toList();
    }

    private static Value argument(OnnxCall c, boolean largest) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        int axis = c.axis("axis", 0, x.shape().rank());
        Value at = argument(b, x, axis, largest, c.flag("select_last_index"));
        Shape kept = x.shape().with(axis, 1);
        Value found = b.convert(at, DType.I64);
        return c.integer("keepdims", 1) != 0 ? b.reshape(found, kept) : found;
    }

    /// The first (or last) position of the largest (or smallest) element along an axis, which vanishes: I32.
    static Value argument(GraphBuilder b, Value x, int axis, boolean largest, boolean last) {
        Value best = b.reduceKeep(largest ? ReduceKind.MAX : ReduceKind.MIN, x, axis);
        Value position = b.iota(new Type(DType.I32, x.shape()), axis);
        Value isBest = b.compare(CompareKind.EQUAL, x, best);
        Value other = b.constant(last ? -1 : x.shape().dim(axis));
        return b.reduce(last ? ReduceKind.MAX : ReduceKind.MIN, b.select(isBest, position, other), axis);
    }

    /// Since opset 13 along one axis; before over all axes from one on, taken together.
    private static Value lastAxis(OnnxCall c, java.util.function.UnaryOperator<Value> rows) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        int rank = x.shape().rank();
        if (c.opset() >= 13) {
            int axis = c.axis("axis", -1, rank);
            List<Integer> order = toEnd(rank, axis);
            return b.transpose(rows.apply(b.transpose(x, order)), inverse(order));
        }
        int axis = c.axis("axis", 1, rank);
        int length = 1;
        for (int i = axis; i < rank; i++) {
            length *= x.shape().dim(i);
        }
        if (axis == rank - 1) {
            return rows.apply(x);
        }
        int outer = length == 0 ? 0 : Math.toIntExact(x.shape().elements() / length);
        return b.reshape(rows.apply(b.reshape(x, outer, length)), x.shape());
    }

    /// All axes in order, `axis` last.
    static List<Integer> toEnd(int rank, int axis) {
        return IntStream.concat(IntStream.range(0, rank).filter(i -> i != axis), IntStream.of(axis))
                .boxed()
                .toList();
    }

    static List<Integer> inverse(List<Integer> order) {
        return IntStream.range(0, order.size()).map(order::indexOf).boxed().toList();
    }

    private static Value hardmax(GraphBuilder b, Value x) {
        int axis = x.shape().rank() - 1;
        Value at = argument(b, x, axis, true, false);
        Value position = b.iota(new Type(DType.I32, x.shape()), axis);
        Value kept = b.broadcast(at, x.shape(), IntStream.range(0, axis).boxed().toList());
        return b.convert(b.compare(CompareKind.EQUAL, position, kept), x.dtype());
    }

    private static Value cumulative(OnnxCall c) {
        return running(c, ReduceKind.SUM, 0);
    }

    private static Value cumulativeProduct(OnnxCall c) {
        return running(c, ReduceKind.PRODUCT, 1);
    }

    /// `exclusive` leaves out the element itself: everything moves by one place, and the identity comes in.
    private static Value running(OnnxCall c, ReduceKind kind, double identity) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        int axis = c.axis(c.longs(1).getFirst(), x.shape().rank());
        boolean reverse = c.flag("reverse");
        Value total = b.add(new Op.Cumulative(kind, x, axis, reverse));
        int length = x.shape().dim(axis);
        if (!c.flag("exclusive") || length == 0) {
            return total;
        }
        Value first = b.broadcast(c.scalar(x, identity), x.shape().with(axis, 1));
        return reverse
                ? b.concatenate(List.of(b.slice(total, axis, 1, length), first), axis)
                : b.concatenate(List.of(first, b.slice(total, axis, 0, length - 1)), axis);
    }
}
