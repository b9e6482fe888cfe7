package ingot.formats;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.LongToIntFunction;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/// A graph of primitives as ONNX nodes, so that importing them again gives the same bits.
///
/// Composites that ONNX has operators for become those; the others are written by their definition. `Fma`, which rounds
/// once, is a function of the file: other systems take its body, `Mul` and `Add`.
final class OnnxExport {
    static final int OPSET = 20;
    static final String DOMAIN = "ingot";
    /// Values without a name of their own are called so, and a number.
    static final String NAMES = "ingot/";

    private final OnnxFields out = new OnnxFields();
    private final Graph graph;
    private final OnnxSymbols symbols;
    private final OnnxNodes nodes;
    private final OnnxWindowNodes windows;
    private final TreeSet<String> refused = new TreeSet<>();

    private OnnxExport(Graph graph, OnnxSymbols symbols) {
        this.graph = graph;
        this.symbols = symbols;
        this.nodes = new OnnxNodes(out, graph, symbols);
        this.windows = new OnnxWindowNodes(nodes);
    }

    /// The fields of a GraphProto but for its initializers.
    static OnnxFields nodes(Graph graph, OnnxSymbols symbols) {
        return new OnnxExport(graph, symbols).build();
    }

    /// Functions that the nodes call.
    static List<OnnxFields> functions() {
        OnnxFields multiply =
                new OnnxFields().text(1, "a").text(1, "b").text(2, "ab").text(4, "Mul");
        OnnxFields add =
                new OnnxFields().text(1, "ab").text(1, "c").text(2, "y").text(4, "Add");
        OnnxFields fma = new OnnxFields().text(1, "Fma");
        List.of("a", "b", "c").forEach(name -> fma.text(4, name));
        fma.text(5, "y").message(7, multiply).message(7, add);
        fma.message(9, new OnnxFields().text(1, "").integer(2, OPSET)).text(10, DOMAIN);
        return List.of(fma);
    }

    private OnnxFields build() {
        Map<Value, String> named = new HashMap<>();
        for (Value value : graph.values()) {
            switch (value.op()) {
                case Op.Input x -> {
                    out.message(11, port(x.name(), x.type()));
                    named.put(value, x.name());
                }
                case Op.Weight x -> named.put(value, x.name());
                default -> {}
            }
        }
        body(graph, named, true);
        graph.outputs().forEach((name, value) -> {
            nodes.node("Identity", "", List.of(named.get(value)), List.of(name), List.of());
            out.message(12, port(name, value.type()));
        });
        if (!refused.isEmpty()) {
            throw new IngotException("onnx: the graph has ops that cannot be written: " + String.join(", ", refused));
        }
        return out.text(2, graph.name());
    }

    private OnnxFields port(String name, Type type) {
        OnnxFields shape = new OnnxFields();
        for (int dim : type.shape().dims()) {
            OnnxFields size = new OnnxFields();
            shape.message(
                    1, symbols.isOpen(dim) ? size.text(2, symbols.product(dim).toString()) : size.integer(1, dim));
        }
        OnnxFields tensor =
                new OnnxFields().integer(1, OnnxType.of(type.dtype()).id()).message(2, shape);
        return new OnnxFields().text(1, name).message(2, new OnnxFields().message(1, tensor));
    }

    /// Writes the ops of a graph whose inputs, and weights, have names already.
    private void body(Graph inner, Map<Value, String> named, boolean outer) {
        Map<Value, Value> softmax = OnnxSoftmax.in(inner);
        boolean[] used = used(inner, softmax);
        Map<Value, List<Value>> parts = new HashMap<>(); // results of composites that have several
        for (Value value : inner.values()) {
            if (value.op() instanceof Op.Result(Value composite, int _)) {
                parts.computeIfAbsent(composite, _ -> new ArrayList<>()).add(value);
            }
        }
        for (Value value : inner.values()) {
            if (used[value.id()] && !named.containsKey(value)) {
                String scope = outer ? inner.scope(value) : "";
                Value scores = softmax.get(value);
                if (scores == null) {
                    op(value, parts.getOrDefault(value, List.of()), named, scope);
                } else {
                    named.put(
                            value,
                            nodes.one("Softmax", List.of(named.get(scores)), scope, OnnxNodes.integer("axis", -1)));
                }
            }
        }
    }

    private static boolean[] used(Graph inner, Map<Value, Value> softmax) {
        boolean[] used = new boolean[inner.values().size()];
        inner.outputs().values().forEach(value -> used[value.id()] = true);
        for (Value value : inner.values().reversed()) {
            if (used[value.id()]) {
                Value scores = softmax.get(value);
                (scores == null ? value.op().operands() : List.of(scores))
                        .forEach(operand -> used[operand.id()] = true);
            }
        }
        return used;
    }

    private void op(Value value, List<Value> parts, Map<Value, String> named, String scope) {
        List<String> in = value.op().operands().stream().map(named::get).toList();
        String name = switch (value.op()) {
            case Op.Constant x -> constant(x.data());
            case Op.Iota x -> iota(x);
            case Op.Unary x -> nodes.one(unary(x), in, scope);
            case Op.Binary x -> binary(x, in, scope);
            case Op.Fma _ -> {
                String y = nodes.fresh();
                nodes.node("Fma", DOMAIN, in, List.of(y), List.of(), scope);
                yield y;
            }
            case Op.Compare x -> compare(x.kind(), in, scope);
            case Op.Select _ -> nodes.one("Where", in, scope);
            case Op.Convert x -> cast(in.getFirst(), x.to(), scope);
            case Op.Broadcast x -> broadcast(x, in.getFirst(), scope);
            case Op.Reshape x -> reshape(in.getFirst(), x.x().shape(), x.shape(), scope);
            case Op.Transpose x -> transpose(in.getFirst(), x.permutation(), scope);
            case Op.Slice x -> slice(x, in.getFirst(), scope);
            case Op.Pad x -> windows.pad(x, in.get(0), in.get(1), scope);
            case Op.Concatenate x -> nodes.one("Concat", in, scope, OnnxNodes.integer("axis", x.axis()));
            case Op.Reverse x -> reverse(x, in.getFirst(), scope);
            case Op.Gather x -> nodes.one("Gather", in, scope, OnnxNodes.integer("axis", x.axis()));
            case Op.ScatterAdd x when x.axis() == 0 && x.segments() == 1 -> scatter(x, in, scope);
            case Op.TakeAlong x -> nodes.one("GatherElements", in, scope, OnnxNodes.integer("axis", x.axis()));
            case Op.ArgSort x -> sort(x, in.getFirst(), scope);
            case Op.Reduce x when x.segments() == 1 -> reduce(x, in.getFirst(), scope);
            case Op.Cumulative x
            when x.kind() == Op.ReduceKind.SUM ->
                nodes.one(
                        "CumSum",
                        List.of(in.getFirst(), nodes.numbers(new long[] {x.axis()})),
                        scope,
                        OnnxNodes.integer("reverse", x.reverse() ? 1 : 0));
            case Op.Dot x when x.segments() == 1 && x.start() == null -> dot(x, in, scope);
            case Op.Convolution x when x.batchGroups() == 1 && x.segments() == 1 -> windows.convolution(x, in, scope);
            case Op.ReduceWindow x when OnnxWindowNodes.isPooling(x) -> windows.pooled(x, in.getFirst(), scope);
            case Op.Composite x -> composite(x, parts, named, in, scope);
            case Op x -> refuse(x, scope);
        };
        named.put(value, name);
    }

    private String refuse(Op op, String scope) {
        refused.add(op.getClass().getSimpleName() + (scope.isEmpty() ? "" : " at " + scope));
        return "";
    }

    // ---- ops

    /// A line of numbers, turned to its axis and repeated.
    private String iota(Op.Iota x) {
        int n = x.type().shape().dim(x.axis());
        int[] dims = new int[x.type().shape().rank()];
        java.util.Arrays.fill(dims, 1);
        dims[x.axis()] = n;
        String line = symbols.isOpen(n)
                ? range(n, x.type().dtype())
                : line(n, x.type().dtype());
        String turned = reshape(line, Shape.of(n), Shape.of(dims), "");
        return x.type().shape().equals(Shape.of(dims))
                ? turned
                : nodes.one(
                        "Expand",
                        List.of(turned, nodes.numbers(OnnxNodes.longs(x.type().shape()))),
                        "");
    }

    /// With an open size: one number repeated, or positions along an axis; anything else stays as it is.
    private String constant(Tensor x) {
        Shape shape = x.shape();
        if (IntStream.of(shape.dims()).noneMatch(symbols::isOpen)) {
            return nodes.constant(x);
        }
        Tensor first = Tensor.zeros(x.type().with(Shape.SCALAR));
        if (x.type().dtype().isFloating()) {
            first.setFloat(0, x.getFloat(0));
        } else {
            first.setLong(0, x.getLong(0));
        }
        if (matches(x, i -> 0, first)) {
            return nodes.one("Expand", List.of(nodes.constant(first), nodes.numbers(OnnxNodes.longs(shape))), "");
        }
        long[] strides = shape.strides();
        for (int axis = 0; axis < shape.rank() && !x.type().dtype().isFloating(); axis++) {
            int n = shape.dim(axis);
            long stride = strides[axis];
            if (matches(x, i -> (int) (i / stride % n), null)) {
                return iota(new Op.Iota(x.type(), axis));
            }
        }
        return nodes.constant(x);
    }

    /// True if each element is that of `values` at a place, or the place itself.
    private static boolean matches(Tensor x, LongToIntFunction place, @Nullable Tensor values) {
        for (long i = 0; i < x.shape().elements(); i++) {
            int at = place.applyAsInt(i);
            boolean same = values == null
                    ? x.getLong(i) == at
                    : x.type().dtype().isFloating()
                            ? Float.floatToRawIntBits(x.getFloat(i)) == Float.floatToRawIntBits(values.getFloat(at))
                            : x.getLong(i) == values.getLong(at);
            if (!same) {
                return false;
            }
        }
        return true;
    }

    private String line(int n, DType dtype) {
        Tensor line = Tensor.zeros(new Type(dtype, Shape.of(n)));
        for (int i = 0; i < n; i++) {
            line.setLong(i, i);
        }
        return nodes.constant(line);
    }

    /// 0, 1, … as many as an open size says.
    private String range(long n, DType dtype) {
        String end = nodes.one("Squeeze", List.of(nodes.size(n), nodes.constants(new long[] {0})), "");
        Tensor zero = Tensor.zeros(new Type(DType.I64, Shape.SCALAR));
        Tensor step = Tensor.zeros(new Type(DType.I64, Shape.SCALAR));
        step.setLong(0, 1);
        String line = nodes.one("Range", List.of(nodes.constant(zero), end, nodes.constant(step)), "");
        return dtype == DType.I64 ? line : cast(line, dtype, "");
    }

    private static String unary(Op.Unary x) {
        return switch (x.kind()) {
            case NEGATE -> "Neg";
            case ABS -> "Abs";
            case SIGN -> "Sign";
            case FLOOR -> "Floor";
            case CEIL -> "Ceil";
            case ROUND -> "Round";
            case SQRT -> "Sqrt";
            case EXP -> "Exp";
            case LOG -> "Log";
            case SIN -> "Sin";
            case COS -> "Cos";
            case TANH -> "Tanh";
            case ERF -> "Erf";
            case NOT -> x.x().dtype() == DType.BOOL ? "Not" : "BitwiseNot";
        };
    }

    private String binary(Op.Binary x, List<String> in, String scope) {
        String bits = x.a().dtype() == DType.BOOL ? "" : "Bitwise";
        return switch (x.kind()) {
            case ADD -> nodes.one("Add", in, scope);
            case SUBTRACT -> nodes.one("Sub", in, scope);
            case MULTIPLY -> nodes.one("Mul", in, scope);
            case DIVIDE -> nodes.one("Div", in, scope);
            case REMAINDER -> nodes.one("Mod", in, scope, OnnxNodes.integer("fmod", 1));
            case MIN -> nodes.one("Min", in, scope);
            case MAX -> nodes.one("Max", in, scope);
            case POWER -> nodes.one("Pow", in, scope);
            case AND -> nodes.one(bits + "And", in, scope);
            case OR -> nodes.one(bits + "Or", in, scope);
            case XOR -> nodes.one(bits + "Xor", in, scope);
            case SHIFT_LEFT -> shift(x, in, "LEFT", scope);
            case SHIFT_RIGHT_UNSIGNED -> shift(x, in, "RIGHT", scope);
            case SHIFT_RIGHT -> x.a().dtype() == DType.U8 ? shift(x, in, "RIGHT", scope) : refuse(x, scope);
        };
    }

    /// ONNX shifts unsigned numbers only.
    private String shift(Op.Binary x, List<String> in, String direction, String scope) {
        OnnxType unsigned = switch (x.a().dtype()) {
            case I32 -> OnnxType.UINT32;
            case I64 -> OnnxType.UINT64;
            default -> OnnxType.UINT8;
        };
        List<String> operands = in.stream()
                .map(name -> x.a().dtype() == DType.U8
                        ? name
                        : nodes.one("Cast", List.of(name), scope, OnnxNodes.integer("to", unsigned.id())))
                .toList();
        String y = nodes.one("BitShift", operands, scope, OnnxNodes.text("direction", direction));
        return x.a().dtype() == DType.U8 ? y : cast(y, x.a().dtype(), scope);
    }

    /// Updates of slices along the first axis, added to zeros.
    private String scatter(Op.ScatterAdd x, List<String> in, String scope) {
        Shape indices = x.indices().shape();
        Shape updates = x.updates().shape();
        List<Integer> dims = new ArrayList<>(List.of(x.size()));
        for (int i = indices.rank(); i < updates.rank(); i++) {
            dims.add(updates.dim(i));
        }
        int[] column = java.util.Arrays.copyOf(indices.dims(), indices.rank() + 1);
        column[indices.rank()] = 1;
        String zeros = nodes.one(
                "Expand",
                List.of(
                        nodes.constant(Tensor.zeros(x.updates().type().with(Shape.SCALAR))),
                        nodes.numbers(OnnxNodes.longs(Shape.of(dims)))),
                scope);
        String at = cast(reshape(in.get(0), indices, Shape.of(column), scope), DType.I64, scope);
        return nodes.one("ScatterND", List.of(zeros, at, in.get(1)), scope, OnnxNodes.text("reduction", "add"));
    }

    private String compare(Op.CompareKind kind, List<String> in, String scope) {
        return switch (kind) {
            case EQUAL -> nodes.one("Equal", in, scope);
            case NOT_EQUAL -> nodes.one("Not", List.of(nodes.one("Equal", in, scope)), scope);
            case LESS -> nodes.one("Less", in, scope);
            case LESS_EQUAL -> nodes.one("LessOrEqual", in, scope);
            case GREATER -> nodes.one("Greater", in, scope);
            case GREATER_EQUAL -> nodes.one("GreaterOrEqual", in, scope);
        };
    }

    private String cast(String x, DType to, String scope) {
        return nodes.one(
                "Cast",
                List.of(x),
                scope,
                OnnxNodes.integer("to", OnnxType.of(to).id()));
    }

    /// Open sizes are taken from the operand (0), follow from the others (−1, once), or are computed.
    private String reshape(String x, Shape from, Shape to, String scope) {
        if (from.equals(to)) {
            return x;
        }
        long[] target = OnnxNodes.longs(to);
        boolean open = false;
        boolean inferred = false;
        boolean settled = true;
        for (int i = 0; i < target.length; i++) {
            if (to.dim(i) == 0) {
                settled = false; // a size that is 0, not one that is taken
            } else if (symbols.isOpen(to.dim(i))) {
                open = true;
                if (i < from.rank() && from.dim(i) == to.dim(i)) {
                    target[i] = 0;
                } else if (!inferred) {
                    inferred = true;
                    target[i] = -1;
                } else {
                    settled = false;
                }
            }
        }
        return open && settled
                ? nodes.one("Reshape", List.of(x, nodes.constants(target)), scope)
                : nodes.one(
                        "Reshape",
                        List.of(x, nodes.numbers(OnnxNodes.longs(to))),
                        scope,
                        OnnxNodes.integer("allowzero", 1));
    }

    private String transpose(String x, List<Integer> order, String scope) {
        boolean same = IntStream.range(0, order.size()).allMatch(i -> order.get(i) == i);
        return same ? x : nodes.one("Transpose", List.of(x), scope, OnnxNodes.integers("perm", order));
    }

    private String broadcast(Op.Broadcast x, String in, String scope) {
        int rank = x.shape().rank();
        int[] dims = new int[rank];
        java.util.Arrays.fill(dims, 1);
        for (int i = 0; i < x.axes().size(); i++) {
            dims[x.axes().get(i)] = x.x().shape().dim(i);
        }
        Shape aligned = Shape.of(dims);
        String turned = reshape(in, x.x().shape(), aligned, scope);
        return aligned.equals(x.shape())
                ? turned
                : nodes.one("Expand", List.of(turned, nodes.numbers(OnnxNodes.longs(x.shape()))), scope);
    }

    private String slice(Op.Slice x, String in, String scope) {
        Shape shape = x.x().shape();
        long[] axes = IntStream.range(0, shape.rank())
                .filter(i -> x.starts().get(i) != 0
                        || x.limits().get(i) != shape.dim(i)
                        || x.strides().get(i) != 1)
                .asLongStream()
                .toArray();
        return axes.length == 0
                ? in
                : nodes.one(
                        "Slice",
                        List.of(
                                in,
                                nodes.numbers(pick(x.starts(), axes)),
                                nodes.numbers(pick(x.limits(), axes)),
                                nodes.constants(axes),
                                nodes.constants(pick(x.strides(), axes))),
                        scope);
    }

    private static long[] pick(List<Integer> values, long[] axes) {
        return LongStream.of(axes).map(axis -> values.get((int) axis)).toArray();
    }

    private String reverse(Op.Reverse x, String in, String scope) {
        int n = x.axes().size();
        long[] starts = new long[n];
        long[] ends = new long[n];
        long[] steps = new long[n];
        java.util.Arrays.fill(starts, -1);
        java.util.Arrays.fill(ends, Long.MIN_VALUE);
        java.util.Arrays.fill(steps, -1);
        return nodes.one(
                "Slice",
                List.of(
                        in,
                        nodes.numbers(starts),
                        nodes.numbers(ends),
                        nodes.numbers(OnnxNodes.longs(x.axes())),
                        nodes.numbers(steps)),
                scope);
    }

    private String sort(Op.ArgSort x, String in, String scope) {
        String values = nodes.fresh();
        String order = nodes.fresh();
        nodes.node(
                "TopK",
                "",
                List.of(in, nodes.numbers(new long[] {x.x().shape().dim(x.axis())})),
                List.of(values, order),
                List.of(OnnxNodes.integer("axis", x.axis()), OnnxNodes.integer("largest", x.descending() ? 1 : 0)),
                scope);
        return cast(order, DType.I32, scope);
    }

    private String reduce(Op.Reduce x, String in, String scope) {
        boolean logical = x.kind() == Op.ReduceKind.AND || x.kind() == Op.ReduceKind.OR;
        String operator = switch (x.kind()) {
            case SUM -> "ReduceSum";
            case PRODUCT -> "ReduceProd";
            case MIN, AND -> "ReduceMin";
            case MAX, OR -> "ReduceMax";
        };
        String from = logical ? cast(in, DType.I32, scope) : in;
        String y = nodes.one(
                operator,
                List.of(from, nodes.numbers(OnnxNodes.longs(x.axes()))),
                scope,
                OnnxNodes.integer("keepdims", 0));
        return logical ? cast(y, DType.BOOL, scope) : y;
    }

    /// Batch axes first, then matrices [free, contracted] × [contracted, free].
    private String dot(Op.Dot x, List<String> in, String scope) {
        Shape a = x.a().shape();
        Shape b = x.b().shape();
        if (x.batchA().isEmpty()
                && b.rank() == 2
                && a.rank() > 1
                && x.contractA().equals(List.of(a.rank() - 1))) { // [..., k] × [k, n]: no reshape
            String right = x.contractB().equals(List.of(0)) ? in.get(1) : transpose(in.get(1), List.of(1, 0), scope);
            return nodes.one("MatMul", List.of(in.get(0), right), scope);
        }
        List<Integer> freeA = others(a.rank(), x.batchA(), x.contractA());
        List<Integer> freeB = others(b.rank(), x.batchB(), x.contractB());
        int[] batch = dims(a, x.batchA());
        int k = product(a, x.contractA());
        String left =
                matrix(in.get(0), a, List.of(x.batchA(), freeA, x.contractA()), batch, product(a, freeA), k, scope);
        String right =
                matrix(in.get(1), b, List.of(x.batchB(), x.contractB(), freeB), batch, k, product(b, freeB), scope);
        String y = nodes.one("MatMul", List.of(left, right), scope);
        List<Integer> result = new ArrayList<>();
        IntStream.of(batch).forEach(result::add);
        freeA.forEach(axis -> result.add(a.dim(axis)));
        freeB.forEach(axis -> result.add(b.dim(axis)));
        int[] product = java.util.Arrays.copyOf(batch, batch.length + 2);
        product[batch.length] = product(a, freeA);
        product[batch.length + 1] = product(b, freeB);
        return reshape(y, Shape.of(product), Shape.of(result), scope);
    }

    private String matrix(
            String x, Shape shape, List<List<Integer>> order, int[] batch, int rows, int columns, String scope) {
        List<Integer> permutation = order.stream().flatMap(List::stream).toList();
        int[] dims = java.util.Arrays.copyOf(batch, batch.length + 2);
        dims[batch.length] = rows;
        dims[batch.length + 1] = columns;
        String turned = transpose(x, permutation, scope);
        Shape now = Shape.of(permutation.stream().map(shape::dim).toList());
        return reshape(turned, now, Shape.of(dims), scope);
    }

    private static List<Integer> others(int rank, List<Integer> first, List<Integer> second) {
        return IntStream.range(0, rank)
                .filter(i -> !first.contains(i) && !second.contains(i))
                .boxed()
                .toList();
    }

    private static int[] dims(Shape shape, List<Integer> axes) {
        return axes.stream().mapToInt(shape::dim).toArray();
    }

    private static int product(Shape shape, List<Integer> axes) {
        return axes.stream().map(shape::dim).reduce(1, Math::multiplyExact);
    }

    // ---- composites

    private String composite(
            Op.Composite x, List<Value> parts, Map<Value, String> named, List<String> in, String scope) {
        return switch (x.function().name()) {
            case "softmax" -> nodes.one("Softmax", in, scope, OnnxNodes.integer("axis", -1));
            case "logSoftmax" -> nodes.one("LogSoftmax", in, scope, OnnxNodes.integer("axis", -1));
            case "sigmoid" -> nodes.one("Sigmoid", in, scope);
            case "gelu" -> nodes.one("Gelu", in, scope);
            case "geluTanh" -> nodes.one("Gelu", in, scope, OnnxNodes.text("approximate", "tanh"));
            case "layerNorm" ->
                nodes.one(
                        "LayerNormalization",
                        in,
                        scope,
                        OnnxNodes.integer("axis", -1),
                        OnnxNodes.number("epsilon", x.function().attribute("epsilon")));
            default -> definition(x, parts, named, in);
        };
    }

    /// The ops of the definition; further results are named for their `Result` values.
    private String definition(Op.Composite x, List<Value> parts, Map<Value, String> named, List<String> in) {
        Graph definition = x.function().definition();
        Map<Value, String> inner = new HashMap<>();
        List<Value> inputs = definition.inputs();
        for (int i = 0; i < inputs.size(); i++) {
            inner.put(inputs.get(i), in.get(i));
        }
        body(definition, inner, false);
        List<Value> results = List.copyOf(definition.outputs().values());
        for (Value part : parts) {
            if (part.op() instanceof Op.Result(Value _, int index)) {
                named.put(part, inner.getOrDefault(results.get(index), ""));
            }
        }
        return inner.getOrDefault(results.getFirst(), "");
    }
}
