package ingot.ir;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.UnaryKind;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// The expansion, run op by op, gives the bits of `ScalarMath`.
class MathExpansionTest {
    private static final int CHUNK = 1 << 15;

    @ParameterizedTest
    @EnumSource(
            value = UnaryKind.class,
            names = {"FLOOR", "CEIL", "ROUND", "SIGN", "EXP", "LOG", "SIN", "COS", "TANH", "ERF"})
    void unary(UnaryKind kind) {
        int step = switch (kind) {
            case EXP, LOG, TANH -> 1031;
            default -> 8209;
        };
        Graph expanded = expansion(kind, Type.f32(CHUNK));
        for (long bits = 0; bits < 1L << 32; bits += (long) step * CHUNK) {
            float[] x = new float[CHUNK];
            for (int i = 0; i < CHUNK; i++) {
                x[i] = Float.intBitsToFloat((int) (bits + (long) i * step));
            }
            sameAsInterpreter(kind, expanded, Tensor.of(Shape.of(CHUNK), x));
        }
        float[] special = new float[CHUNK];
        for (int i = 0; i < CHUNK; i++) {
            special[i] = SPECIAL[i % SPECIAL.length];
        }
        sameAsInterpreter(kind, expanded, Tensor.of(Shape.of(CHUNK), special));
    }

    @ParameterizedTest
    @EnumSource(
            value = UnaryKind.class,
            names = {"FLOOR", "SIGN", "EXP", "SIN", "TANH"})
    void narrowFloatsAreWidenedAndRoundedOnce(UnaryKind kind) {
        for (DType dtype : List.of(DType.BF16, DType.F16)) {
            Type type = new Type(dtype, Shape.of(1 << 16));
            Tensor all = Tensor.zeros(type);
            for (int i = 0; i < 1 << 16; i++) {
                all.data().set(java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED, 2L * i, (short) i);
            }
            sameAsInterpreter(kind, expansion(kind, type), all);
        }
    }

    @Test
    void power() {
        int n = SPECIAL.length * SPECIAL.length;
        float[] a = new float[n];
        float[] b = new float[n];
        for (int i = 0; i < n; i++) {
            a[i] = SPECIAL[i / SPECIAL.length];
            b[i] = SPECIAL[i % SPECIAL.length];
        }
        samePower(a, b);
        SplittableRandom random = new SplittableRandom(7);
        for (int round = 0; round < 20; round++) {
            a = new float[CHUNK];
            b = new float[CHUNK];
            for (int i = 0; i < CHUNK; i++) {
                a[i] = Float.intBitsToFloat(random.nextInt());
                b[i] = round % 2 == 0
                        ? Float.intBitsToFloat(random.nextInt())
                        : (float) (random.nextDouble(-103, 89) / Math.log(Math.abs(a[i])));
            }
            samePower(a, b);
        }
    }

    private static void samePower(float[] a, float[] b) {
        GraphBuilder builder = new GraphBuilder("power");
        Value x = builder.input("x", Type.f32(a.length));
        Value y = builder.input("y", Type.f32(a.length));
        builder.output("z", MathExpansion.expand(builder, new Op.Binary(BinaryKind.POWER, x, y)));
        Shape shape = Shape.of(a.length);
        float[] z = Interpreter.run(
                        builder.build(), Map.of("x", Tensor.of(shape, a), "y", Tensor.of(shape, b)), Map.of())
                .get("z")
                .toFloats();
        for (int i = 0; i < z.length; i++) {
            float expected = ScalarMath.power(a[i], b[i]);
            assertThat(Float.floatToIntBits(z[i]))
                    .as("power(%s, %s) = %s, expansion %s", a[i], b[i], expected, z[i])
                    .isEqualTo(Float.floatToIntBits(expected));
        }
    }

    @Test
    void randomBits() {
        for (Shape shape : List.of(Shape.SCALAR, Shape.of(5), Shape.of(3, 4), Shape.of(2, 3, 5), Shape.of(0, 3))) {
            GraphBuilder b = new GraphBuilder("bits");
            Value key = b.input("key", Type.i32(4));
            Op op = new Op.RandomBits(shape, 9, key);
            b.output("op", b.add(op));
            b.output("expanded", MathExpansion.expand(b, op));
            Map<String, Tensor> results =
                    Interpreter.run(b.build(), Map.of("key", Tensor.of(Shape.of(4), -5, 77, 3, 1_000_000)), Map.of());
            assertThat(results.get("expanded").toInts())
                    .isEqualTo(results.get("op").toInts());
        }
    }

    @Test
    void onlyCoveredOpsExpand() {
        GraphBuilder b = new GraphBuilder("g");
        Value x = b.input("x", Type.f32(3));
        Op sqrt = new Op.Unary(UnaryKind.SQRT, x);
        assertThat(MathExpansion.covers(sqrt)).isFalse();
        assertThatThrownBy(() -> MathExpansion.expand(b, sqrt)).isInstanceOf(IllegalArgumentException.class);
    }

    static final float[] SPECIAL = {
        0f,
        -0f,
        1f,
        -1f,
        2f,
        -2f,
        3f,
        -3f,
        0.5f,
        -0.5f,
        1.5f,
        2.5f,
        -2.5f,
        -0.7f,
        0.3f, //
        Float.NaN,
        Float.intBitsToFloat(0x7FFFFFFF),
        Float.intBitsToFloat(0xFF800001),
        Float.POSITIVE_INFINITY,
        Float.NEGATIVE_INFINITY,
        Float.MAX_VALUE,
        -Float.MAX_VALUE, //
        Float.MIN_VALUE,
        -Float.MIN_VALUE,
        Float.MIN_NORMAL,
        -Float.MIN_NORMAL,
        0x1.fffffcp-127f, //
        0x1p23f,
        0x1p23f + 1f,
        -0x1p23f - 1f,
        0x1p22f + 0.5f,
        0x1p24f,
        0x1p25f - 2f,
        0.99999994f,
        -0.99999994f,
        1.0000001f, //
        88.72284f,
        89f,
        90f,
        -87.33655f,
        -103.97208f,
        -104f,
        -105f,
        8.6643400f,
        9f,
        1.1f,
        3.95f,
        4f, //
        0x1p20f,
        -0x1p20f,
        0x1.00002p20f,
        1e10f
    };

    private static Graph expansion(UnaryKind kind, Type type) {
        GraphBuilder b = new GraphBuilder("expansion");
        Value x = b.input("x", type);
        Op op = new Op.Unary(kind, x);
        assertThat(MathExpansion.covers(op)).isTrue();
        b.output("y", MathExpansion.expand(b, op));
        for (Value value : b.values()) {
            assertThat(MathExpansion.covers(value.op()))
                    .as("%s is simpler", value.op())
                    .isFalse();
        }
        return b.build();
    }

    private static void sameAsInterpreter(UnaryKind kind, Graph expanded, Tensor x) {
        Tensor got = Interpreter.run(expanded, Map.of("x", x), Map.of()).get("y");
        Tensor expected =
                Interpreter.evaluate(new Op.Unary(kind, expanded.inputs().getFirst()), List.of(x));
        if (!got.sameBits(expected)) {
            for (int i = 0; i < got.shape().elements(); i++) {
                assertThat(Float.floatToIntBits(got.getFloat(i)))
                        .as("%s(%s) = %s, expansion %s", kind, x.getFloat(i), expected.getFloat(i), got.getFloat(i))
                        .isEqualTo(Float.floatToIntBits(expected.getFloat(i)));
            }
        }
    }
}
