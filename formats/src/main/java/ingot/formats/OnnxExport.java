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
import java.util.stream.IntStream;

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
    private final TreeSet<String> refused = new TreeSet<>();
    private int names;

    private OnnxExport(Graph graph) {
        this.graph = graph;
    }

    /// The fields of a GraphProto but for its initializers.
    static OnnxFields nodes(Graph graph) {
        return new OnnxExport(graph).build();
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
            node("Identity", "", List.of(named.get(value)), List.of(name), List.of());
            out.message(12, port(name, value.type()));
        });
        if (!refused.isEmpty()) {
            throw new IngotException("onnx: the graph has ops that cannot be written: " + String.join(", ", refused));
        }
        return out.text(2, graph.name());
    }

    private static OnnxFields port(String name, Type type) {
        OnnxFields shape = new OnnxFields();
        for (int dim : type.shape().dims()) {
            shape.message(1, new OnnxFields().integer(1, dim));
        }
        OnnxFields tensor =
                new OnnxFields().integer(1, OnnxType.of(type.dtype()).id()).message(2, shape);
        return new OnnxFields().text(1, name).message(2, new OnnxFields().message(1, tensor));
    }

    /// Writes the ops of a graph whose inputs, and weights, have names already.
    private void body(Graph inner, Map<Value, String> named, boolean outer) {
        boolean[] used = used(inner);
        for (Value value : inner.values()) {
            if (used[value.id()] && !named.containsKey(value)) {
                String scope = outer ? inner.scope(value) : "";
                op(inner, value, named, scope);
            }
        }
    }

    private static boolean[] used(Graph inner) {
        boolean[] used = new boolean[inner.values().size()];
        inner.outputs().values().forEach(value -> used[value.id()] = true);
        for (Value value : inner.values().reversed()) {
            if (used[value.id()]) {
                value.op().operands().forEach(operand -> used[operand.id()] = true);
            }
        }
        return used;
    }

    private void op(Graph inner, Value value, Map<Value, String> named, String scope) {
        List<String> in = value.op().operands().stream().map(named::get).toList();
        String name = switch (value.op()) {
            case Op.Constant x -> constant(x.data());
            case Op.Iota x -> iota(x);
            case Op.Unary x -> one(unary(x), in, scope);
            case Op.Binary x -> binary(x, in, scope);
            case Op.Fma _ -> {
                String y = fresh();
                node("Fma", DOMAIN, in, List.of(y), List.of(), scope);
                yield y;
            }
            case Op.Compare x -> compare(x.kind(), in, scope);
            case Op.Select _ -> one("Where", in, scope);
            case Op.Convert x -> cast(in.getFirst(), x.to(), scope);
            case Op.Broadcast x -> broadcast(x, in.getFirst(), scope);
            case Op.Reshape x -> reshape(in.getFirst(), x.shape(), scope);
            case Op.Transpose x -> transpose(in.getFirst(), x.permutation(), scope);
            case Op.Slice x -> slice(in.getFirst(), longs(x.starts()), longs(x.limits()), longs(x.strides()), scope);
            case Op.Pad x
            when x.interior().stream().allMatch(i -> i == 0) -> {
                List<Integer> pads = new ArrayList<>(x.low());
                pads.addAll(x.high());
                yield one("Pad", List.of(in.get(0), numbers(longs(pads)), in.get(1)), scope);
            }
            case Op.Concatenate x -> one("Concat", in, scope, integer("axis", x.axis()));
            case Op.Reverse x -> reverse(x, in.getFirst(), scope);
            case Op.Gather x -> one("Gather", in, scope, integer("axis", x.axis()));
            case Op.TakeAlong x -> one("GatherElements", in, scope, integer("axis", x.axis()));
            case Op.ArgSort x -> sort(x, in.getFirst(), scope);
            case Op.Reduce x when x.segments() == 1 -> reduce(x, in.getFirst(), scope);
            case Op.Cumulative x
            when x.kind() == Op.ReduceKind.SUM ->
                one(
                        "CumSum",
                        List.of(in.getFirst(), numbers(new long[] {x.axis()})),
                        scope,
                        integer("reverse", x.reverse() ? 1 : 0));
            case Op.Dot x when x.segments() == 1 -> dot(x, in, scope);
            case Op.Convolution x when isPlain(x) -> convolution(x, in, scope);
            case Op.ReduceWindow x when isPooling(x) -> pool(x, in.getFirst(), scope);
            case Op.Composite x -> composite(inner, value, x, named, in, scope);
            case Op x -> refuse(x, scope);
        };
        named.put(value, name);
    }

    private String refuse(Op op, String scope) {
        refused.add(op.getClass().getSimpleName() + (scope.isEmpty() ? "" : " at " + scope));
        return "";
    }

    // ---- nodes

    private String fresh() {
        return NAMES + names++;
    }

    private String one(String operator, List<String> inputs, String scope, OnnxFields... attributes) {
        String output = fresh();
        node(operator, "", inputs, List.of(output), List.of(attributes), scope);
        return output;
    }

    private void node(
            String operator, String domain, List<String> inputs, List<String> outputs, List<OnnxFields> attributes) {
        node(operator, domain, inputs, outputs, attributes, "");
    }

    private void node(
            String operator,
            String domain,
            List<String> inputs,
            List<String> outputs,
            List<OnnxFields> attributes,
            String scope) {
        OnnxFields node = new OnnxFields();
        inputs.forEach(input -> node.text(1, input));
        outputs.forEach(output -> node.text(2, output));
        node.text(3, (scope.isEmpty() ? "" : scope + "/") + operator + "/" + names++)
                .text(4, operator);
        attributes.forEach(attribute -> node.message(5, attribute));
        if (!domain.isEmpty()) {
            node.text(7, domain);
        }
        out.message(1, node);
    }

    private static OnnxFields integer(String name, long value) {
        return new OnnxFields().text(1, name).integer(3, value).integer(20, 2);
    }

    private static OnnxFields number(String name, double value) {
        return new OnnxFields().text(1, name).floating(2, (float) value).integer(20, 1);
    }

    private static OnnxFields text(String name, String value) {
        return new OnnxFields().text(1, name).text(4, value).integer(20, 3);
    }

    private static OnnxFields integers(String name, List<Integer> values) {
        OnnxFields attribute = new OnnxFields().text(1, name);
        values.forEach(value -> attribute.integer(8, value));
        return attribute.integer(20, 7);
    }

    private String constant(Tensor value) {
        OnnxFields tensor = new OnnxFields();
        for (int dim : value.shape().dims()) {
            tensor.integer(1, dim);
        }
        tensor.integer(2, OnnxType.of(value.type().dtype()).id()).bytes(9, value.data());
        OnnxFields attribute =
                new OnnxFields().text(1, "value").message(5, tensor).integer(20, 4);
        String output = fresh();
        node("Constant", "", List.of(), List.of(output), List.of(attribute));
        return output;
    }

    private String numbers(long[] values) {
        Tensor tensor = Tensor.zeros(new Type(DType.I64, Shape.of(values.length)));
        for (int i = 0; i < values.length; i++) {
            tensor.setLong(i, values[i]);
        }
        return constant(tensor);
    }

    private static long[] longs(List<Integer> values) {
        return values.stream().mapToLong(Integer::longValue).toArray();
    }

    private static long[] longs(Shape shape) {
        return IntStream.of(shape.dims()).asLongStream().toArray();
    }

    // ---- ops

    /// A line of numbers, turned to its axis and repeated.
    private String iota(Op.Iota x) {
        int n = x.type().shape().dim(x.axis());
        Tensor line = Tensor.zeros(new Type(x.type().dtype(), Shape.of(n)));
        for (int i = 0; i < n; i++) {
            line.setLong(i, i);
        }
        int[] dims = new int[x.type().shape().rank()];
        java.util.Arrays.fill(dims, 1);
        dims[x.axis()] = n;
        String turned = reshape(constant(line), Shape.of(dims), "");
        return one("Expand", List.of(turned, numbers(longs(x.type().shape()))), "");
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
            case ADD -> one("Add", in, scope);
            case SUBTRACT -> one("Sub", in, scope);
            case MULTIPLY -> one("Mul", in, scope);
            case DIVIDE -> one("Div", in, scope);
            case REMAINDER -> one("Mod", in, scope, integer("fmod", 1));
            case MIN -> one("Min", in, scope);
            case MAX -> one("Max", in, scope);
            case POWER -> one("Pow", in, scope);
            case AND -> one(bits + "And", in, scope);
            case OR -> one(bits + "Or", in, scope);
            case XOR -> one(bits + "Xor", in, scope);
            case SHIFT_LEFT, SHIFT_RIGHT, SHIFT_RIGHT_UNSIGNED -> refuse(x, scope);
        };
    }

    private String compare(Op.CompareKind kind, List<String> in, String scope) {
        return switch (kind) {
            case EQUAL -> one("Equal", in, scope);
            case NOT_EQUAL -> one("Not", List.of(one("Equal", in, scope)), scope);
            case LESS -> one("Less", in, scope);
            case LESS_EQUAL -> one("LessOrEqual", in, scope);
            case GREATER -> one("Greater", in, scope);
            case GREATER_EQUAL -> one("GreaterOrEqual", in, scope);
        };
    }

    private String cast(String x, DType to, String scope) {
        return one("Cast", List.of(x), scope, integer("to", OnnxType.of(to).id()));
    }

    private String reshape(String x, Shape shape, String scope) {
        return one("Reshape", List.of(x, numbers(longs(shape))), scope, integer("allowzero", 1));
    }

    private String transpose(String x, List<Integer> order, String scope) {
        boolean same = IntStream.range(0, order.size()).allMatch(i -> order.get(i) == i);
        return same ? x : one("Transpose", List.of(x), scope, integers("perm", order));
    }

    private String broadcast(Op.Broadcast x, String in, String scope) {
        int rank = x.shape().rank();
        int[] dims = new int[rank];
        java.util.Arrays.fill(dims, 1);
        for (int i = 0; i < x.axes().size(); i++) {
            dims[x.axes().get(i)] = x.x().shape().dim(i);
        }
        Shape aligned = Shape.of(dims);
        String turned = aligned.equals(x.x().shape()) ? in : reshape(in, aligned, scope);
        return aligned.equals(x.shape()) ? turned : one("Expand", List.of(turned, numbers(longs(x.shape()))), scope);
    }

    private String slice(String x, long[] starts, long[] ends, long[] steps, String scope) {
        long[] axes = IntStream.range(0, starts.length).asLongStream().toArray();
        return one("Slice", List.of(x, numbers(starts), numbers(ends), numbers(axes), numbers(steps)), scope);
    }

    private String reverse(Op.Reverse x, String in, String scope) {
        int n = x.axes().size();
        long[] starts = new long[n];
        long[] ends = new long[n];
        long[] steps = new long[n];
        java.util.Arrays.fill(starts, -1);
        java.util.Arrays.fill(ends, Long.MIN_VALUE);
        java.util.Arrays.fill(steps, -1);
        return one(
                "Slice", List.of(in, numbers(starts), numbers(ends), numbers(longs(x.axes())), numbers(steps)), scope);
    }

    private String sort(Op.ArgSort x, String in, String scope) {
        String values = fresh();
        String order = fresh();
        node(
                "TopK",
                "",
                List.of(in, numbers(new long[] {x.x().shape().dim(x.axis())})),
                List.of(values, order),
                List.of(integer("axis", x.axis()), integer("largest", x.descending() ? 1 : 0)),
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
        String y = one(operator, List.of(from, numbers(longs(x.axes()))), scope, integer("keepdims", 0));
        return logical ? cast(y, DType.BOOL, scope) : y;
    }

    /// Batch axes first, then matrices [free, contracted] × [contracted, free].
    private String dot(Op.Dot x, List<String> in, String scope) {
        Shape a = x.a().shape();
        Shape b = x.b().shape();
        List<Integer> freeA = others(a.rank(), x.batchA(), x.contractA());
        List<Integer> freeB = others(b.rank(), x.batchB(), x.contractB());
        int[] batch = dims(a, x.batchA());
        int k = product(a, x.contractA());
        String left =
                matrix(in.get(0), a, List.of(x.batchA(), freeA, x.contractA()), batch, product(a, freeA), k, scope);
        String right =
                matrix(in.get(1), b, List.of(x.batchB(), x.contractB(), freeB), batch, k, product(b, freeB), scope);
        String y = one("MatMul", List.of(left, right), scope);
        List<Integer> result = new ArrayList<>();
        IntStream.of(batch).forEach(result::add);
        freeA.forEach(axis -> result.add(a.dim(axis)));
        freeB.forEach(axis -> result.add(b.dim(axis)));
        return freeA.size() == 1 && freeB.size() == 1 ? y : reshape(y, Shape.of(result), scope);
    }

    private String matrix(
            String x, Shape shape, List<List<Integer>> order, int[] batch, int rows, int columns, String scope) {
        List<Integer> permutation = order.stream().flatMap(List::stream).toList();
        int[] dims = java.util.Arrays.copyOf(batch, batch.length + 2);
        dims[batch.length] = rows;
        dims[batch.length + 1] = columns;
        String turned = transpose(x, permutation, scope);
        Shape now = Shape.of(permutation.stream().map(shape::dim).toList());
        return now.equals(Shape.of(dims)) ? turned : reshape(turned, Shape.of(dims), scope);
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

    private static boolean isPlain(Op.Convolution x) {
        return x.batchGroups() == 1
                && x.segments() == 1
                && x.window().inputDilation().stream().allMatch(i -> i == 1)
                && x.window().low().stream().allMatch(i -> i >= 0)
                && x.window().high().stream().allMatch(i -> i >= 0);
    }

    private String convolution(Op.Convolution x, List<String> in, String scope) {
        List<Integer> pads = new ArrayList<>(x.window().low());
        pads.addAll(x.window().high());
        return one(
                "Conv",
                in,
                scope,
                integers("strides", x.window().strides()),
                integers("dilations", x.window().windowDilation()),
                integers("pads", pads),
                integer("group", x.groups()));
    }

    /// The largest of windows over all but batch and channels.
    private static boolean isPooling(Op.ReduceWindow x) {
        return x.kind() == Op.ReduceKind.MAX
                && x.size().size() > 2
                && x.size().subList(0, 2).equals(List.of(1, 1))
                && x.window().strides().subList(0, 2).equals(List.of(1, 1))
                && x.window().low().subList(0, 2).equals(List.of(0, 0))
                && x.window().high().subList(0, 2).equals(List.of(0, 0))
                && x.window().inputDilation().stream().allMatch(i -> i == 1);
    }

    private String pool(Op.ReduceWindow x, String in, String scope) {
        int rank = x.size().size();
        List<Integer> pads = new ArrayList<>(x.window().low().subList(2, rank));
        pads.addAll(x.window().high().subList(2, rank));
        return one(
                "MaxPool",
                List.of(in),
                scope,
                integers("kernel_shape", x.size().subList(2, rank)),
                integers("strides", x.window().strides().subList(2, rank)),
                integers("dilations", x.window().windowDilation().subList(2, rank)),
                integers("pads", pads));
    }

    // ---- composites

    private String composite(
            Graph owner, Value value, Op.Composite x, Map<Value, String> named, List<String> in, String scope) {
        return switch (x.function().name()) {
            case "softmax" -> one("Softmax", in, scope, integer("axis", -1));
            case "logSoftmax" -> one("LogSoftmax", in, scope, integer("axis", -1));
            case "sigmoid" -> one("Sigmoid", in, scope);
            case "gelu" -> one("Gelu", in, scope);
            case "geluTanh" -> one("Gelu", in, scope, text("approximate", "tanh"));
            case "layerNorm" ->
                one(
                        "LayerNormalization",
                        in,
                        scope,
                        integer("axis", -1),
                        number("epsilon", x.function().attribute("epsilon")));
            default -> definition(owner, value, x, named, in);
        };
    }

    /// The ops of the definition; further results are named for their `Result` values.
    private String definition(Graph owner, Value value, Op.Composite x, Map<Value, String> named, List<String> in) {
        Graph definition = x.function().definition();
        Map<Value, String> inner = new HashMap<>();
        List<Value> inputs = definition.inputs();
        for (int i = 0; i < inputs.size(); i++) {
            inner.put(inputs.get(i), in.get(i));
        }
        body(definition, inner, false);
        List<Value> results = List.copyOf(definition.outputs().values());
        for (Value user : owner.values()) {
            if (user.op() instanceof Op.Result(Value composite, int index) && composite.equals(value)) {
                named.put(user, inner.getOrDefault(results.get(index), ""));
            }
        }
        return inner.getOrDefault(results.getFirst(), "");
    }
}
