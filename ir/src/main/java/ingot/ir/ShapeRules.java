package ingot.ir;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;

/// The type of every op's result, from the types of its operands; rejects what has no meaning.
public final class ShapeRules {
    private ShapeRules() {}

    public static Type infer(Op op) {
        return switch (op) {
            case Op.Input x -> x.type();
            case Op.Weight x -> x.type();
            case Op.Constant x -> x.data().type();
            case Op.Iota x -> iota(x);
            case Op.RandomBits x -> randomBits(x);
            case Op.Unary x -> unary(x);
            case Op.Binary x -> binary(x);
            case Op.Fma x -> fma(x);
            case Op.Compare x -> {
                same("compare", x.a(), x.b());
                yield x.a().type().with(DType.BOOL);
            }
            case Op.Select x -> {
                same("select", x.a(), x.b());
                expect(
                        x.condition().type().equals(x.a().type().with(DType.BOOL)),
                        "select: condition expected bool%s, got %s",
                        x.a().shape(),
                        x.condition().type());
                yield x.a().type();
            }
            case Op.Convert x -> x.x().type().with(x.to());
            case Op.Bitcast x -> {
                expect(
                        x.x().dtype().bytes() == x.to().bytes() && x.to() != DType.BOOL && x.x().dtype() != DType.BOOL,
                        "bitcast: %s has another width than %s",
                        x.x().dtype().text(),
                        x.to().text());
                yield x.x().type().with(x.to());
            }
            case Op.Broadcast x -> broadcast(x);
            case Op.Reshape x -> {
                expect(
                        x.x().shape().elements() == x.shape().elements(),
                        "reshape: %s has %s elements, %s has %s",
                        x.x().shape(),
                        x.x().shape().elements(),
                        x.shape(),
                        x.shape().elements());
                yield x.x().type().with(x.shape());
            }
            case Op.Transpose x -> transpose(x);
            case Op.Slice x -> slice(x);
            case Op.Pad x -> pad(x);
            case Op.Concatenate x -> concatenate(x);
            case Op.Reverse x -> {
                axes("reverse", x.axes(), x.x().shape());
                yield x.x().type();
            }
            case Op.Gather x -> gather(x);
            case Op.ScatterAdd x -> scatterAdd(x);
            case Op.TakeAlong x -> {
                along("take along", x.indices(), x.x().shape(), x.axis());
                notEmpty("take along", x.x().shape().dim(x.axis()), x.indices().shape());
                yield x.x().type().with(x.indices().shape());
            }
            case Op.AddAlong x -> {
                expect(
                        x.updates().shape().equals(x.indices().shape()),
                        "add along: updates %s and indices %s differ",
                        x.updates().shape(),
                        x.indices().shape());
                along("add along", x.indices(), x.updates().shape(), x.axis());
                notEmpty("add along", x.size(), x.indices().shape());
                yield x.updates().type().with(x.updates().shape().with(x.axis(), x.size()));
            }
            case Op.ArgSort x -> {
                axis("argsort", x.axis(), x.x().shape());
                yield x.x().type().with(DType.I32);
            }
            case Op.Reduce x -> reduce(x);
            case Op.Cumulative x -> {
                axis("cumulative", x.axis(), x.x().shape());
                reducible(x.kind(), x.x().dtype());
                yield x.x().type();
            }
            case Op.Dot x -> dot(x);
            case Op.Convolution x -> convolution(x);
            case Op.ReduceWindow x -> {
                expect(
                        x.kind() == Op.ReduceKind.SUM || x.kind() == Op.ReduceKind.MAX,
                        "reduce window: SUM or MAX expected, got %s",
                        x.kind());
                reducible(x.kind(), x.x().dtype());
                yield x.x().type().with(windows("reduce window", x.x().shape(), x.size(), x.window()));
            }
            case Op.ScatterWindowMax x -> {
                Shape windows = windows("scatter window max", x.x().shape(), x.size(), x.window());
                expect(
                        x.updates().type().equals(x.x().type().with(windows)),
                        "scatter window max: updates expected %s, got %s",
                        x.x().type().with(windows),
                        x.updates().type());
                yield x.x().type();
            }
            case Op.Composite x -> composite(x);
            case Op.Result x -> {
                expect(x.composite().op() instanceof Op.Composite, "result: %s is not a composite", x.composite());
                List<Type> types =
                        ((Op.Composite) x.composite().op()).function().resultTypes();
                expect(
                        x.index() > 0 && x.index() < types.size(),
                        "result: index %s is outside of 1 … %s",
                        x.index(),
                        types.size() - 1);
                yield types.get(x.index());
            }
            case Op.Custom x ->
                x.function().type(x.operands().stream().map(Value::type).toList());
        };
    }

    /// Size of one windowed axis: the number of window positions.
    public static int windowPositions(
            int size, int window, int stride, int low, int high, int inputDilation, int windowDilation) {
        int dilated = size == 0 ? 0 : (size - 1) * inputDilation + 1;
        int reach = (window - 1) * windowDilation + 1;
        int room = dilated + low + high - reach;
        return room < 0 ? 0 : room / stride + 1;
    }

    private static Type iota(Op.Iota x) {
        axis("iota", x.axis(), x.type().shape());
        expect(
                x.type().dtype() == DType.I32 || x.type().dtype() == DType.F32,
                "iota: expected i32 or f32, got %s",
                x.type().dtype().text());
        return x.type();
    }

    private static Type randomBits(Op.RandomBits x) {
        expect(
                x.key().type().equals(Type.i32(4)),
                "random bits: key expected i32[4] (seed low, seed high, step, first row), got %s",
                x.key().type());
        return new Type(DType.I32, x.shape());
    }

    private static Type unary(Op.Unary x) {
        DType dtype = x.x().dtype();
        boolean valid = switch (x.kind()) {
            case NEGATE, ABS, SIGN -> dtype != DType.BOOL;
            case FLOOR, CEIL, ROUND, SQRT, EXP, LOG, SIN, COS, TANH, ERF -> dtype.isFloating();
            case NOT -> !dtype.isFloating();
        };
        expect(valid, "%s: not defined for %s", x.kind().name().toLowerCase(Locale.ROOT), x.x().type());
        return x.x().type();
    }

    private static Type binary(Op.Binary x) {
        String what = x.kind().name().toLowerCase(Locale.ROOT);
        same(what, x.a(), x.b());
        DType dtype = x.a().dtype();
        boolean valid = switch (x.kind()) {
            case ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, MIN, MAX -> dtype != DType.BOOL;
            case POWER -> dtype.isFloating();
            case AND, OR, XOR -> !dtype.isFloating();
            case SHIFT_LEFT, SHIFT_RIGHT, SHIFT_RIGHT_UNSIGNED -> dtype.isInteger();
        };
        expect(valid, "%s: not defined for %s", what, x.a().type());
        return x.a().type();
    }

    private static Type fma(Op.Fma x) {
        same("fma", x.a(), x.b());
        same("fma", x.a(), x.c());
        expect(x.a().dtype() == DType.F32, "fma: expected f32, got %s", x.a().type());
        return x.a().type();
    }

    private static Type broadcast(Op.Broadcast x) {
        Shape from = x.x().shape();
        expect(
                x.axes().size() == from.rank(),
                "broadcast: %s needs one axis for each of its axes, got %s",
                from,
                x.axes());
        for (int i = 0; i < from.rank(); i++) {
            int to = x.axes().get(i);
            expect(
                    to >= 0 && to < x.shape().rank() && (i == 0 || to > x.axes().get(i - 1)),
                    "broadcast: axes %s must ascend within %s",
                    x.axes(),
                    x.shape());
            expect(
                    from.dim(i) == x.shape().dim(to) || from.dim(i) == 1,
                    "broadcast: axis %s of %s does not fit axis %s of %s",
                    i,
                    from,
                    to,
                    x.shape());
        }
        return x.x().type().with(x.shape());
    }

    private static Type transpose(Op.Transpose x) {
        Shape from = x.x().shape();
        expect(
                x.permutation().size() == from.rank() && new HashSet<>(x.permutation()).size() == from.rank(),
                "transpose: %s is no permutation of the axes of %s",
                x.permutation(),
                from);
        axes("transpose", x.permutation(), from);
        return x.x().type()
                .with(Shape.of(x.permutation().stream().map(from::dim).toList()));
    }

    private static Type slice(Op.Slice x) {
        Shape from = x.x().shape();
        perAxis("slice", from, x.starts(), x.limits(), x.strides());
        int[] dims = new int[from.rank()];
        for (int i = 0; i < dims.length; i++) {
            int start = x.starts().get(i);
            int limit = x.limits().get(i);
            int stride = x.strides().get(i);
            expect(
                    start >= 0 && start <= limit && limit <= from.dim(i) && stride >= 1,
                    "slice: [%s, %s) step %s is outside of axis %s of %s",
                    start,
                    limit,
                    stride,
                    i,
                    from);
            dims[i] = (limit - start + stride - 1) / stride;
        }
        return x.x().type().with(Shape.of(dims));
    }

    private static Type pad(Op.Pad x) {
        Shape from = x.x().shape();
        perAxis("pad", from, x.low(), x.high(), x.interior());
        expect(
                x.padding().type().equals(new Type(x.x().dtype(), Shape.SCALAR)),
                "pad: padding expected a scalar %s, got %s",
                x.x().dtype().text(),
                x.padding().type());
        int[] dims = new int[from.rank()];
        for (int i = 0; i < dims.length; i++) {
            int low = x.low().get(i);
            int high = x.high().get(i);
            int interior = x.interior().get(i);
            expect(
                    low >= 0 && high >= 0 && interior >= 0,
                    "pad: amounts are not negative, got %s, %s, %s on axis %s of %s",
                    low,
                    high,
                    interior,
                    i,
                    from);
            dims[i] = low + high + from.dim(i) + interior * Math.max(0, from.dim(i) - 1);
        }
        return x.x().type().with(Shape.of(dims));
    }

    private static Type concatenate(Op.Concatenate x) {
        expect(!x.operands().isEmpty(), "concatenate: no operands");
        Value first = x.operands().getFirst();
        axis("concatenate", x.axis(), first.shape());
        int size = 0;
        for (Value value : x.operands()) {
            expect(
                    value.dtype() == first.dtype()
                            && value.shape().rank() == first.shape().rank()
                            && value.shape()
                                    .with(x.axis(), 0)
                                    .equals(first.shape().with(x.axis(), 0)),
                    "concatenate: %s and %s differ on another axis than %s",
                    first.type(),
                    value.type(),
                    x.axis());
            size += value.shape().dim(x.axis());
        }
        return first.type().with(first.shape().with(x.axis(), size));
    }

    private static Type gather(Op.Gather x) {
        Shape from = x.x().shape();
        axis("gather", x.axis(), from);
        indices("gather", x.indices());
        notEmpty("gather", from.dim(x.axis()), x.indices().shape());
        List<Integer> dims = new ArrayList<>();
        for (int i = 0; i < from.rank(); i++) {
            if (i == x.axis()) {
                for (int d : x.indices().shape().dims()) {
                    dims.add(d);
                }
            } else {
                dims.add(from.dim(i));
            }
        }
        return x.x().type().with(Shape.of(dims));
    }

    private static Type scatterAdd(Op.ScatterAdd x) {
        indices("scatter-add", x.indices());
        Shape from = x.updates().shape();
        Shape index = x.indices().shape();
        expect(
                x.axis() >= 0 && x.axis() + index.rank() <= from.rank(),
                "scatter-add: indices %s do not fit updates %s at axis %s",
                index,
                from,
                x.axis());
        List<Integer> dims = new ArrayList<>();
        for (int i = 0; i < from.rank(); i++) {
            if (i >= x.axis() && i < x.axis() + index.rank()) {
                expect(
                        from.dim(i) == index.dim(i - x.axis()),
                        "scatter-add: indices %s do not fit updates %s at axis %s",
                        index,
                        from,
                        x.axis());
            } else {
                dims.add(from.dim(i));
            }
        }
        dims.add(x.axis(), x.size());
        notEmpty("scatter-add", x.size(), index);
        segments("scatter-add", x.segments(), index.elements());
        return x.updates().type().with(Shape.of(dims));
    }

    private static Type reduce(Op.Reduce x) {
        Shape from = x.x().shape();
        axes("reduce", x.axes(), from);
        for (int i = 1; i < x.axes().size(); i++) {
            expect(x.axes().get(i) > x.axes().get(i - 1), "reduce: axes %s must ascend", x.axes());
        }
        reducible(x.kind(), x.x().dtype());
        long reduced = x.axes().stream().mapToLong(from::dim).reduce(1, Math::multiplyExact);
        segments("reduce", x.segments(), reduced);
        expect(x.segments() == 1 || x.kind() == Op.ReduceKind.SUM, "reduce: segments are for SUM, got %s", x.kind());
        return x.x().type().with(from.without(x.axes()));
    }

    private static void reducible(Op.ReduceKind kind, DType dtype) {
        boolean logical = kind == Op.ReduceKind.AND || kind == Op.ReduceKind.OR;
        expect(
                logical == (dtype == DType.BOOL),
                "reduce: %s is not defined for %s",
                kind.name().toLowerCase(Locale.ROOT),
                dtype.text());
    }

    private static Type dot(Op.Dot x) {
        Shape a = x.a().shape();
        Shape b = x.b().shape();
        expect(
                x.a().dtype() == x.b().dtype() && x.a().dtype().isFloating(),
                "dot: expected equal floating types, got %s and %s",
                x.a().type(),
                x.b().type());
        pairs("dot", "batch", a, x.batchA(), b, x.batchB());
        pairs("dot", "inner", a, x.contractA(), b, x.contractB());
        List<Integer> goneA = concat(x.batchA(), x.contractA());
        List<Integer> goneB = concat(x.batchB(), x.contractB());
        expect(
                new HashSet<>(goneA).size() == goneA.size() && new HashSet<>(goneB).size() == goneB.size(),
                "dot: an axis is used twice, %s of %s and %s of %s",
                goneA,
                a,
                goneB,
                b);
        long k = x.contractA().stream().mapToLong(a::dim).reduce(1, Math::multiplyExact);
        segments("dot", x.segments(), k);
        List<Integer> dims = new ArrayList<>();
        x.batchA().forEach(axis -> dims.add(a.dim(axis)));
        for (int d : a.without(goneA).dims()) {
            dims.add(d);
        }
        for (int d : b.without(goneB).dims()) {
            dims.add(d);
        }
        Type type = x.a().type().with(Shape.of(dims));
        if (x.start() != null) {
            expect(
                    x.start().type().equals(type) && x.segments() == 1,
                    "dot: a start expected as %s and one segment, got %s and %s segments",
                    type,
                    x.start().type(),
                    x.segments());
        }
        return type;
    }

    private static Type convolution(Op.Convolution x) {
        Shape in = x.x().shape();
        Shape kernel = x.kernel().shape();
        int spatial = in.rank() - 2;
        expect(
                spatial >= 1 && kernel.rank() == in.rank(),
                "convolution: input %s and kernel %s must have equal rank of at least 3",
                in,
                kernel);
        expect(
                x.x().dtype() == DType.F32 && x.kernel().dtype() == DType.F32,
                "convolution: expected f32, got %s and %s",
                x.x().type(),
                x.kernel().type());
        int groups = x.groups();
        int batchGroups = x.batchGroups();
        expect(
                groups >= 1 && batchGroups >= 1 && (groups == 1 || batchGroups == 1),
                "convolution: groups %s and batch groups %s, one of them must be 1",
                groups,
                batchGroups);
        expect(
                in.dim(1) == kernel.dim(1) * groups,
                "convolution: input channels %s, kernel %s with %s groups expects %s",
                in.dim(1),
                kernel,
                groups,
                kernel.dim(1) * groups);
        expect(
                kernel.dim(0) % groups == 0 && kernel.dim(0) % batchGroups == 0 && in.dim(0) % batchGroups == 0,
                "convolution: %s output channels and batch %s do not divide into %s groups",
                kernel.dim(0),
                in.dim(0),
                Math.max(groups, batchGroups));
        perWindowAxis("convolution", spatial, x.window());
        segments("convolution", x.segments(), kernel.dim(1));
        int[] dims = new int[in.rank()];
        dims[0] = in.dim(0) / batchGroups;
        dims[1] = kernel.dim(0);
        for (int i = 0; i < spatial; i++) {
            dims[i + 2] = positions(in.dim(i + 2), kernel.dim(i + 2), x.window(), i);
        }
        return x.x().type().with(Shape.of(dims));
    }

    private static Shape windows(String what, Shape in, List<Integer> size, Op.Window window) {
        expect(size.size() == in.rank(), "%s: window %s must cover every axis of %s", what, size, in);
        perWindowAxis(what, in.rank(), window);
        int[] dims = new int[in.rank()];
        for (int i = 0; i < dims.length; i++) {
            dims[i] = positions(in.dim(i), size.get(i), window, i);
        }
        return Shape.of(dims);
    }

    private static int positions(int size, int window, Op.Window w, int i) {
        return windowPositions(
                size,
                window,
                w.strides().get(i),
                w.low().get(i),
                w.high().get(i),
                w.inputDilation().get(i),
                w.windowDilation().get(i));
    }

    private static void perWindowAxis(String what, int axes, Op.Window w) {
        for (List<Integer> list : List.of(w.strides(), w.low(), w.high(), w.inputDilation(), w.windowDilation())) {
            expect(list.size() == axes, "%s: window needs %s entries per list, got %s", what, axes, list);
        }
        for (int i = 0; i < axes; i++) {
            expect(
                    w.strides().get(i) >= 1
                            && w.inputDilation().get(i) >= 1
                            && w.windowDilation().get(i) >= 1,
                    "%s: strides and dilations are at least 1, got %s",
                    what,
                    w);
        }
    }

    private static Type composite(Op.Composite x) {
        List<Value> inputs = x.function().definition().inputs();
        expect(
                inputs.size() == x.operands().size(),
                "%s: expected %s operands, got %s",
                x.function().name(),
                inputs.size(),
                x.operands().size());
        for (int i = 0; i < inputs.size(); i++) {
            expect(
                    inputs.get(i).type().equals(x.operands().get(i).type()),
                    "%s: operand %s expected %s, got %s",
                    x.function().name(),
                    i,
                    inputs.get(i).type(),
                    x.operands().get(i).type());
        }
        return x.function().resultTypes().getFirst();
    }

    private static void along(String what, Value indices, Shape from, int axis) {
        axis(what, axis, from);
        indices(what, indices);
        expect(
                indices.shape().rank() == from.rank()
                        && indices.shape().with(axis, 0).equals(from.with(axis, 0)),
                "%s: indices %s differ from %s on another axis than %s",
                what,
                indices.shape(),
                from,
                axis);
    }

    private static void notEmpty(String what, int size, Shape indices) {
        expect(size > 0 || indices.elements() == 0, "%s: indices %s into an axis of size 0", what, indices);
    }

    private static void indices(String what, Value indices) {
        expect(indices.dtype() == DType.I32, "%s: indices expected i32, got %s", what, indices.type());
    }

    private static void segments(String what, int segments, long length) {
        expect(
                segments >= 1 && length % segments == 0,
                "%s: %s elements do not divide into %s segments",
                what,
                length,
                segments);
    }

    private static void pairs(String what, String role, Shape a, List<Integer> axesA, Shape b, List<Integer> axesB) {
        axes(what, axesA, a);
        axes(what, axesB, b);
        expect(axesA.size() == axesB.size(), "%s: %s axes %s and %s differ in number", what, role, axesA, axesB);
        for (int i = 0; i < axesA.size(); i++) {
            expect(
                    a.dim(axesA.get(i)) == b.dim(axesB.get(i)),
                    "%s: %s sizes differ, %s × %s on axes %s and %s",
                    what,
                    role,
                    a,
                    b,
                    axesA,
                    axesB);
        }
    }

    @SafeVarargs
    private static void perAxis(String what, Shape shape, List<Integer>... lists) {
        for (List<Integer> list : lists) {
            expect(list.size() == shape.rank(), "%s: %s needs one entry per axis, got %s", what, shape, list);
        }
    }

    private static void axis(String what, int axis, Shape shape) {
        expect(axis >= 0 && axis < shape.rank(), "%s: axis %s is outside of %s", what, axis, shape);
    }

    private static void axes(String what, List<Integer> axes, Shape shape) {
        axes.forEach(axis -> axis(what, axis, shape));
    }

    private static void same(String what, Value a, Value b) {
        expect(a.type().equals(b.type()), "%s: types differ, %s and %s", what, a.type(), b.type());
    }

    private static List<Integer> concat(List<Integer> a, List<Integer> b) {
        List<Integer> all = new ArrayList<>(a);
        all.addAll(b);
        return all;
    }

    private static void expect(boolean condition, String message, Object... arguments) {
        if (!condition) {
            throw new IngotException(String.format(Locale.ROOT, message, arguments));
        }
    }
}
