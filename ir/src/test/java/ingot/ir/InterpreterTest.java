package ingot.ir;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Op.UnaryKind;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

/// Results worked out by hand or by the formulas of docs/arithmetic.md, op by op.
class InterpreterTest {
    private static final float NAN = Float.NaN;
    private static final float INF = Float.POSITIVE_INFINITY;

    private static Value value(Type type) {
        return new Value(0, new Op.Input("x", type), type);
    }

    /// Evaluates an op made from values of the operands' types.
    private static Tensor evaluate(Function<List<Value>, Op> op, Tensor... operands) {
        List<Value> values = new ArrayList<>();
        for (Tensor operand : operands) {
            values.add(new Value(values.size(), new Op.Input("" + values.size(), operand.type()), operand.type()));
        }
        return Interpreter.evaluate(op.apply(values), List.of(operands));
    }

    private static Tensor floats(float... values) {
        return Tensor.of(Shape.of(values.length), values);
    }

    private static Tensor ints(DType dtype, long... values) {
        Tensor tensor = Tensor.zeros(new Type(dtype, Shape.of(values.length)));
        for (int i = 0; i < values.length; i++) {
            tensor.setLong(i, values[i]);
        }
        return tensor;
    }

    private static void bits(Tensor got, float... expected) {
        Tensor wanted = Tensor.of(got.shape(), expected);
        assertThat(got.sameBits(wanted)).as("%s, expected %s", got, wanted).isTrue();
    }

    private static long[] longs(Tensor t) {
        long[] values = new long[(int) t.shape().elements()];
        java.util.Arrays.setAll(values, t::getLong);
        return values;
    }

    private static Tensor unary(UnaryKind kind, Tensor x) {
        return evaluate(v -> new Op.Unary(kind, v.get(0)), x);
    }

    private static Tensor binary(BinaryKind kind, Tensor a, Tensor b) {
        return evaluate(v -> new Op.Binary(kind, v.get(0), v.get(1)), a, b);
    }

    @Test
    void unaryZerosAndNaN() {
        Tensor x = floats(0f, -0f, -0.5f, 2.5f, NAN, -INF);
        bits(unary(UnaryKind.NEGATE, x), -0f, 0f, 0.5f, -2.5f, NAN, INF);
        bits(unary(UnaryKind.ABS, x), 0f, 0f, 0.5f, 2.5f, NAN, INF);
        bits(unary(UnaryKind.SIGN, x), 0f, -0f, -1f, 1f, NAN, -1f);
        bits(unary(UnaryKind.FLOOR, x), 0f, -0f, -1f, 2f, NAN, -INF);
        bits(unary(UnaryKind.CEIL, x), 0f, -0f, -0f, 3f, NAN, -INF);
        bits(unary(UnaryKind.ROUND, x), 0f, -0f, -0f, 2f, NAN, -INF);
        bits(unary(UnaryKind.SQRT, x), 0f, -0f, NAN, (float) Math.sqrt(2.5), NAN, NAN);
    }

    @Test
    void minAndMaxOrderZerosAndSpreadNaN() {
        Tensor a = floats(0f, -0f, NAN, 1f, INF);
        Tensor b = floats(-0f, 0f, 1f, NAN, -INF);
        bits(binary(BinaryKind.MIN, a, b), -0f, -0f, NAN, NAN, -INF);
        bits(binary(BinaryKind.MAX, a, b), 0f, 0f, NAN, NAN, INF);
        bits(binary(BinaryKind.REMAINDER, floats(5.5f, -5.5f, 1f, INF), floats(2f, 2f, 0f, 2f)), 1.5f, -1.5f, NAN, NAN);
    }

    @Test
    void integersWrapAtTheirWidth() {
        Tensor a = ints(DType.I8, 127, -128, 100, -7, -7);
        Tensor b = ints(DType.I8, 1, -1, 3, 2, 0);
        assertThat(longs(binary(BinaryKind.ADD, a, b))).containsExactly(-128, 127, 103, -5, -7);
        assertThat(longs(binary(BinaryKind.MULTIPLY, a, b))).containsExactly(127, -128, 44, -14, 0);
        assertThat(longs(binary(BinaryKind.DIVIDE, a, b))).containsExactly(127, -128, 33, -3, 0);
        assertThat(longs(binary(BinaryKind.REMAINDER, a, b))).containsExactly(0, 0, 1, -1, 0);
        assertThat(longs(unary(UnaryKind.ABS, a))).containsExactly(127, -128, 100, 7, 7);
        Tensor u = ints(DType.U8, 200, 255);
        assertThat(longs(binary(BinaryKind.ADD, u, u))).containsExactly(144, 254);
        assertThat(longs(binary(BinaryKind.MAX, u, ints(DType.U8, 3, 3)))).containsExactly(200, 255);
        assertThat(longs(unary(UnaryKind.NOT, u))).containsExactly(55, 0);
        Tensor least = ints(DType.I32, Integer.MIN_VALUE);
        assertThat(longs(binary(BinaryKind.DIVIDE, least, ints(DType.I32, -1)))).containsExactly(Integer.MIN_VALUE);
        assertThat(longs(unary(UnaryKind.NOT, Tensor.of(Shape.of(2), true, false))))
                .containsExactly(0, 1);
    }

    @Test
    void shiftsCountModuloTheWidth() {
        Tensor by = ints(DType.I32, 1, 33, -1, 0);
        Tensor x = ints(DType.I32, -8, -8, -8, 5);
        assertThat(longs(binary(BinaryKind.SHIFT_LEFT, x, by))).containsExactly(-16, -16, 0, 5);
        assertThat(longs(binary(BinaryKind.SHIFT_RIGHT, x, by))).containsExactly(-4, -4, -1, 5);
        assertThat(longs(binary(BinaryKind.SHIFT_RIGHT_UNSIGNED, x, by))).containsExactly(0x7FFFFFFC, 0x7FFFFFFC, 1, 5);
        Tensor one = ints(DType.I8, 1, 9);
        assertThat(longs(binary(BinaryKind.SHIFT_RIGHT_UNSIGNED, ints(DType.I8, -2, -2), one)))
                .containsExactly(127, 127);
        assertThat(longs(binary(BinaryKind.SHIFT_RIGHT, ints(DType.U8, 254, 254), ints(DType.U8, 1, 9))))
                .containsExactly(127, 127);
    }

    @Test
    void compareFollowsIeee() {
        Tensor a = floats(0f, NAN, 1f);
        Tensor b = floats(-0f, NAN, 2f);
        assertThat(longs(evaluate(v -> new Op.Compare(CompareKind.EQUAL, v.get(0), v.get(1)), a, b)))
                .containsExactly(1, 0, 0);
        assertThat(longs(evaluate(v -> new Op.Compare(CompareKind.NOT_EQUAL, v.get(0), v.get(1)), a, b)))
                .containsExactly(0, 1, 1);
        assertThat(longs(evaluate(v -> new Op.Compare(CompareKind.GREATER_EQUAL, v.get(0), v.get(1)), a, b)))
                .containsExactly(1, 0, 0);
    }

    @Test
    void conversions() {
        Tensor x = floats(1.9f, -1.9f, 300f, -300f, NAN, 1e20f, -0f);
        assertThat(longs(convert(x, DType.I32))).containsExactly(1, -1, 300, -300, 0, Integer.MAX_VALUE, 0);
        assertThat(longs(convert(x, DType.I8))).containsExactly(1, -1, 127, -128, 0, 127, 0);
        assertThat(longs(convert(x, DType.U8))).containsExactly(1, 0, 255, 0, 0, 255, 0);
        assertThat(longs(convert(x, DType.I64))).containsExactly(1, -1, 300, -300, 0, (long) 1e20f, 0);
        assertThat(longs(convert(x, DType.BOOL))).containsExactly(1, 1, 1, 1, 1, 1, 0);
        bits(convert(ints(DType.I64, (1L << 53) + (1L << 29), 3), DType.F32), 0x1p53f, 3f);
        assertThat(longs(convert(ints(DType.I32, 0x12345678, -1), DType.I8))).containsExactly(0x78, -1);
        // ties to even: 1 + 2⁻⁸ lies between two bf16
        Tensor narrow = convert(floats(1 + 0x1p-8f, 1 + 0x3p-8f, 65504f * 2), DType.BF16);
        assertThat(narrow.toFloats()).containsExactly(1f, 1 + 0x1p-6f, 0x1p17f);
        assertThat(convert(floats(65504f, 65520f, 0x1p-25f), DType.F16).toFloats())
                .containsExactly(65504f, INF, 0f);
    }

    private static Tensor convert(Tensor x, DType to) {
        return evaluate(v -> new Op.Convert(v.get(0), to), x);
    }

    @Test
    void narrowFloatsRoundOncePerOp() {
        Tensor one = convert(floats(1f, 3f), DType.BF16);
        Tensor small = convert(floats(0x1p-8f, 0x1p-9f), DType.BF16);
        assertThat(binary(BinaryKind.ADD, one, small).toFloats()).containsExactly(1f, 3f);
        // A dot accumulates in fp32: 1 + 2⁻⁸ + 2⁻⁸ = 1 + 2⁻⁷, which bf16 holds.
        Tensor parts = convert(floats(1f, 0x1p-8f, 0x1p-8f), DType.BF16);
        Tensor ones = convert(floats(1f, 1f, 1f), DType.BF16);
        assertThat(dot(parts, ones, 1).getFloat(0)).isEqualTo(1 + 0x1p-7f);
        Tensor sum = evaluate(v -> new Op.Reduce(ReduceKind.SUM, v.get(0), List.of(0), 1), parts);
        assertThat(sum.getFloat(0)).isEqualTo(1 + 0x1p-7f);
    }

    private static Tensor dot(Tensor a, Tensor b, int segments) {
        return evaluate(
                v -> new Op.Dot(v.get(0), v.get(1), List.of(), List.of(), List.of(0), List.of(0), segments), a, b);
    }

    @Test
    void dotIsOneFmaChainPerSegment() {
        float[] a = RandomFloats.of(42, 1);
        float[] b = RandomFloats.of(42, 2);
        float chain = 0f;
        for (int k = 0; k < 42; k++) {
            chain = Math.fma(a[k], b[k], chain);
        }
        bits(dot(floats(a), floats(b), 1), chain);
        float[] parts = new float[7];
        for (int k = 0; k < 42; k++) {
            parts[k / 6] = Math.fma(a[k], b[k], parts[k / 6]);
        }
        float tree = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + parts[6]);
        bits(dot(floats(a), floats(b), 7), tree);
        bits(dot(floats(-0f), floats(0f), 1), 0f);
        bits(dot(floats(), floats(), 1), 0f);
        // An underflowing product leaves −0, which a further 0·0 would turn to +0.
        bits(dot(floats(-0x1p-100f), floats(0x1p-100f), 1), -0f);
        bits(dot(floats(-0x1p-100f, 0f), floats(0x1p-100f, 0f), 1), 0f);
    }

    @Test
    void dotArrangesAxes() {
        // a [m=2, batch=2, k=3], b [k=3, batch=2, n=1] → [batch, m, n]
        Tensor a = Tensor.of(Shape.of(2, 2, 3), 1f, 2f, 3f, 4f, 5f, 6f, 7f, 8f, 9f, 10f, 11f, 12f);
        Tensor b = Tensor.of(Shape.of(3, 2, 1), 1f, 10f, 100f, 1000f, 10000f, 100000f);
        Tensor c =
                evaluate(v -> new Op.Dot(v.get(0), v.get(1), List.of(1), List.of(1), List.of(2), List.of(0), 1), a, b);
        assertThat(c.shape()).isEqualTo(Shape.of(2, 2, 1));
        bits(c, 30201f, 90807f, 605040f, 1211100f);
    }

    @Test
    void sumIsSixteenLanesAndATree() {
        for (int n : new int[] {0, 1, 3, 15, 16, 17, 33, 100}) {
            float[] x = RandomFloats.of(n, n);
            float[] lane = new float[16];
            for (int i = 0; i < n; i++) {
                lane[i % 16] = lane[i % 16] + x[i];
            }
            for (int h = 8; h >= 1; h /= 2) {
                for (int l = 0; l < h; l++) {
                    lane[l] = lane[l] + lane[l + h];
                }
            }
            bits(evaluate(v -> new Op.Reduce(ReduceKind.SUM, v.get(0), List.of(0), 1), floats(x)), lane[0]);
        }
        bits(evaluate(v -> new Op.Reduce(ReduceKind.SUM, v.get(0), List.of(0), 1), floats(-0f, -0f)), 0f);
    }

    @Test
    void segmentedSumReducesRunsThenTheTree() {
        float[] x = RandomFloats.of(60, 5);
        List<Float> parts = new ArrayList<>();
        for (int s = 0; s < 3; s++) {
            float[] run = java.util.Arrays.copyOfRange(x, 20 * s, 20 * s + 20);
            parts.add(evaluate(v -> new Op.Reduce(ReduceKind.SUM, v.get(0), List.of(0), 1), floats(run))
                    .getFloat(0));
        }
        bits(
                evaluate(v -> new Op.Reduce(ReduceKind.SUM, v.get(0), List.of(0), 3), floats(x)),
                (parts.get(0) + parts.get(1)) + parts.get(2));
    }

    @Test
    void reduceNumbersElementsOverAscendingAxes() {
        Tensor x = Tensor.of(Shape.of(2, 3, 2), 1f, 2f, 3f, 4f, 5f, 6f, 7f, 8f, 9f, 10f, 11f, 12f);
        bits(evaluate(v -> new Op.Reduce(ReduceKind.SUM, v.get(0), List.of(0, 2), 1), x), 18f, 26f, 34f);
        bits(evaluate(v -> new Op.Reduce(ReduceKind.PRODUCT, v.get(0), List.of(1), 1), x), 15f, 48f, 693f, 960f);
        bits(evaluate(v -> new Op.Reduce(ReduceKind.MAX, v.get(0), List.of(0), 1), x), 7f, 8f, 9f, 10f, 11f, 12f);
        bits(reduce(ReduceKind.MAX, floats(-0f, 0f, -1f)), 0f);
        bits(reduce(ReduceKind.MIN, floats(0f, -0f, 1f)), -0f);
        bits(reduce(ReduceKind.MIN, floats(0f, NAN, 1f)), NAN);
        bits(reduce(ReduceKind.MIN, floats()), INF);
        bits(reduce(ReduceKind.MAX, floats()), -INF);
        bits(reduce(ReduceKind.PRODUCT, floats()), 1f);
        assertThat(longs(reduce(ReduceKind.MIN, ints(DType.I8)))).containsExactly(127);
        assertThat(longs(reduce(ReduceKind.MAX, ints(DType.I32)))).containsExactly(Integer.MIN_VALUE);
        assertThat(longs(reduce(ReduceKind.MIN, ints(DType.U8)))).containsExactly(255);
        assertThat(longs(reduce(ReduceKind.SUM, ints(DType.I8, 100, 100)))).containsExactly(-56);
        assertThat(longs(reduce(ReduceKind.AND, Tensor.of(Shape.of(2), true, false))))
                .containsExactly(0);
        assertThat(longs(reduce(ReduceKind.OR, Tensor.of(Shape.of(2), true, false))))
                .containsExactly(1);
    }

    private static Tensor reduce(ReduceKind kind, Tensor x) {
        return evaluate(v -> new Op.Reduce(kind, v.get(0), List.of(0), 1), x);
    }

    @Test
    void cumulative() {
        Tensor x = Tensor.of(Shape.of(2, 3), 1f, 2f, 3f, 4f, 5f, 6f);
        bits(evaluate(v -> new Op.Cumulative(ReduceKind.SUM, v.get(0), 1, false), x), 1f, 3f, 6f, 4f, 9f, 15f);
        bits(evaluate(v -> new Op.Cumulative(ReduceKind.SUM, v.get(0), 1, true), x), 6f, 5f, 3f, 15f, 11f, 6f);
        bits(evaluate(v -> new Op.Cumulative(ReduceKind.PRODUCT, v.get(0), 0, false), x), 1f, 2f, 3f, 4f, 10f, 18f);
        bits(evaluate(v -> new Op.Cumulative(ReduceKind.SUM, v.get(0), 0, false), floats(-0f, -0f)), 0f, 0f);
    }

    @Test
    void moving() {
        Tensor x = Tensor.of(Shape.of(2, 3), 1f, 2f, 3f, 4f, 5f, 6f);
        bits(evaluate(v -> new Op.Transpose(v.get(0), List.of(1, 0)), x), 1f, 4f, 2f, 5f, 3f, 6f);
        bits(evaluate(v -> new Op.Broadcast(v.get(0), Shape.of(2, 2), List.of(1)), floats(1f, 2f)), 1f, 2f, 1f, 2f);
        bits(evaluate(v -> new Op.Broadcast(v.get(0), Shape.of(2, 2), List.of(0)), floats(1f, 2f)), 1f, 1f, 2f, 2f);
        bits(evaluate(v -> new Op.Broadcast(v.get(0), Shape.of(3), List.of(0)), floats(7f)), 7f, 7f, 7f);
        bits(evaluate(v -> new Op.Slice(v.get(0), List.of(0, 1), List.of(2, 3), List.of(1, 1)), x), 2f, 3f, 5f, 6f);
        bits(evaluate(v -> new Op.Slice(v.get(0), List.of(1, 0), List.of(2, 3), List.of(1, 2)), x), 4f, 6f);
        bits(
                evaluate(
                        v -> new Op.Pad(v.get(0), v.get(1), List.of(1, 0), List.of(0, 1), List.of(0, 1)),
                        Tensor.of(Shape.of(1, 2), 1f, 2f),
                        Tensor.scalar(9f)),
                9f,
                9f,
                9f,
                9f,
                1f,
                9f,
                2f,
                9f);
        bits(
                evaluate(v -> new Op.Concatenate(v, 1), x, Tensor.of(Shape.of(2, 1), 7f, 8f)),
                1f,
                2f,
                3f,
                7f,
                4f,
                5f,
                6f,
                8f);
        bits(evaluate(v -> new Op.Reverse(v.get(0), List.of(0, 1)), x), 6f, 5f, 4f, 3f, 2f, 1f);
        assertThat(Interpreter.evaluate(new Op.Iota(Type.i32(2, 3), 1), List.of())
                        .toInts())
                .containsExactly(0, 1, 2, 0, 1, 2);
        bits(Interpreter.evaluate(new Op.Iota(Type.f32(2, 2), 0), List.of()), 0f, 0f, 1f, 1f);
        assertThat(evaluate(v -> new Op.Bitcast(v.get(0), DType.I32), floats(1f))
                        .toInts())
                .containsExactly(0x3F800000);
    }

    @Test
    void indexing() {
        Tensor x = Tensor.of(Shape.of(2, 3), 1f, 2f, 3f, 4f, 5f, 6f);
        bits(
                evaluate(v -> new Op.Gather(v.get(0), v.get(1), 0), x, Tensor.of(Shape.of(3), 1, -5, 9)),
                4f,
                5f,
                6f,
                1f,
                2f,
                3f,
                4f,
                5f,
                6f);
        bits(evaluate(v -> new Op.Gather(v.get(0), v.get(1), 1), x, Tensor.of(Shape.of(1, 2), 2, 0)), 3f, 1f, 6f, 4f);
        bits(evaluate(v -> new Op.TakeAlong(v.get(0), v.get(1), 1), x, Tensor.of(Shape.of(2, 1), 2, 0)), 3f, 4f);
        bits(
                evaluate(
                        v -> new Op.AddAlong(v.get(0), v.get(1), 1, 2), Tensor.of(Shape.of(2, 3), 0, 0, 1, 1, 1, 1), x),
                3f,
                3f,
                0f,
                15f);
        bits(
                evaluate(v -> new Op.ScatterAdd(v.get(0), v.get(1), 0, 3, 1), Tensor.of(Shape.of(2), 2, 2), x),
                0f,
                0f,
                0f,
                0f,
                0f,
                0f,
                5f,
                7f,
                9f);
        assertThat(evaluate(v -> new Op.ArgSort(v.get(0), 0, false), floats(NAN, 1f, 0f, -0f, 1f, -INF))
                        .toInts())
                .containsExactly(5, 3, 2, 1, 4, 0);
        assertThat(evaluate(v -> new Op.ArgSort(v.get(0), 0, true), floats(NAN, 1f, 0f, -0f, 1f, -INF))
                        .toInts())
                .containsExactly(0, 1, 4, 2, 3, 5);
        assertThat(evaluate(v -> new Op.ArgSort(v.get(0), 0, false), Tensor.of(Shape.of(2, 2), 3, 1, 2, 5))
                        .toInts())
                .containsExactly(1, 0, 0, 1);
    }

    @Test
    void scatterAddChainsAscendAndSegmentsCombine() {
        float[] u = RandomFloats.of(12, 9);
        Tensor zeros = Tensor.of(Shape.of(12), new int[12]);
        float chain = 0f;
        float[] parts = new float[3];
        for (int i = 0; i < 12; i++) {
            chain = chain + u[i];
            parts[i / 4] = parts[i / 4] + u[i];
        }
        bits(evaluate(v -> new Op.ScatterAdd(v.get(0), v.get(1), 0, 1, 1), zeros, floats(u)), chain);
        bits(
                evaluate(v -> new Op.ScatterAdd(v.get(0), v.get(1), 0, 1, 3), zeros, floats(u)),
                (parts[0] + parts[1]) + parts[2]);
    }

    @Test
    void convolution() {
        Tensor x = Tensor.of(Shape.of(1, 1, 3), 1f, 2f, 3f);
        Tensor kernel = Tensor.of(Shape.of(1, 1, 2), 10f, INF);
        Op.Window window = new Op.Window(List.of(1), List.of(0), List.of(1), List.of(1), List.of(1));
        // The last window hangs over the end: 3·10 + 0·∞.
        bits(evaluate(v -> new Op.Convolution(v.get(0), v.get(1), window, 1, 1, 1), x, kernel), INF, INF, Float.NaN);

        Op.Window dilated = new Op.Window(List.of(1), List.of(1), List.of(1), List.of(2), List.of(1));
        // x spread to _ 1 _ 2 _ 3 _, where gaps are skipped: no 0·∞
        bits(
                evaluate(
                        v -> new Op.Convolution(v.get(0), v.get(1), dilated, 1, 1, 1),
                        x,
                        Tensor.of(Shape.of(1, 1, 2), 1f, INF)),
                INF,
                1f,
                INF,
                2f,
                INF,
                3f);

        Tensor two = Tensor.of(Shape.of(1, 2, 2), 1f, 2f, 3f, 4f);
        Op.Window plain = new Op.Window(List.of(1), List.of(0), List.of(0), List.of(1), List.of(1));
        bits(
                evaluate(
                        v -> new Op.Convolution(v.get(0), v.get(1), plain, 2, 1, 1),
                        two,
                        Tensor.of(Shape.of(2, 1, 1), 10f, 100f)),
                10f,
                20f,
                300f,
                400f);
        bits(
                evaluate(
                        v -> new Op.Convolution(v.get(0), v.get(1), plain, 1, 2, 1),
                        Tensor.of(Shape.of(2, 1, 2), 1f, 2f, 3f, 4f),
                        Tensor.of(Shape.of(2, 1, 1), 10f, 100f)),
                10f,
                20f,
                300f,
                400f);
    }

    @Test
    void windows() {
        Op.Window w = new Op.Window(List.of(2), List.of(1), List.of(1), List.of(1), List.of(1));
        Tensor x = floats(5f, 1f, 7f, 7f);
        bits(evaluate(v -> new Op.ReduceWindow(ReduceKind.MAX, v.get(0), List.of(2), w), x), 5f, 7f, 7f);
        bits(evaluate(v -> new Op.ReduceWindow(ReduceKind.SUM, v.get(0), List.of(2), w), x), 5f, 8f, 7f);
        Op.Window overlapping = new Op.Window(List.of(1), List.of(0), List.of(0), List.of(1), List.of(1));
        bits(
                evaluate(
                        v -> new Op.ScatterWindowMax(v.get(0), v.get(1), List.of(2), overlapping),
                        x,
                        floats(1f, 10f, 100f)),
                1f,
                0f,
                110f,
                0f);
        bits(
                evaluate(
                        v -> new Op.ScatterWindowMax(v.get(0), v.get(1), List.of(2), overlapping),
                        floats(NAN, NAN, 0f, -0f),
                        floats(1f, 10f, 100f)),
                1f,
                10f,
                100f,
                0f);
    }

    @Test
    void randomBitsDependOnPositionOnly() {
        Value key = value(Type.i32(4));
        Tensor whole = Interpreter.evaluate(
                new Op.RandomBits(Shape.of(6, 5), 3, key), List.of(Tensor.of(Shape.of(4), 1, 2, 3, 10)));
        Tensor part = Interpreter.evaluate(
                new Op.RandomBits(Shape.of(2, 5), 3, key), List.of(Tensor.of(Shape.of(4), 1, 2, 3, 14)));
        assertThat(part.toInts()).containsExactly(java.util.Arrays.copyOfRange(whole.toInts(), 20, 30));
        Tensor other = Interpreter.evaluate(
                new Op.RandomBits(Shape.of(6, 5), 4, key), List.of(Tensor.of(Shape.of(4), 1, 2, 3, 10)));
        assertThat(other.toInts()).doesNotContain(whole.toInts());
    }

    @Test
    void compositesAndCustomOps() {
        Map<String, Tensor> results = Interpreter.run(EveryOp.graph(), EveryOp.INPUTS, EveryOp.WEIGHTS);
        assertThat(results.keySet()).containsExactly("product", "second result");
        bits(
                results.get("second result"),
                unary(UnaryKind.EXP, EveryOp.INPUTS.get("x")).toFloats());
        bits(evaluate(v -> new Op.Custom(EveryOp.TWICE, v), floats(1f, 2f)), 2f, 4f);
    }

    @Test
    void everyOpRuns() {
        GraphBuilder b = new GraphBuilder("all");
        Graph graph = EveryOp.graph();
        for (Value value : graph.values()) {
            b.output(
                    "y" + value.id(),
                    b.add(Operands.replace(value.op(), v -> b.values().get(v.id()))));
        }
        Map<String, Tensor> results = Interpreter.run(b.build(), EveryOp.INPUTS, EveryOp.WEIGHTS);
        for (Value value : graph.values()) {
            assertThat(results.get("y" + value.id()).type()).isEqualTo(value.type());
        }
    }

    @Test
    void errorsNameWhatIsWrong() {
        GraphBuilder b = new GraphBuilder("g");
        Value x = b.input("tokens", Type.i32(4));
        b.input("unused", Type.i32(4));
        b.output("y", b.add(x, x));
        Graph graph = b.build();
        assertThat(Interpreter.run(graph, Map.of("tokens", Tensor.of(Shape.of(4), 1, 2, 3, 4)), Map.of())
                        .get("y")
                        .toInts())
                .containsExactly(2, 4, 6, 8);
        assertThatThrownBy(() -> Interpreter.run(graph, Map.of("token", Tensor.scalar(1)), Map.of()))
                .isInstanceOf(IngotException.class)
                .hasMessage("graph g: input tokens : i32[4] is missing, given are [token]");
        assertThatThrownBy(() -> Interpreter.run(graph, Map.of("tokens", Tensor.scalar(1)), Map.of()))
                .hasMessage("graph g: input tokens expected i32[4], got i32[]");
        Op exp = new Op.Unary(UnaryKind.EXP, value(Type.f32(2)));
        assertThatThrownBy(() -> Interpreter.evaluate(exp, List.of(floats(1f))))
                .hasMessage("Unary: operand 0 expected f32[2], got f32[1]");
        assertThatThrownBy(() -> Interpreter.evaluate(exp, List.of(floats(1f, 2f)), floats(1f)))
                .hasMessage("Unary: the result is f32[2], got memory for f32[1]");
    }

    @Test
    void treeEqualsTheBinaryCounter() {
        for (int n = 1; n < 40; n++) {
            FixedTree.Rows rows = new FixedTree.Rows();
            List<String> names = new ArrayList<>();
            float[] leaves = RandomFloats.of(n, n);
            for (int i = 0; i < n; i++) {
                rows.push(new float[] {leaves[i]});
                names.add("" + i);
            }
            assertThat(rows.total()[0]).isEqualTo(FixedTree.sum(leaves));
        }
        assertThat(FixedTree.reduce(List.of("0", "1", "2", "3", "4", "5", "6"), (a, b) -> "(" + a + b + ")"))
                .isEqualTo("(((01)(23))((45)6))");
    }

    private static final class RandomFloats {
        static float[] of(int n, long seed) {
            java.util.SplittableRandom random = new java.util.SplittableRandom(seed);
            float[] values = new float[n];
            for (int i = 0; i < n; i++) {
                values[i] = (float) random.nextDouble(-1, 1);
            }
            return values;
        }
    }
}
