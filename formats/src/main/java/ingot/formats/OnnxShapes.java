package ingot.formats;

import static ingot.formats.OnnxOperator.one;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.Layers;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Operators that make, reshape, cut and join tensors.
final class OnnxShapes {
    private OnnxShapes() {}

    static void addTo(Map<String, OnnxOperator> t) {
        sources(t);
        t.put("Identity", OnnxSequences::identity);
        t.put("Reshape", one(OnnxShapes::reshape));
        t.put("Flatten", one(OnnxShapes::flatten));
        t.put("Squeeze", one(OnnxShapes::squeeze));
        t.put("Unsqueeze", one(OnnxShapes::unsqueeze));
        t.put("Transpose", one(OnnxShapes::transpose));
        t.put("Expand", one(OnnxShapes::expand));
        t.put("Tile", one(OnnxShapes::tile));
        t.put("Concat", one(c -> concat(c)));
        t.put("Split", OnnxShapes::split);
        t.put("Slice", one(OnnxShapes::slice));
        t.put("Pad", one(OnnxPad::pad));
        t.put("CenterCropPad", one(OnnxPad::centre));
        t.put("Trilu", one(OnnxShapes::triangle));
        t.put("DepthToSpace", one(OnnxShapes::depthToSpace));
        t.put("SpaceToDepth", one(OnnxShapes::spaceToDepth));
    }

    private static void sources(Map<String, OnnxOperator> t) {
        t.put("Constant", one(OnnxShapes::constant));
        t.put("ConstantOfShape", one(c -> {
            OnnxTensor value = c.tensor("value");
            Value element = value == null
                    ? c.b().constant(0f)
                    : c.b().reshape(c.b().constant(value.read(c.importer().model())), Shape.SCALAR);
            return c.b().broadcast(element, shape(c.longs(0)));
        }));
        t.put("Shape", one(OnnxShapes::shapeOf));
        t.put("Size", one(c -> c.b().reshape(c.ints(c.in(0).shape().elements()), Shape.SCALAR)));
        t.put("Range", one(OnnxShapes::range));
        t.put("EyeLike", one(OnnxShapes::eye));
    }

    static Shape shape(List<Long> dims) {
        return Shape.of(dims.stream().map(Math::toIntExact).toList());
    }

    private static Value constant(OnnxCall c) {
        OnnxTensor tensor = c.tensor("value");
        if (tensor != null) {
            return c.importer().constant(tensor, c.node().outputs().getFirst());
        }
        if (c.hasAttribute("value_float")) {
            return c.b().constant((float) c.number("value_float", 0));
        }
        if (c.hasAttribute("value_floats")) {
            List<Float> values = c.numbers("value_floats");
            float[] floats = new float[values.size()];
            for (int i = 0; i < floats.length; i++) {
                floats[i] = values.get(i);
            }
            return c.b().constant(Tensor.of(Shape.of(floats.length), floats));
        }
        if (c.hasAttribute("value_int")) {
            return c.b().reshape(c.ints(c.integer("value_int", 0)), Shape.SCALAR);
        }
        if (c.hasAttribute("value_ints")) {
            return c.ints(
                    c.ints("value_ints").stream().mapToLong(Long::longValue).toArray());
        }
        throw c.unsupported("a constant of " + c.node().attributes().keySet());
    }

    private static Value shapeOf(OnnxCall c) {
        int[] dims = c.in(0).shape().dims();
        int start = bound(c.integer("start", 0), dims.length);
        int end = bound(c.integer("end", dims.length), dims.length);
        return c.ints(IntStream.range(start, Math.max(start, end))
                .mapToLong(i -> dims[i])
                .toArray());
    }

    private static int bound(long at, int size) {
        return Math.clamp(at < 0 ? at + size : at, 0, size);
    }

    private static Value range(OnnxCall c) {
        Tensor start = c.known(0);
        Tensor limit = c.known(1);
        Tensor delta = c.known(2);
        boolean floating = start.type().dtype().isFloating();
        double from = floating ? start.getFloat(0) : start.getLong(0);
        double to = floating ? limit.getFloat(0) : limit.getLong(0);
        double by = floating ? delta.getFloat(0) : delta.getLong(0);
        int n = Math.toIntExact((long) Math.max(0, Math.ceil((to - from) / by)));
        Tensor values = Tensor.zeros(new Type(start.type().dtype(), Shape.of(n)));
        for (int i = 0; i < n; i++) {
            if (floating) {
                values.setFloat(i, (float) (from + i * by));
            } else {
                values.setLong(i, start.getLong(0) + i * delta.getLong(0));
            }
        }
        return c.b().constant(values);
    }

    private static Value eye(OnnxCall c) {
        Type type = new Type(DType.I32, c.in(0).shape());
        GraphBuilder b = c.b();
        Value diagonal = b.subtract(b.iota(type, 1), b.iota(type, 0));
        Value on = b.compare(Op.CompareKind.EQUAL, diagonal, b.constant((int) c.integer("k", 0)));
        return b.convert(on, c.dtype("dtype", c.type(0)));
    }

    private static Value reshape(OnnxCall c) {
        Value x = c.in(0);
        List<Long> wanted = c.attributeOrInput("shape", 1);
        if (wanted == null) {
            throw new IngotException("no shape");
        }
        int[] dims = new int[wanted.size()];
        for (int i = 0; i < dims.length; i++) {
            boolean copied = wanted.get(i) == 0 && !c.flag("allowzero");
            dims[i] = copied ? x.shape().dim(i) : Math.toIntExact(wanted.get(i));
        }
        return c.b().reshape(x, dims);
    }

    private static Value flatten(OnnxCall c) {
        int[] dims = c.in(0).shape().dims();
        long axis = c.integer("axis", 1);
        int at = axis == dims.length ? dims.length : c.axis(axis, dims.length);
        int outer = product(dims, 0, at);
        return c.b().reshape(c.in(0), outer, product(dims, at, dims.length));
    }

    static int product(int[] dims, int from, int to) {
        return IntStream.range(from, to).map(i -> dims[i]).reduce(1, Math::multiplyExact);
    }

    private static Value squeeze(OnnxCall c) {
        Shape shape = c.in(0).shape();
        int[] axes = c.axes("axes", 1, shape.rank());
        List<Integer> gone = axes != null
                ? IntStream.of(axes).boxed().toList()
                : IntStream.range(0, shape.rank())
                        .filter(i -> shape.dim(i) == 1)
                        .boxed()
                        .toList();
        return c.b().reshape(c.in(0), shape.without(gone));
    }

    private static Value unsqueeze(OnnxCall c) {
        List<Long> given = c.attributeOrInput("axes", 1);
        if (given == null) {
            throw new IngotException("no axes");
        }
        int rank = c.in(0).shape().rank() + given.size();
        int[] axes = given.stream().mapToInt(a -> c.axis(a, rank)).sorted().toArray();
        List<Integer> dims =
                new ArrayList<>(IntStream.of(c.in(0).shape().dims()).boxed().toList());
        for (int axis : axes) {
            dims.add(axis, 1);
        }
        return c.b().reshape(c.in(0), Shape.of(dims));
    }

    private static Value transpose(OnnxCall c) {
        int rank = c.in(0).shape().rank();
        List<Long> order = c.ints("perm");
        return c.b().transpose(
                        c.in(0),
                        order.isEmpty()
                                ? IntStream.range(0, rank)
                                        .map(i -> rank - 1 - i)
                                        .toArray()
                                : order.stream().mapToInt(Math::toIntExact).toArray());
    }

    /// Both ways: a size 1 of the wanted shape keeps what is there.
    private static Value expand(OnnxCall c) {
        Shape x = c.in(0).shape();
        List<Long> wanted = c.longs(1);
        int rank = Math.max(x.rank(), wanted.size());
        int[] dims = new int[rank];
        for (int i = 1; i <= rank; i++) {
            int have = i <= x.rank() ? x.dim(-i) : 1;
            int want = i <= wanted.size() ? Math.toIntExact(wanted.get(wanted.size() - i)) : 1;
            dims[rank - i] = have == 1 ? want : have;
        }
        return c.b().broadcast(c.in(0), Shape.of(dims));
    }

    private static Value tile(OnnxCall c) {
        Value x = c.in(0);
        List<Long> repeats = c.longs(1);
        if (c.inputs() == 3) { // opset 1: how often, along which axis
            List<Long> all = new ArrayList<>(Collections.nCopies(x.shape().rank(), 1L));
            all.set(c.longs(2).getFirst().intValue(), repeats.getFirst());
            repeats = all;
        }
        return tile(c.b(), x, repeats.stream().map(Math::toIntExact).toList());
    }

    /// [d₀, d₁, …] → [r₀, d₀, r₁, d₁, …] → [r₀·d₀, r₁·d₁, …].
    static Value tile(GraphBuilder b, Value x, List<Integer> repeats) {
        int rank = x.shape().rank();
        int[] spread = new int[2 * rank];
        int[] joined = new int[rank];
        for (int i = 0; i < rank; i++) {
            spread[2 * i] = repeats.get(i);
            spread[2 * i + 1] = x.shape().dim(i);
            joined[i] = Math.multiplyExact(repeats.get(i), x.shape().dim(i));
        }
        List<Integer> axes =
                IntStream.range(0, rank).map(i -> 2 * i + 1).boxed().toList();
        return b.reshape(b.broadcast(x, Shape.of(spread), axes), Shape.of(joined));
    }

    private static Value concat(OnnxCall c) {
        int axis = c.axis("axis", 1, c.in(0).shape().rank());
        return c.b().concatenate(c.allInputs(), axis);
    }

    private static List<Value> split(OnnxCall c) {
        Value x = c.in(0);
        int axis = c.axis("axis", 0, x.shape().rank());
        int size = x.shape().dim(axis);
        List<Long> parts = c.attributeOrInput("split", 1);
        int n = parts != null ? parts.size() : (int) c.integer("num_outputs", c.outputs());
        if (parts == null) {
            int each = (size + n - 1) / n;
            if (each * n == size) {
                return Layers.split(c.b(), x, n, axis);
            }
            parts = IntStream.range(0, n)
                    .mapToObj(i -> (long) Math.clamp(size - (long) i * each, 0, each))
                    .toList();
        }
        return pieces(c.b(), x, axis, parts);
    }

    static List<Value> pieces(GraphBuilder b, Value x, int axis, List<Long> parts) {
        List<Value> pieces = new ArrayList<>();
        int at = 0;
        for (long part : parts) {
            int end = Math.toIntExact(at + part);
            pieces.add(b.slice(x, axis, at, end));
            at = end;
        }
        return pieces;
    }

    private static Value slice(OnnxCall c) {
        Value x = c.in(0);
        int rank = x.shape().rank();
        List<Long> starts = given(c.attributeOrInput("starts", 1));
        List<Long> ends = given(c.attributeOrInput("ends", 2));
        List<Long> axes = c.attributeOrInput("axes", 3);
        List<Long> steps = c.has(4) ? c.longs(4) : Collections.nCopies(starts.size(), 1L);
        int[] from = new int[rank];
        int[] to = x.shape().dims();
        int[] by = new int[rank];
        java.util.Arrays.fill(by, 1);
        List<Integer> reversed = new ArrayList<>();
        for (int i = 0; i < starts.size(); i++) {
            int axis = axes == null ? i : c.axis(axes.get(i), rank);
            int size = x.shape().dim(axis);
            long step = steps.get(i);
            long start = starts.get(i) < 0 ? starts.get(i) + size : starts.get(i);
            long end = ends.get(i) < 0 ? ends.get(i) + size : ends.get(i);
            if (step < 0) { // the same elements forwards over the reversed axis
                reversed.add(axis);
                start = size - 1L - Math.clamp(start, -1, size - 1);
                end = size - 1L - Math.clamp(end, -1, size - 1);
                step = -step;
            }
            from[axis] = Math.clamp(start, 0, size);
            to[axis] = Math.clamp(end, from[axis], size);
            by[axis] = Math.clamp(step, 1, Integer.MAX_VALUE);
        }
        Collections.sort(reversed);
        Value line = reversed.isEmpty() ? x : c.b().add(new Op.Reverse(x, reversed));
        return cut(c.b(), line, from, to, by);
    }

    private static List<Long> given(@Nullable List<Long> values) {
        if (values == null) {
            throw new IngotException("starts or ends are missing");
        }
        return values;
    }

    static Value cut(GraphBuilder b, Value x, int[] from, int[] to, int[] by) {
        return b.add(new Op.Slice(
                x,
                IntStream.of(from).boxed().toList(),
                IntStream.of(to).boxed().toList(),
                IntStream.of(by).boxed().toList()));
    }

    /// Keeps the upper or lower triangle of matrices [..., n, m].
    private static Value triangle(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        int rank = x.shape().rank();
        int k = c.has(1) ? Math.toIntExact(Math.clamp(c.longs(1).getFirst(), -(1 << 30), 1 << 30)) : 0;
        Type matrix = Type.i32(x.shape().dim(-2), x.shape().dim(-1));
        Value diagonal = b.subtract(b.iota(matrix, 1), b.iota(matrix, 0));
        boolean upper = c.integer("upper", 1) != 0;
        Value kept =
                b.compare(upper ? Op.CompareKind.GREATER_EQUAL : Op.CompareKind.LESS_EQUAL, diagonal, b.constant(k));
        return b.select(b.broadcast(kept, x.shape(), List.of(rank - 2, rank - 1)), x, c.scalar(x, 0));
    }

    private static Value depthToSpace(OnnxCall c) {
        int[] d = c.in(0).shape().dims();
        int size = Math.toIntExact(c.integer("blocksize", 1));
        int depth = d[1] / (size * size);
        GraphBuilder b = c.b();
        Value moved = c.text("mode", "DCR").equals("CRD")
                ? b.transpose(b.reshape(c.in(0), d[0], depth, size, size, d[2], d[3]), 0, 1, 4, 2, 5, 3)
                : b.transpose(b.reshape(c.in(0), d[0], size, size, depth, d[2], d[3]), 0, 3, 4, 1, 5, 2);
        return b.reshape(moved, d[0], depth, d[2] * size, d[3] * size);
    }

    private static Value spaceToDepth(OnnxCall c) {
        int[] d = c.in(0).shape().dims();
        int size = Math.toIntExact(c.integer("blocksize", 1));
        Value split = c.b().reshape(c.in(0), d[0], d[1], d[2] / size, size, d[3] / size, size);
        return c.b().reshape(
                        c.b().transpose(split, 0, 3, 5, 1, 2, 4), d[0], d[1] * size * size, d[2] / size, d[3] / size);
    }

    /// Sizes as a list.
    static List<Integer> dims(Value x) {
        return Stream.of(x.shape().dims()).flatMapToInt(IntStream::of).boxed().toList();
    }
}
