package ingot.autodiff;

import ingot.ir.CustomFunction;
import ingot.ir.DType;
import ingot.ir.Function;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.BiFunction;
import java.util.stream.IntStream;

/// One or more rows per op and kind: a small graph through it, to be differentiated by hand of `Gradients` and by
/// finite differences.
final class OpTable {
    /// `op`: the class and, where it has one, the kind. `operands`: F32 shapes, uniform in [low, high).
    record Row(
            String op,
            List<Shape> operands,
            double low,
            double high,
            BiFunction<GraphBuilder, List<Value>, Value> body) {
        @Override
        public String toString() {
            return op + " " + operands;
        }
    }

    private final List<Row> rows = new ArrayList<>();

    static List<Row> rows() {
        OpTable table = new OpTable();
        table.sources();
        table.pointwise();
        table.movement();
        table.indexing();
        table.reductions();
        table.contractions();
        table.windows();
        table.groups();
        return table.rows;
    }

    /// Every op and kind there is: a row is missing if its name is not here.
    static Set<String> required() {
        Set<String> names = new LinkedHashSet<>();
        for (Class<?> op : Op.class.getPermittedSubclasses()) {
            String name = op.getSimpleName();
            Enum<?>[] kinds = switch (name) {
                case "Unary" -> UnaryKind.values();
                case "Binary" -> BinaryKind.values();
                case "Compare" -> CompareKind.values();
                case "Reduce", "Cumulative" -> ReduceKind.values();
                case "ReduceWindow" -> new ReduceKind[] {ReduceKind.SUM, ReduceKind.MAX};
                default -> new Enum<?>[0];
            };
            if (kinds.length == 0) {
                names.add(name);
            }
            for (Enum<?> kind : kinds) {
                names.add(name + "." + kind);
            }
        }
        return names;
    }

    private void row(String op, BiFunction<GraphBuilder, List<Value>, Value> body, int[]... shapes) {
        between(op, -1.5, 1.5, body, shapes);
    }

    private void between(
            String op, double low, double high, BiFunction<GraphBuilder, List<Value>, Value> body, int[]... shapes) {
        rows.add(new Row(op, java.util.Arrays.stream(shapes).map(Shape::of).toList(), low, high, body));
    }

    private static int[] s(int... dims) {
        return dims;
    }

    private void sources() {
        row("Input", (b, x) -> x.getFirst(), s(3));
        row("Weight", (b, x) -> b.multiply(x.getFirst(), b.exp(x.getFirst())), s(3));
        row("Constant", (b, x) -> b.multiply(x.getFirst(), b.constant(Tensor.of(Shape.of(2), 2f, -3f))), s(4, 2));
        row("Iota", (b, x) -> b.multiply(x.getFirst(), b.iota(Type.f32(2, 3), 1)), s(2, 3));
        row(
                "RandomBits",
                (b, x) -> {
                    Value key = b.constant(Tensor.of(Shape.of(4), 1, 2, 3, 0));
                    Value bits = b.add(new Op.RandomBits(Shape.of(2, 3), 7, key));
                    return b.select(
                            b.compare(CompareKind.GREATER, bits, b.constant(0)),
                            x.getFirst(),
                            b.multiply(x.getFirst(), 3));
                },
                s(2, 3));
    }

    private void pointwise() {
        for (UnaryKind kind : UnaryKind.values()) {
            String name = "Unary." + kind;
            switch (kind) {
                case SQRT, LOG -> between(name, 0.3, 3, (b, x) -> b.unary(kind, x.getFirst()), s(3, 4));
                case NOT ->
                    row(
                            name,
                            (b, x) -> b.select(
                                    b.unary(kind, b.compare(CompareKind.LESS, x.get(0), x.get(1))), x.get(0), x.get(1)),
                            s(3, 4),
                            s(3, 4));
                case NEGATE, ABS, SIGN, FLOOR, CEIL, ROUND, EXP, SIN, COS, TANH, ERF ->
                    row(name, (b, x) -> b.unary(kind, x.getFirst()), s(3, 4));
            }
        }
        for (BinaryKind kind : BinaryKind.values()) {
            String name = "Binary." + kind;
            switch (kind) {
                case ADD, SUBTRACT, MULTIPLY, MIN, MAX ->
                    row(name, (b, x) -> b.binary(kind, x.get(0), x.get(1)), s(3, 4), s(4));
                case DIVIDE, REMAINDER -> {
                    between(name, 0.4, 2, (b, x) -> b.binary(kind, x.get(0), x.get(1)), s(3, 4), s(3, 4));
                    between(name, 0.4, 2, (b, x) -> b.binary(kind, b.negate(x.get(0)), x.get(1)), s(3, 4), s(1, 4));
                }
                case POWER -> {
                    between(name, 0.3, 2, (b, x) -> b.binary(kind, x.get(0), x.get(1)), s(3, 4), s(3, 4));
                    row(name, (b, x) -> b.binary(kind, x.get(0), b.scalarLike(x.get(0), 3)), s(3, 4));
                }
                case AND, OR, XOR, SHIFT_LEFT, SHIFT_RIGHT, SHIFT_RIGHT_UNSIGNED ->
                    row(
                            name,
                            (b, x) -> {
                                Value integer = b.convert(b.multiply(x.getFirst(), 3), DType.I32);
                                Value bits = b.binary(kind, integer, b.constant(3));
                                return b.multiply(x.getFirst(), b.convert(bits, DType.F32));
                            },
                            s(5));
            }
        }
        row("Binary.MULTIPLY", (b, x) -> b.multiply(x.getFirst(), x.getFirst()), s(5));
        row("Fma", (b, x) -> b.fma(x.get(0), x.get(1), x.get(2)), s(3, 4), s(3, 4), s(4));
        for (CompareKind kind : CompareKind.values()) {
            row(
                    "Compare." + kind,
                    (b, x) -> b.select(
                            b.compare(kind, x.get(0), b.constant(0f)), b.multiply(x.get(0), x.get(1)), x.get(1)),
                    s(3, 4),
                    s(3, 4));
        }
        row(
                "Select",
                (b, x) -> b.select(b.compare(CompareKind.LESS, x.get(0), x.get(1)), b.exp(x.get(0)), x.get(2)),
                s(3, 4),
                s(4),
                s());
        row("Convert", (b, x) -> b.multiply(b.convert(b.convert(x.get(0), DType.I32), DType.F32), x.get(0)), s(5));
        row(
                "Bitcast",
                (b, x) -> b.select(
                        b.compare(CompareKind.LESS, b.bitcast(x.get(0), DType.I32), b.constant(0)),
                        x.get(0),
                        b.multiply(x.get(0), 2)),
                s(5));
    }

    private void movement() {
        row("Broadcast", (b, x) -> b.broadcast(x.get(0), Shape.of(2, 3, 4), List.of(0, 2)), s(2, 4));
        row("Broadcast", (b, x) -> b.broadcast(x.get(0), Shape.of(2, 3, 4), List.of(1, 2)), s(1, 4));
        row("Broadcast", (b, x) -> b.broadcast(x.get(0), Shape.of(2, 3, 1), List.of(0, 2)), s(2, 1));
        row("Broadcast", (b, x) -> b.broadcast(x.get(0), Shape.of(2, 3)), s());
        row("Reshape", (b, x) -> b.multiply(b.reshape(x.get(0), 4, 3), x.get(1)), s(2, 6), s(4, 3));
        row("Transpose", (b, x) -> b.multiply(b.transpose(x.get(0), 2, 0, 1), x.get(1)), s(2, 3, 4), s(4, 2, 3));
        row("Slice", (b, x) -> slice(b, x.get(0), List.of(1, 0), List.of(4, 7), List.of(1, 3)), s(5, 7));
        row("Slice", (b, x) -> slice(b, x.get(0), List.of(0, 2), List.of(5, 7), List.of(2, 2)), s(5, 7));
        row(
                "Pad",
                (b, x) -> b.add(new Op.Pad(x.get(0), x.get(1), List.of(1, 0), List.of(0, 2), List.of(0, 1))),
                s(2, 3),
                s());
        row("Concatenate", (b, x) -> b.concatenate(List.of(x.get(0), x.get(1), x.get(0)), 1), s(2, 3), s(2, 2));
        row("Reverse", (b, x) -> b.multiply(b.add(new Op.Reverse(x.get(0), List.of(0, 2))), x.get(0)), s(2, 3, 4));
    }

    private static Value slice(
            GraphBuilder b, Value x, List<Integer> starts, List<Integer> limits, List<Integer> strides) {
        return b.add(new Op.Slice(x, starts, limits, strides));
    }

    private void indexing() {
        Tensor indices = Tensor.of(Shape.of(2, 3), 1, 3, 1, 0, 7, -2); // with repeats and clamped ones
        row("Gather", (b, x) -> b.gather(x.get(0), b.constant(indices), 0), s(4, 2));
        row("Gather", (b, x) -> b.gather(x.get(0), b.constant(indices), 1), s(2, 4, 3));
        row("Gather", (b, x) -> b.gather(x.get(0), b.constant(2), 1), s(2, 4, 3));
        row("ScatterAdd", (b, x) -> b.add(new Op.ScatterAdd(b.constant(indices), x.get(0), 0, 4, 2)), s(2, 3, 2));
        row("ScatterAdd", (b, x) -> b.add(new Op.ScatterAdd(b.constant(indices), x.get(0), 1, 4, 1)), s(2, 2, 3, 2));
        row("TakeAlong", (b, x) -> b.add(new Op.TakeAlong(x.get(0), b.constant(indices), 1)), s(2, 5));
        row("AddAlong", (b, x) -> b.add(new Op.AddAlong(b.constant(indices), x.get(0), 1, 5)), s(2, 3));
        row(
                "ArgSort",
                (b, x) -> {
                    Value order = b.add(new Op.ArgSort(x.get(0), 1, true));
                    Value sorted = b.add(new Op.TakeAlong(x.get(0), order, 1));
                    return b.multiply(sorted, b.iota(Type.f32(2, 5), 1));
                },
                s(2, 5));
    }

    private void reductions() {
        for (ReduceKind kind : ReduceKind.values()) {
            switch (kind) {
                case SUM, PRODUCT, MIN, MAX -> {
                    row("Reduce." + kind, (b, x) -> b.reduce(kind, x.get(0), 0, 2), s(2, 3, 4));
                    row("Reduce." + kind, (b, x) -> b.reduce(kind, x.get(0), 1), s(2, 3, 4));
                    row("Reduce." + kind, (b, x) -> b.reduce(kind, x.get(0), 0, 1), s(2, 3));
                    for (boolean reverse : new boolean[] {false, true}) {
                        row(
                                "Cumulative." + kind,
                                (b, x) -> b.add(new Op.Cumulative(kind, x.get(0), 1, reverse)),
                                s(2, 5, 3));
                    }
                }
                case AND, OR -> {
                    row(
                            "Reduce." + kind,
                            (b, x) -> b.select(
                                    b.reduce(kind, b.compare(CompareKind.LESS, x.get(0), b.constant(0f)), 1),
                                    x.get(1),
                                    b.multiply(x.get(1), 2)),
                            s(4, 2),
                            s(4));
                    row(
                            "Cumulative." + kind,
                            (b, x) -> b.select(
                                    b.add(new Op.Cumulative(
                                            kind, b.compare(CompareKind.LESS, x.get(0), b.constant(0f)), 1, false)),
                                    x.get(0),
                                    b.multiply(x.get(0), 2)),
                            s(4, 3));
                }
            }
        }
        row("Reduce.SUM", (b, x) -> b.add(new Op.Reduce(ReduceKind.SUM, x.get(0), List.of(0), 2)), s(4, 3));
        // One zero, two zeros
        row("Reduce.PRODUCT", (b, x) -> b.reduce(ReduceKind.PRODUCT, withZeros(b, x.get(0)), 1), s(3, 4));
        row(
                "Cumulative.PRODUCT",
                (b, x) -> b.add(new Op.Cumulative(ReduceKind.PRODUCT, withZeros(b, x.get(0)), 1, false)),
                s(3, 4));
    }

    private static Value withZeros(GraphBuilder b, Value x) {
        Tensor shift = Tensor.of(Shape.of(3, 4), 1f, 1f, 1f, 1f, 1f, 0f, 1f, 1f, 0f, 1f, 0f, 1f);
        Value free = b.constant(shift);
        // 0 where the shift is, moving with x so that the derivative there is seen
        return b.add(b.multiply(x, 1), b.multiply(b.add(free, -1), x));
    }

    private void contractions() {
        dot(s(3, 4), s(4, 5), List.of(), List.of(), List.of(1), List.of(0), 1);
        dot(s(4, 3), s(5, 4), List.of(), List.of(), List.of(0), List.of(1), 1);
        dot(s(2, 3, 4), s(4, 5), List.of(), List.of(), List.of(2), List.of(0), 2);
        dot(s(2, 3, 4), s(2, 4, 5), List.of(0), List.of(0), List.of(2), List.of(1), 1);
        dot(s(2, 3, 4, 5), s(2, 6, 4, 5), List.of(0, 2), List.of(0, 2), List.of(3), List.of(3), 1);
        dot(s(3, 2, 4), s(4, 5, 3), List.of(), List.of(), List.of(2, 0), List.of(0, 2), 1);
        dot(s(3, 2), s(4, 5), List.of(), List.of(), List.of(), List.of(), 1);
        dot(s(3), s(3), List.of(), List.of(), List.of(0), List.of(0), 1);
        dot(s(3, 2, 2), s(2, 3, 2), List.of(1, 0), List.of(0, 1), List.of(2), List.of(2), 1);
        row(
                "Dot",
                (g, x) -> g.add(
                        new Op.Dot(x.get(0), x.get(1), List.of(), List.of(), List.of(1), List.of(0), 1, x.get(2))),
                s(3, 4),
                s(4, 5),
                s(3, 5));

        convolution(s(2, 3, 7), s(4, 3, 3), window(1, s(1), s(0), s(0), s(1), s(1)), 1, 1);
        convolution(s(2, 3, 8), s(4, 3, 3), window(1, s(2), s(1), s(2), s(1), s(1)), 1, 1);
        convolution(s(2, 3, 8), s(4, 3, 3), window(1, s(3), s(0), s(0), s(1), s(2)), 1, 1);
        convolution(s(2, 4, 6), s(6, 2, 2), window(1, s(2), s(1), s(0), s(2), s(2)), 2, 1);
        convolution(s(4, 3, 6), s(6, 3, 2), window(1, s(2), s(1), s(1), s(1), s(1)), 1, 2);
        convolution(s(2, 2, 5, 6), s(3, 2, 3, 2), window(2, s(2, 1), s(1, 0), s(1, 1), s(1, 1), s(1, 2)), 1, 1);
        convolution(s(2, 4, 5, 5), s(4, 1, 3, 3), window(2, s(2, 2), s(1, 1), s(1, 1), s(1, 1), s(1, 1)), 4, 1);
        // More padding than the kernel reaches
        convolution(s(1, 2, 4), s(2, 2, 2), window(1, s(1), s(3), s(2), s(1), s(1)), 1, 1);
        convolution(s(1, 2, 5), s(2, 2, 1), window(1, s(2), s(0), s(0), s(1), s(1)), 1, 1);
    }

    private void dot(
            int[] a,
            int[] b,
            List<Integer> batchA,
            List<Integer> batchB,
            List<Integer> contractA,
            List<Integer> contractB,
            int segments) {
        row(
                "Dot",
                (g, x) -> g.add(new Op.Dot(x.get(0), x.get(1), batchA, batchB, contractA, contractB, segments)),
                a,
                b);
    }

    private void convolution(int[] x, int[] kernel, Op.Window window, int groups, int batchGroups) {
        row(
                "Convolution",
                (g, in) -> g.add(new Op.Convolution(in.get(0), in.get(1), window, groups, batchGroups, 1)),
                x,
                kernel);
    }

    private static Op.Window window(
            int axes, int[] strides, int[] low, int[] high, int[] inputDilation, int[] windowDilation) {
        assert strides.length == axes;
        return new Op.Window(list(strides), list(low), list(high), list(inputDilation), list(windowDilation));
    }

    private static List<Integer> list(int... values) {
        return IntStream.of(values).boxed().toList();
    }

    private void windows() {
        List<Op.Window> windows = List.of(
                window(2, s(1, 2), s(0, 1), s(0, 1), s(1, 1), s(1, 1)),
                window(2, s(1, 1), s(0, 1), s(1, 2), s(1, 2), s(1, 1)),
                window(2, s(2, 3), s(1, 0), s(1, 0), s(1, 1), s(1, 2)));
        for (Op.Window window : windows) {
            List<Integer> size = List.of(2, 3);
            for (ReduceKind kind : List.of(ReduceKind.SUM, ReduceKind.MAX)) {
                row(
                        "ReduceWindow." + kind,
                        (b, x) -> b.add(new Op.ReduceWindow(kind, x.get(0), size, window)),
                        s(4, 7));
            }
            row(
                    "ScatterWindowMax",
                    (b, x) -> {
                        Value updates = b.add(new Op.ReduceWindow(ReduceKind.SUM, x.get(1), size, window));
                        return b.add(new Op.ScatterWindowMax(x.get(0), updates, size, window));
                    },
                    s(4, 7),
                    s(4, 7));
        }
    }

    private void groups() {
        row(
                "Composite",
                (b, x) -> b.call(twoResults(false), List.of(x.get(0), x.get(1))).getFirst(),
                s(3),
                s(3));
        row(
                "Composite",
                (b, x) -> b.call(twoResults(true), List.of(x.get(0), x.get(0))).getFirst(),
                s(3));
        for (boolean own : new boolean[] {false, true}) {
            row(
                    "Result",
                    (b, x) ->
                            b.call(twoResults(own), List.of(x.get(0), x.get(1))).get(1),
                    s(3),
                    s(3));
            row(
                    "Result",
                    (b, x) -> {
                        List<Value> results = b.call(twoResults(own), List.of(x.get(0), b.exp(x.get(0))));
                        return b.multiply(results.get(0), b.multiply(results.get(1), x.get(0)));
                    },
                    s(3));
        }
        row("Custom", (b, x) -> b.add(new Op.Custom(new Cube(), List.of(x.get(0)))), s(4));
    }

    /// (a·b, sin a + b), with a gradient of its own or without.
    private static Function twoResults(boolean own) {
        Type type = Type.f32(3);
        GraphBuilder definition = new GraphBuilder("pair");
        Value a = definition.input("0", type);
        Value b = definition.input("1", type);
        definition.output("0", definition.multiply(a, b));
        definition.output("1", definition.add(definition.unary(UnaryKind.SIN, a), b));
        GraphBuilder gradient = new GraphBuilder("pairGradient");
        List<Value> in = IntStream.range(0, 6)
                .mapToObj(i -> gradient.input(Integer.toString(i), type))
                .toList();
        Value cosine = gradient.unary(UnaryKind.COS, in.get(0));
        gradient.output("0", gradient.fma(in.get(4), in.get(1), gradient.multiply(in.get(5), cosine)));
        gradient.output("1", gradient.fma(in.get(4), in.get(0), in.get(5)));
        Function function = own ? Function.of("pairGradient", gradient.build()) : null;
        return new Function("pair", new TreeMap<>(), definition.build(), function);
    }

    /// x³.
    private record Cube() implements CustomFunction {
        @Override
        public String name() {
            return "cube";
        }

        @Override
        public Type type(List<Type> operands) {
            return operands.getFirst();
        }

        @Override
        public Tensor evaluate(List<Tensor> operands) {
            Tensor x = operands.getFirst();
            Tensor y = Tensor.zeros(x.type());
            for (long i = 0; i < x.shape().elements(); i++) {
                y.setFloat(i, x.getFloat(i) * x.getFloat(i) * x.getFloat(i));
            }
            return y;
        }

        @Override
        public List<Value> gradient(GraphBuilder b, List<Value> operands, Value result, Value cotangent) {
            Value x = operands.getFirst();
            return List.of(b.multiply(cotangent, b.multiply(b.multiply(x, x), 3)));
        }
    }
}
