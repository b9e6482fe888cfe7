package ingot.ir;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.SplittableRandom;
import java.util.function.DoubleUnaryOperator;
import org.junit.jupiter.api.Test;

/// Accuracy against double precision, and the special cases of docs/arithmetic.md.
class ScalarMathTest {
    interface Fp32 {
        float apply(float x);
    }

    @Test
    void exp() {
        accurate("exp", ScalarMath::exp, StrictMath::exp, 1.4);
        assertThat(ScalarMath.exp(0f)).isEqualTo(1f);
        assertThat(ScalarMath.exp(-0f)).isEqualTo(1f);
        assertThat(ScalarMath.exp(88.8f)).isEqualTo(Float.POSITIVE_INFINITY);
        assertThat(ScalarMath.exp(-100f)).isBetween(Float.MIN_VALUE, Float.MIN_NORMAL);
        assertThat(ScalarMath.exp(Float.NEGATIVE_INFINITY)).isEqualTo(0f);
    }

    @Test
    void log() {
        accurate("log", ScalarMath::log, StrictMath::log, 1.02);
        assertThat(ScalarMath.log(1f)).isEqualTo(0f);
        assertThat(ScalarMath.log(0f)).isEqualTo(Float.NEGATIVE_INFINITY);
        assertThat(ScalarMath.log(-0f)).isEqualTo(Float.NEGATIVE_INFINITY);
        assertThat(ScalarMath.log(-Float.MIN_VALUE)).isNaN();
        assertThat(ScalarMath.log(Float.POSITIVE_INFINITY)).isEqualTo(Float.POSITIVE_INFINITY);
    }

    @Test
    void tanh() {
        accurate("tanh", ScalarMath::tanh, StrictMath::tanh, 1.8);
        assertThat(ScalarMath.tanh(Float.POSITIVE_INFINITY)).isEqualTo(1f);
        assertThat(ScalarMath.tanh(Float.NEGATIVE_INFINITY)).isEqualTo(-1f);
        assertThat(Float.floatToRawIntBits(ScalarMath.tanh(-0f))).isEqualTo(ScalarMath.SIGN);
        for (float x = 8.5f; x < 9.5f; x = Math.nextUp(x)) {
            assertThat(ScalarMath.tanh(x)).isLessThanOrEqualTo(1f);
        }
    }

    @Test
    void erf() {
        accurate("erf", ScalarMath::erf, ScalarMathTest::erf, 1.8);
        assertThat(ScalarMath.erf(Float.NEGATIVE_INFINITY)).isEqualTo(-1f);
        assertThat(Float.floatToRawIntBits(ScalarMath.erf(-0f))).isEqualTo(ScalarMath.SIGN);
    }

    @Test
    void sinAndCos() {
        accurate("sin", ScalarMath::sin, x -> Math.abs(x) > 0x1p20 ? Double.NaN : StrictMath.sin(x), 1.9);
        accurate("cos", ScalarMath::cos, x -> Math.abs(x) > 0x1p20 ? Double.NaN : StrictMath.cos(x), 1.9);
        assertThat(Float.floatToRawIntBits(ScalarMath.sin(-0f))).isEqualTo(ScalarMath.SIGN);
        assertThat(Float.floatToRawIntBits(ScalarMath.sin(0f))).isZero();
        assertThat(ScalarMath.sin(Float.POSITIVE_INFINITY)).isNaN();
        assertThat(ScalarMath.cos(0f)).isEqualTo(1f);
    }

    @Test
    void power() {
        SplittableRandom random = new SplittableRandom(3);
        for (int i = 0; i < 1_000_000; i++) {
            float a =
                    i % 2 == 0 ? (float) random.nextDouble(0.5, 2) : Float.intBitsToFloat(random.nextInt(0x7F80_0000));
            float b = (float) (random.nextDouble(-103, 89) / StrictMath.log(a));
            close("power", a + "^" + b, ScalarMath.power(a, b), StrictMath.pow(a, b), 2);
        }
        for (float a : MathExpansionTest.SPECIAL) {
            for (float b : MathExpansionTest.SPECIAL) {
                // C99 and Java differ for |a| = 1 only.
                double expected = a == 1f || Math.abs(a) == 1f && Float.isInfinite(b) ? 1 : StrictMath.pow(a, b);
                close("power", a + "^" + b, ScalarMath.power(a, b), expected, 2);
            }
        }
    }

    @Test
    void pcg4dOfThePaper() {
        // The published function, written with long arithmetic.
        long[] v = {1, 2, 3, 4};
        pcg4d(v);
        assertThat(ScalarMath.randomKey(1, 2, 3, 4)).containsExactly((int) v[0], (int) v[1], (int) v[2], (int) v[3]);
        v[0] += 10;
        v[1] += 20;
        pcg4d(v);
        assertThat(ScalarMath.randomBits(ScalarMath.randomKey(1, 2, 3, 4), 20, 10))
                .isEqualTo((int) v[0]);
    }

    private static void pcg4d(long[] v) {
        long mask = 0xFFFF_FFFFL;
        for (int i = 0; i < 4; i++) {
            v[i] = ((v[i] & mask) * 1664525L + 1013904223L) & mask;
        }
        for (int round = 0; round < 2; round++) {
            v[0] = (v[0] + v[1] * v[3]) & mask;
            v[1] = (v[1] + v[2] * v[0]) & mask;
            v[2] = (v[2] + v[0] * v[1]) & mask;
            v[3] = (v[3] + v[1] * v[2]) & mask;
            for (int i = 0; round == 0 && i < 4; i++) {
                v[i] ^= v[i] >>> 16;
            }
        }
    }

    private static void accurate(String name, Fp32 f, DoubleUnaryOperator reference, double ulps) {
        for (long bits = 0; bits < 1L << 32; bits += 4099) {
            float x = Float.intBitsToFloat((int) bits);
            close(name, x, f.apply(x), reference.applyAsDouble(x), ulps);
        }
        SplittableRandom random = new SplittableRandom(1);
        for (int i = 0; i < 500_000; i++) {
            float x = (float) random.nextDouble(-12, 12);
            close(name, x, f.apply(x), reference.applyAsDouble(x), ulps);
        }
        for (float x : MathExpansionTest.SPECIAL) {
            close(name, x, f.apply(x), reference.applyAsDouble(x), ulps);
        }
    }

    private static void close(String name, Object x, float got, double expected, double ulps) {
        float rounded = (float) expected;
        boolean same = Float.floatToIntBits(got) == Float.floatToIntBits(rounded);
        double distance = Math.abs(got - expected) / Math.ulp(Math.abs(rounded));
        boolean nearOverflow = Math.abs(rounded) == Float.POSITIVE_INFINITY && Math.abs(got) == Float.MAX_VALUE
                || Math.abs(got) == Float.POSITIVE_INFINITY && Math.abs(rounded) == Float.MAX_VALUE;
        // An ulp below a power of two is half as large; measure in the smaller one.
        if (Math.getExponent(expected) < Math.getExponent(rounded)) {
            distance *= 2;
        }
        if (!same && !nearOverflow && !(distance <= ulps)) {
            throw new AssertionError(
                    name + "(" + x + ") = " + expected + ", got " + got + ", " + distance + " ulp apart");
        }
    }

    /// erf x = 2/√π · e^(−x²) · Σ 2ⁿ x^(2n+1) / (2n+1)‼, all terms of one sign.
    private static double erf(double x) {
        if (Double.isNaN(x) || Math.abs(x) > 6) {
            return Math.signum(x);
        }
        double term = x;
        double sum = x;
        for (int n = 1; Math.abs(term) > Math.abs(sum) * 1e-18 && n < 300; n++) {
            term *= 2 * x * x / (2 * n + 1);
            sum += term;
        }
        return 2 / Math.sqrt(Math.PI) * Math.exp(-x * x) * sum;
    }
}
