package ingot.autodiff;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/// Derivatives of reductions and running reductions.
final class ReductionGradients {
    private ReductionGradients() {}

    static void reduce(GraphBuilder b, Op.Reduce op, Value y, Value dy, Cotangents flow) {
        Value x = op.x();
        switch (op.kind()) {
            // ∂Σxⱼ/∂xᵢ = 1
            case SUM -> flow.add(x, () -> spread(b, dy, x.shape(), op.axes()));
            // ∂Πxⱼ/∂xᵢ = Π_{j≠i} xⱼ = (product before i)·(product after i): no division, so zeros are fine
            case PRODUCT ->
                flow.add(
                        x,
                        () -> PointwiseGradients.times(
                                b, spread(b, dy, x.shape(), op.axes()), productOfOthers(b, x, op.axes())));
            // The extreme elements share dy equally
            case MIN, MAX ->
                flow.add(x, () -> {
                    Value extreme = b.compare(CompareKind.EQUAL, x, spread(b, y, x.shape(), op.axes()));
                    Value count = MovementGradients.sum(b, b.convert(extreme, x.dtype()), op.axes());
                    Value share = spread(b, b.divide(dy, count), x.shape(), op.axes());
                    return b.select(extreme, share, b.scalarLike(dy, 0));
                });
            // Booleans only
            case AND, OR -> {}
        }
    }

    static void cumulative(GraphBuilder b, Op.Cumulative op, Value y, Value dy, Cotangents flow) {
        Value x = op.x();
        switch (op.kind()) {
            // yₖ = Σ_{j≤k} xⱼ, so dxᵢ = Σ_{k≥i} dyₖ: the same from the other end
            case SUM -> flow.add(x, () -> b.add(new Op.Cumulative(ReduceKind.SUM, dy, op.axis(), !op.reverse())));
            case PRODUCT -> flow.add(x, () -> cumulativeProduct(b, op, dy));
            // yₖ is the element where the running extreme was set last; of equal ones the first
            case MIN, MAX ->
                flow.add(
                        x,
                        () -> b.add(new Op.AddAlong(
                                whereSet(b, op, y), dy, op.axis(), x.shape().dim(op.axis()))));
            // Booleans only
            case AND, OR -> {}
        }
    }

    /// Repeats a reduced value along the reduced axes.
    private static Value spread(GraphBuilder b, Value reduced, Shape shape, List<Integer> axes) {
        List<Integer> kept = IntStream.range(0, shape.rank())
                .filter(i -> !axes.contains(i))
                .boxed()
                .toList();
        return b.broadcast(reduced, shape, kept);
    }

    private static Value productOfOthers(GraphBuilder b, Value x, List<Integer> axes) {
        Shape shape = x.shape();
        List<Integer> order = new ArrayList<>(IntStream.range(0, shape.rank())
                .filter(i -> !axes.contains(i))
                .boxed()
                .toList());
        order.addAll(axes);
        Value moved = b.transpose(x, order); // [kept…, reduced…]
        Shape kept = shape.without(axes);
        int n = Math.toIntExact(axes.stream().mapToLong(shape::dim).reduce(1, Math::multiplyExact));
        if (n == 0) {
            return x;
        }
        int rows = Math.toIntExact(kept.elements());
        Value flat = b.reshape(moved, rows, n);
        Value one = b.broadcast(b.scalarLike(x, 1), Shape.of(rows, 1));
        Value before = b.add(new Op.Cumulative(ReduceKind.PRODUCT, flat, 1, false));
        Value after = b.add(new Op.Cumulative(ReduceKind.PRODUCT, flat, 1, true));
        Value others = b.multiply(
                b.concatenate(List.of(one, b.slice(before, 1, 0, n - 1)), 1),
                b.concatenate(List.of(b.slice(after, 1, 1, n), one), 1));
        return b.transpose(b.reshape(others, moved.shape()), MovementGradients.inverse(order));
    }

    /// dxᵢ = Σₖ dyₖ · Π_{j≤k, j≠i} xⱼ over k ≥ i, through a square of products: quadratic in the axis, exact at zeros.
    private static Value cumulativeProduct(GraphBuilder b, Op.Cumulative op, Value dy) {
        Shape shape = op.x().shape();
        int rank = shape.rank();
        int n = shape.dim(op.axis());
        List<Integer> last = new ArrayList<>(
                IntStream.range(0, rank).filter(i -> i != op.axis()).boxed().toList());
        last.add(op.axis());
        Value x = b.transpose(op.x(), last); // [.., n]
        Value cotangent = b.transpose(dy, last);
        Shape square = x.shape();
        List<Integer> dims = new ArrayList<>(IntStream.of(square.dims()).boxed().toList());
        dims.add(n);
        square = Shape.of(dims); // [.., i, k]
        List<Integer> alongK =
                new ArrayList<>(IntStream.range(0, rank - 1).boxed().toList());
        alongK.add(rank);
        Value i = b.iota(new Type(DType.I32, square), rank - 1);
        Value k = b.iota(new Type(DType.I32, square), rank);
        Value without =
                b.select(b.compare(CompareKind.EQUAL, i, k), b.scalarLike(x, 1), b.broadcast(x, square, alongK));
        Value products = b.add(new Op.Cumulative(ReduceKind.PRODUCT, without, rank, op.reverse()));
        Value covers = b.compare(op.reverse() ? CompareKind.LESS_EQUAL : CompareKind.GREATER_EQUAL, k, i);
        Value terms =
                b.select(covers, b.multiply(b.broadcast(cotangent, square, alongK), products), b.scalarLike(x, 0));
        return b.transpose(b.sum(terms, rank), MovementGradients.inverse(last));
    }

    /// For every position, the index (I32) of the element that its running extreme is.
    private static Value whereSet(GraphBuilder b, Op.Cumulative op, Value y) {
        Shape shape = y.shape();
        int axis = op.axis();
        int n = shape.dim(axis);
        Value at = b.iota(new Type(DType.I32, shape), axis);
        if (n == 0) {
            return at;
        }
        CompareKind beats = op.kind() == ReduceKind.MAX ? CompareKind.GREATER : CompareKind.LESS;
        Value start = b.broadcast(b.constant(true), shape.with(axis, 1));
        if (op.reverse()) {
            Value set = b.compare(beats, b.slice(op.x(), axis, 0, n - 1), b.slice(y, axis, 1, n));
            Value index = b.select(b.concatenate(List.of(set, start), axis), at, b.constant(n - 1));
            return b.add(new Op.Cumulative(ReduceKind.MIN, index, axis, true));
        }
        Value set = b.compare(beats, b.slice(op.x(), axis, 1, n), b.slice(y, axis, 0, n - 1));
        Value index = b.select(b.concatenate(List.of(start, set), axis), at, b.constant(0));
        return b.add(new Op.Cumulative(ReduceKind.MAX, index, axis, false));
    }
}
