package ingot.nn;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Op.CompareKind;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BiFunction;
import java.util.stream.Stream;

/// One or more rows per public function of this package, to be differentiated in several ways.
final class FunctionTable {
    /// `function`: class and method. `operands`: F32 shapes.
    record Row(String function, List<Shape> operands, BiFunction<GraphBuilder, List<Value>, Value> body) {
        @Override
        public String toString() {
            return function + " " + operands;
        }
    }

    private final List<Row> rows = new ArrayList<>();

    static List<Row> rows() {
        FunctionTable table = new FunctionTable();
        table.functions();
        table.layers();
        table.losses();
        table.attention();
        return table.rows;
    }

    /// Every public static function that takes a builder and gives values.
    static Set<String> required() {
        Set<String> names = new TreeSet<>();
        Stream.of(
                        Activations.class,
                        Attention.class,
                        CrossEntropy.class,
                        Experts.class,
                        Layers.class,
                        Norms.class,
                        Softmax.class)
                .flatMap(type -> Arrays.stream(type.getDeclaredMethods()))
                .filter(method -> Modifier.isPublic(method.getModifiers()) && Modifier.isStatic(method.getModifiers()))
                .filter(method -> method.getParameterCount() > 0 && method.getParameterTypes()[0] == GraphBuilder.class)
                .forEach(method -> names.add(name(method)));
        names.remove("Norms.tracked"); // its gradient is a learning rule, and none of what it computes
        return names;
    }

    private static String name(Method method) {
        return method.getDeclaringClass().getSimpleName() + "." + method.getName();
    }

    private void row(String function, BiFunction<GraphBuilder, List<Value>, Value> body, int[]... shapes) {
        rows.add(new Row(function, Arrays.stream(shapes).map(Shape::of).toList(), body));
    }

    private static int[] s(int... dims) {
        return dims;
    }

    private void functions() {
        row("Activations.relu", (b, x) -> Activations.relu(b, x.get(0)), s(3, 4));
        row("Activations.relu6", (b, x) -> Activations.relu6(b, b.multiply(x.get(0), 8)), s(3, 4));
        row("Activations.sigmoid", (b, x) -> Activations.sigmoid(b, x.get(0)), s(3, 4));
        row("Activations.silu", (b, x) -> Activations.silu(b, x.get(0)), s(3, 4));
        row("Activations.gelu", (b, x) -> Activations.gelu(b, x.get(0)), s(3, 4));
        row("Activations.geluTanh", (b, x) -> Activations.geluTanh(b, x.get(0)), s(3, 4));
        row("Activations.dropout", (b, x) -> Activations.dropout(b, x.get(0), 0.5, random(b), 2), s(6, 4));
        row("Softmax.softmax", (b, x) -> Softmax.softmax(b, x.get(0)), s(2, 3, 5));
        row("Softmax.logSoftmax", (b, x) -> Softmax.logSoftmax(b, x.get(0)), s(2, 3, 5));
        row(
                "Norms.layerNorm",
                (b, x) -> Norms.layerNorm(b, x.get(0), x.get(1), x.get(2), 1e-2),
                s(2, 3, 5),
                s(5),
                s(5));
        row("Norms.rmsNorm", (b, x) -> Norms.rmsNorm(b, x.get(0), x.get(1), 1e-2), s(2, 3, 5), s(5));
        row(
                "Norms.batchNormTraining",
                (b, x) -> {
                    Norms.BatchNorm norm = Norms.batchNormTraining(b, x.get(0), x.get(1), x.get(2), 1e-2);
                    Value statistics = b.add(norm.mean(), norm.variance());
                    return b.add(
                            norm.result(), b.broadcast(statistics, norm.result().shape(), List.of(1)));
                },
                s(3, 2, 4),
                s(2),
                s(2));
        row(
                "Norms.batchNorm",
                (b, x) -> Norms.batchNorm(b, x.get(0), x.get(1), x.get(2), x.get(3), b.exp(x.get(4)), 1e-2),
                s(3, 2, 4),
                s(2),
                s(2),
                s(2),
                s(2));
    }

    private void layers() {
        row("Layers.linear", (b, x) -> Layers.linear(b, x.get(0), x.get(1), x.get(2)), s(2, 3, 4), s(4, 5), s(5));
        row("Layers.linear", (b, x) -> Layers.linear(b, x.get(0), x.get(1), null), s(3, 4), s(4, 5));
        row(
                "Layers.linearTransposed",
                (b, x) -> Layers.linearTransposed(b, x.get(0), x.get(1), x.get(2)),
                s(3, 4),
                s(5, 4),
                s(5));
        row(
                "Layers.split",
                (b, x) -> {
                    List<Value> parts = Layers.split(b, x.get(0), 3, 1);
                    return b.multiply(parts.get(0), b.exp(parts.get(2))); // one part is not used
                },
                s(2, 6));
        row("Experts.shares", (b, x) -> Experts.shares(b, x.get(0), 2), s(3, 5));
        for (int turned : new int[] {6, 4}) { // all channels of a head, or some
            row(
                    "Rope.rotate",
                    (b, x) ->
                            Rope.rotate(b, x.get(0), Rope.of(turned, 100).angles(b, b.add(b.iota(Type.i32(3), 0), 5))),
                    s(2, 3, 2, 6));
        }
        Tensor ids = Tensor.of(Shape.of(2, 2), 1, 0, 3, 1);
        row("Layers.embedding", (b, x) -> Layers.embedding(b, x.get(0), b.constant(ids)), s(4, 3));
        row(
                "Layers.conv2d",
                (b, x) -> Layers.conv2d(b, x.get(0), x.get(1), x.get(2), 2, 1, 2),
                s(2, 4, 5, 5),
                s(6, 2, 3, 3),
                s(6));
        row("Layers.maxPool2d", (b, x) -> Layers.maxPool2d(b, x.get(0), 3, 2, 1), s(2, 2, 5, 5));
        row("Layers.averagePool2d", (b, x) -> Layers.averagePool2d(b, x.get(0), 3, 2, 1), s(2, 2, 5, 5));
    }

    private void losses() {
        Tensor targets = Tensor.of(Shape.of(4), 2, CrossEntropy.IGNORED, 0, 4);
        row(
                "CrossEntropy.crossEntropy",
                (b, x) -> CrossEntropy.crossEntropy(b, x.get(0), b.constant(targets)),
                s(4, 5));
        row(
                "CrossEntropy.linearCrossEntropy",
                (b, x) -> CrossEntropy.linearCrossEntropy(b, x.get(0), x.get(1), b.constant(targets)),
                s(4, 3),
                s(5, 3));
    }

    private void attention() {
        for (int keyHeads : new int[] {4, 2, 1}) {
            int[] q = s(2, 3, 4, 5);
            int[] k = s(2, 3, keyHeads, 5);
            attention(true, 0, null, q, k, k);
            attention(false, 0, null, q, s(2, 6, keyHeads, 5), s(2, 6, keyHeads, 5));
            attention(true, 0, null, q, s(2, 6, keyHeads, 5), s(2, 6, keyHeads, 5));
            attention(false, 0, Shape.of(2, 1, 1, 3), q, k, k);
            attention(true, 0, Shape.of(1, 4, 3, 3), q, k, k);
            attention(true, 0.4, Shape.of(2, 1, 3, 3), q, k, k);
            // An added mask is differentiated too.
            attention(false, 0, null, q, k, k, s(1, 4, 3, 3));
            attention(true, 0.4, null, q, k, k, s(2, 1, 1, 3));
        }
    }

    /// `seen`: the shape of a boolean mask; a fourth operand is one to be added.
    private void attention(
            boolean causal, double dropout, @org.jspecify.annotations.Nullable Shape seen, int[]... shapes) {
        row(
                "Attention.attention",
                (b, x) -> {
                    Value mask = x.size() > 3 ? x.get(3) : seen == null ? null : someSeen(b, seen);
                    Attention.Options options = new Attention.Options(causal, 0.7, dropout);
                    return Attention.attention(
                            b, x.get(0), x.get(1), x.get(2), mask, options, dropout > 0 ? random(b) : null);
                },
                shapes);
    }

    /// Sees the first key always, the others half the time.
    private static Value someSeen(GraphBuilder b, Shape shape) {
        Value key = b.constant(Tensor.of(Shape.of(4), 5, 6, 7, 0));
        Value coin = b.compare(CompareKind.GREATER, b.add(new Op.RandomBits(shape, 99, key)), b.constant(0));
        Value first = b.compare(CompareKind.EQUAL, b.iota(new Type(DType.I32, shape), 3), b.constant(0));
        return b.binary(Op.BinaryKind.OR, coin, first);
    }

    private static Randomness random(GraphBuilder b) {
        return new Randomness(b.constant(Tensor.of(Shape.of(4), 1, 2, 3, 0)));
    }
}
