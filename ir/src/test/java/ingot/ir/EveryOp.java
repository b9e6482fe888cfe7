package ingot.ir;

import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Op.UnaryKind;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/// A graph that uses every op and every kind.
final class EveryOp {
    private EveryOp() {}

    static final CustomFunction TWICE = new CustomFunction() {
        @Override
        public String name() {
            return "twice";
        }

        @Override
        public Type type(List<Type> operands) {
            return operands.getFirst();
        }

        @Override
        public Tensor evaluate(List<Tensor> operands) {
            float[] x = operands.getFirst().toFloats();
            for (int i = 0; i < x.length; i++) {
                x[i] *= 2;
            }
            return Tensor.of(operands.getFirst().shape(), x);
        }
    };

    static final Map<String, Tensor> INPUTS = Map.of(
            "x", Tensor.of(Shape.of(2, 3), 1f, -2f, 3f, 0.5f, -0f, 7f),
            "odd name \"1\"", Tensor.of(Shape.of(2, 3), 2f, 2f, -1f, 3f, 1f, 0.25f),
            "i", Tensor.of(Shape.of(2, 3), 2, 0, 1, 7, -1, 1),
            "key", Tensor.of(Shape.of(4), 1, 2, 3, 4));

    static final Map<String, Tensor> WEIGHTS = Map.of("h.0.w", Tensor.of(Shape.of(3, 4), new float[12]));

    static Graph graph() {
        GraphBuilder b = new GraphBuilder("every op");
        Value x = b.input("x", Type.f32(2, 3));
        Value y = b.input("odd name \"1\"", Type.f32(2, 3));
        Value i = b.input("i", Type.i32(2, 3));
        Value key = b.input("key", Type.i32(4));
        Value w = b.weight("h.0.w", Type.f32(3, 4));
        b.scope("h.0", () -> {
            for (UnaryKind kind : UnaryKind.values()) {
                b.unary(kind, kind == UnaryKind.NOT ? i : x);
            }
            return b.scope("attn", () -> b.add(x, y));
        });
        for (BinaryKind kind : BinaryKind.values()) {
            boolean integer = switch (kind) {
                case ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, MIN, MAX, POWER -> false;
                case AND, OR, XOR, SHIFT_LEFT, SHIFT_RIGHT, SHIFT_RIGHT_UNSIGNED -> true;
            };
            b.binary(kind, integer ? i : x, integer ? i : y);
        }
        for (CompareKind kind : CompareKind.values()) {
            b.compare(kind, x, y);
        }
        Value condition = b.compare(CompareKind.LESS, x, y);
        b.fma(x, y, x);
        b.select(condition, x, y);
        for (DType dtype : DType.values()) {
            b.convert(x, dtype);
        }
        b.bitcast(x, DType.I32);
        b.iota(Type.i32(2, 3), 1);
        b.add(new Op.RandomBits(Shape.of(2, 3), 5, key));
        constants(b);
        b.broadcast(x, Shape.of(4, 2, 3));
        b.reshape(x, 3, -1);
        b.transpose(x, 1, 0);
        b.add(new Op.Slice(x, List.of(0, 1), List.of(2, 3), List.of(1, 2)));
        b.add(new Op.Pad(x, b.constant(9f), List.of(1, 0), List.of(0, 2), List.of(0, 1)));
        b.concatenate(List.of(x, y, x), 1);
        b.add(new Op.Reverse(x, List.of(0, 1)));
        b.gather(x, i, 1);
        b.add(new Op.ScatterAdd(i, x, 0, 4, 3));
        b.add(new Op.TakeAlong(x, i, 1));
        b.add(new Op.AddAlong(i, x, 1, 5));
        b.add(new Op.ArgSort(x, 1, true));
        for (ReduceKind kind : ReduceKind.values()) {
            boolean logical = kind == ReduceKind.AND || kind == ReduceKind.OR;
            b.reduce(kind, logical ? condition : x, 0);
            b.add(new Op.Cumulative(kind, logical ? condition : x, 1, kind == ReduceKind.SUM));
        }
        b.add(new Op.Reduce(ReduceKind.SUM, x, List.of(0, 1), 3));
        b.add(new Op.Dot(x, y, List.of(0), List.of(0), List.of(1), List.of(1), 3));
        Value product = b.matmul(x, w);
        Op.Window window = new Op.Window(List.of(2), List.of(1), List.of(0), List.of(1), List.of(1));
        Value image = b.reshape(x, 1, 2, 3);
        b.add(new Op.Convolution(image, b.reshape(y, 3, 2, 1), window, 1, 1, 2));
        Op.Window all = new Op.Window(List.of(1, 1), List.of(0, 1), List.of(0, 0), List.of(1, 1), List.of(1, 2));
        Value pooled = b.add(new Op.ReduceWindow(ReduceKind.MAX, x, List.of(1, 2), all));
        b.add(new Op.ReduceWindow(ReduceKind.SUM, x, List.of(2, 1), all));
        b.add(new Op.ScatterWindowMax(x, b.exp(pooled), List.of(1, 2), all));
        List<Value> results = b.call(twoResults(), List.of(x, y));
        b.call(twoResults(), List.of(y, x));
        b.add(new Op.Custom(TWICE, List.of(x)));
        b.output("product", product);
        b.output("second result", results.get(1));
        return b.build();
    }

    private static void constants(GraphBuilder b) {
        b.constant(true);
        b.constant(-7);
        b.constant(0.1f);
        b.constant(Float.NaN);
        b.constant(Tensor.of(
                Shape.of(6),
                Float.intBitsToFloat(0xFF800001),
                Float.NEGATIVE_INFINITY,
                Float.POSITIVE_INFINITY,
                Float.MIN_VALUE,
                -0f,
                Float.MAX_VALUE));
        b.constant(Tensor.of(Shape.of(2, 0), new float[0]));
        b.constant(Tensor.of(Shape.of(3), true, false, true));
        b.constant(Tensor.of(Shape.of(2, 2), 1, 1, 1, 1));
        int[] large = new int[101];
        java.util.Arrays.setAll(large, n -> n * n);
        b.constant(Tensor.of(Shape.of(101), large));
        for (DType dtype : DType.values()) {
            Tensor tensor = Tensor.zeros(new Type(dtype, Shape.of(3)));
            tensor.setFloat(1, dtype == DType.BOOL ? 1 : 100);
            tensor.setFloat(2, dtype.isFloating() ? Float.NaN : 1);
            b.constant(tensor);
        }
    }

    /// (a, b) → (a·b + 0.5, e^a), whose definition calls another function.
    static Function twoResults() {
        GraphBuilder inner = new GraphBuilder("inner");
        inner.output("y", inner.exp(inner.input("0", Type.f32(2, 3))));
        Function exp = Function.of("inner", inner.build());

        GraphBuilder b = new GraphBuilder("definition");
        Value x = b.input("0", Type.f32(2, 3));
        Value y = b.input("1", Type.f32(2, 3));
        b.output("first", b.add(b.multiply(x, y), 0.5));
        b.output("second", b.call(exp, List.of(x)).getFirst());

        GraphBuilder g = new GraphBuilder("gradient");
        List<Value> operands = new java.util.ArrayList<>();
        for (int i = 0; i < 6; i++) {
            operands.add(g.input(Integer.toString(i), Type.f32(2, 3)));
        }
        g.output("a", g.fma(operands.get(4), operands.get(1), g.multiply(operands.get(5), operands.get(3))));
        g.output("b", g.multiply(operands.get(4), operands.get(0)));
        Function gradient = Function.of("gradient", g.build());
        return new Function("two", new TreeMap<>(Map.of("axis", -1.0, "epsilon", 1e-5)), b.build(), gradient);
    }
}
