package ingot.formats;

import static ingot.formats.OnnxOperator.one;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/// Operators that read and write where indices say, and those that sort.
final class OnnxIndexing {
    /// Elements of the comparison of all updates with all places, above which it is refused.
    private static final long MAX_PAIRS = 1 << 24;

    private OnnxIndexing() {}

    static void addTo(Map<String, OnnxOperator> t) {
        t.put("Gather", one(OnnxIndexing::gather));
        t.put("GatherElements", one(OnnxIndexing::gatherElements));
        t.put("GatherND", one(OnnxIndexing::gatherND));
        t.put("Scatter", one(OnnxIndexing::scatterElements));
        t.put("ScatterElements", one(OnnxIndexing::scatterElements));
        t.put("ScatterND", one(OnnxIndexing::scatterND));
        t.put("OneHot", one(OnnxIndexing::oneHot));
        t.put("TopK", OnnxIndexing::topK);
        t.put("ReverseSequence", one(OnnxIndexing::reverseSequence));
        t.put("Compress", one(OnnxIndexing::compress));
        t.put("NonZero", one(OnnxIndexing::nonZero));
        t.put("Unique", OnnxUnique::unique);
    }

    /// I32 in [0, size): negative ones count from the end.
    static Value index(GraphBuilder b, Value indices, int size) {
        Value at = b.convert(indices, DType.I32);
        Value negative = b.compare(CompareKind.LESS, at, b.constant(0));
        return b.select(negative, b.add(at, b.constant(size)), at);
    }

    private static Value gather(OnnxCall c) {
        int axis = c.axis("axis", 0, c.in(0).shape().rank());
        return c.b().gather(c.in(0), index(c.b(), c.in(1), c.in(0).shape().dim(axis)), axis);
    }

    private static Value gatherElements(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        Value indices = c.in(1);
        int axis = c.axis("axis", 0, x.shape().rank());
        Value at = index(b, indices, x.shape().dim(axis));
        for (int i = 0; i < x.shape().rank(); i++) {
            x = i == axis ? x : b.slice(x, i, 0, indices.shape().dim(i));
        }
        return b.add(new Op.TakeAlong(x, at, axis));
    }

    /// The row-major number of the block that each index tuple names: indices [..., k] → [...].
    private static Value flat(GraphBuilder b, Value indices, int[] sizes) {
        Value total = null;
        for (int i = 0; i < sizes.length; i++) {
            Value part = b.slice(indices, -1, i, i + 1);
            Value at = index(b, part, sizes[i]);
            total = total == null ? at : b.add(b.multiply(total, b.constant(sizes[i])), at);
        }
        if (total == null) {
            throw new IngotException("indices " + indices.shape() + " name no axis");
        }
        return b.reshape(total, indices.shape().without(List.of(indices.shape().rank() - 1)));
    }

    private static Value gatherND(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        Value indices = b.convert(c.in(1), DType.I32);
        int batch = Math.toIntExact(c.integer("batch_dims", 0));
        int[] dims = x.shape().dims();
        int k = indices.shape().dim(-1);
        int[] inner = java.util.Arrays.copyOfRange(dims, batch, batch + k);
        Value at = flat(b, indices, inner); // [batch…, …]
        int block = OnnxShapes.product(inner, 0, k);
        int outer = OnnxShapes.product(dims, 0, batch);
        if (batch > 0) { // blocks of all batches in one row
            int each = Math.toIntExact(at.shape().elements() / Math.max(1, outer));
            Type type = Type.i32(outer, each);
            Value first = b.multiply(b.iota(type, 0), b.constant(block));
            at = b.reshape(b.add(b.reshape(at, outer, each), first), at.shape());
        }
        List<Integer> rows = new ArrayList<>(List.of(outer * block));
        IntStream.range(batch + k, dims.length).forEach(i -> rows.add(dims[i]));
        return b.gather(b.reshape(x, Shape.of(rows)), at, 0);
    }

    private static Value scatterElements(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        Value updates = c.in(2);
        int axis = c.axis("axis", 0, x.shape().rank());
        Type type = new Type(DType.I32, updates.shape());
        Value flat = null;
        for (int i = 0; i < x.shape().rank(); i++) {
            int size = x.shape().dim(i);
            Value at = i == axis ? index(b, c.in(1), size) : b.iota(type, i);
            flat = flat == null ? at : b.add(b.multiply(flat, b.constant(size)), at);
        }
        int n = Math.toIntExact(updates.shape().elements());
        if (n == 0 || flat == null) {
            return x;
        }
        int all = Math.toIntExact(x.shape().elements());
        Value result = scatter(
                c, b.reshape(x, all, 1), b.reshape(flat, n), b.reshape(updates, n, 1), c.text("reduction", "none"));
        return b.reshape(result, x.shape());
    }

    private static Value scatterND(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        Value indices = b.convert(c.in(1), DType.I32);
        int k = indices.shape().dim(-1);
        int[] dims = x.shape().dims();
        int blocks = OnnxShapes.product(dims, 0, k);
        int width = OnnxShapes.product(dims, k, dims.length);
        Value flat = flat(b, indices, java.util.Arrays.copyOf(dims, k));
        int n = Math.toIntExact(flat.shape().elements());
        if (n == 0) {
            return x;
        }
        Value result = scatter(
                c,
                b.reshape(x, blocks, width),
                b.reshape(flat, n),
                b.reshape(c.in(2), n, width),
                c.text("reduction", "none"));
        return b.reshape(result, x.shape());
    }

    /// x [rows, width] with updates [n, width] at `at` [n]; of several for one row without a reduction any may win, as
    /// ONNX says.
    static Value scatter(OnnxCall c, Value x, Value at, Value updates, String reduction) {
        GraphBuilder b = c.b();
        if (x.dtype() == DType.BOOL) {
            return b.convert(
                    scatter(c, b.convert(x, DType.U8), at, b.convert(updates, DType.U8), reduction), DType.BOOL);
        }
        int rows = x.shape().dim(0);
        Value ones = b.broadcast(b.constant(1), at.shape());
        Value counts = b.add(new Op.ScatterAdd(at, ones, 0, rows, 1)); // [rows]
        Value touched = b.broadcast(b.compare(CompareKind.GREATER, counts, b.constant(0)), x.shape(), List.of(0));
        return switch (reduction) {
            case "none" -> b.select(touched, b.add(new Op.ScatterAdd(at, updates, 0, rows, 1)), x);
            case "add" -> b.add(x, b.add(new Op.ScatterAdd(at, updates, 0, rows, 1)));
            case "mul" -> b.multiply(x, matched(c, rows, at, updates, ReduceKind.PRODUCT, 1));
            case "max" -> b.select(touched, b.max(x, matched(c, rows, at, updates, ReduceKind.MAX, Double.NaN)), x);
            case "min" -> b.select(touched, b.min(x, matched(c, rows, at, updates, ReduceKind.MIN, Double.NaN)), x);
            default -> throw c.unsupported("the reduction " + reduction);
        };
    }

    /// Reduces for every row all updates that name it: [rows, n, width] → [rows, width].
    private static Value matched(OnnxCall c, int rows, Value at, Value updates, ReduceKind kind, double identity) {
        GraphBuilder b = c.b();
        int n = updates.shape().dim(0);
        int width = updates.shape().dim(1);
        if ((long) rows * n * width > MAX_PAIRS) {
            throw c.unsupported("scattering " + n + " updates into " + rows + " rows by " + kind);
        }
        Shape all = Shape.of(rows, n, width);
        Value names =
                b.compare(CompareKind.EQUAL, b.iota(new Type(DType.I32, all), 0), b.broadcast(at, all, List.of(1)));
        Value spread = b.broadcast(updates, all, List.of(1, 2));
        // where no update names a row the result is not used: any update stands in
        Value other = Double.isNaN(identity)
                ? b.broadcast(
                        b.reduceKeep(kind == ReduceKind.MAX ? ReduceKind.MIN : ReduceKind.MAX, updates, 0, 1),
                        all,
                        List.of(1, 2))
                : b.fullLike(spread, identity);
        return b.reduce(kind, b.select(names, spread, other), 1);
    }

    private static Value oneHot(OnnxCall c) {
        GraphBuilder b = c.b();
        Value indices = c.in(0);
        int depth = c.known(1).getInt(0);
        int rank = indices.shape().rank() + 1;
        int axis = c.axis("axis", -1, rank);
        List<Integer> dims =
                new ArrayList<>(IntStream.of(indices.shape().dims()).boxed().toList());
        dims.add(axis, depth);
        Shape shape = Shape.of(dims);
        List<Integer> kept =
                IntStream.range(0, rank).filter(i -> i != axis).boxed().toList();
        Value hot = b.compare(
                CompareKind.EQUAL,
                b.iota(new Type(DType.I32, shape), axis),
                b.broadcast(index(b, indices, depth), shape, kept));
        Value off = b.reshape(b.slice(c.in(2), 0, 0, 1), Shape.SCALAR);
        Value on = b.reshape(b.slice(c.in(2), 0, 1, 2), Shape.SCALAR);
        return b.select(hot, on, off);
    }

    private static List<Value> topK(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        int axis = c.axis("axis", -1, x.shape().rank());
        int k = c.has(1) ? Math.toIntExact(c.longs(1).getFirst()) : Math.toIntExact(c.integer("k", 0));
        boolean largest = c.integer("largest", 1) != 0;
        Value order = b.add(new Op.ArgSort(x, axis, largest));
        Value first = b.slice(order, axis, 0, k);
        return List.of(b.add(new Op.TakeAlong(x, first, axis)), b.convert(first, DType.I64));
    }

    /// Reverses the first `length` places of every sequence, each with its own length.
    private static Value reverseSequence(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        int time = c.axis("time_axis", 0, x.shape().rank());
        int batch = c.axis("batch_axis", 1, x.shape().rank());
        return reversed(b, x, b.convert(c.in(1), DType.I32), time, batch);
    }

    /// Element t of a sequence becomes the one at length − 1 − t; what is past the length stays.
    static Value reversed(GraphBuilder b, Value x, Value lengths, int time, int batch) {
        Type type = new Type(DType.I32, x.shape());
        Value length = b.broadcast(lengths, x.shape(), List.of(batch));
        Value at = b.iota(type, time);
        Value mirrored = b.subtract(b.subtract(length, b.constant(1)), at);
        Value inside = b.compare(CompareKind.LESS, at, length);
        return b.add(new Op.TakeAlong(x, b.select(inside, mirrored, at), time));
    }

    private static Value compress(OnnxCall c) {
        Tensor condition = c.known(1);
        Value x = c.in(0);
        if (!c.hasAttribute("axis")) {
            x = c.b().reshape(x, Math.toIntExact(x.shape().elements()));
        }
        int axis = c.hasAttribute("axis") ? c.axis("axis", 0, x.shape().rank()) : 0;
        int[] kept = IntStream.range(0, (int)
                        Math.min(condition.shape().elements(), x.shape().dim(axis)))
                .filter(condition::getBoolean)
                .toArray();
        return c.b().gather(x, c.b().constant(Tensor.of(Shape.of(kept.length), kept)), axis);
    }

    /// Row-major positions of the elements that are not 0: [rank, n].
    private static Value nonZero(OnnxCall c) {
        Tensor x = c.known(0);
        int rank = x.shape().rank();
        int count = Math.toIntExact(x.shape().elements());
        boolean floating = x.type().dtype().isFloating();
        int[] found = IntStream.range(0, count)
                .filter(i -> floating ? x.getFloat(i) != 0 : x.getLong(i) != 0)
                .toArray();
        long[] strides = x.shape().strides();
        Tensor places = Tensor.zeros(new Type(DType.I64, Shape.of(rank, found.length)));
        for (int axis = 0; axis < rank; axis++) {
            for (int i = 0; i < found.length; i++) {
                places.setLong(
                        (long) axis * found.length + i,
                        found[i] / strides[axis] % x.shape().dim(axis));
            }
        }
        return c.b().constant(places);
    }
}
