package ingot.ir;

import static java.lang.Float.floatToRawIntBits;
import static java.lang.Float.intBitsToFloat;
import static java.lang.Math.fma;

/// The elementary functions of the numeric contract (docs/arithmetic.md), one fp32 element at a time.
///
/// Only fma, add, subtract, multiply, divide, comparisons and bit operations, in a fixed order, so that a vector of any
/// width, an interpreter and a compiler give equal bits. `MathExpansion` is the same as graph nodes. Polynomials:
/// minimax (Remez), coefficients rounded to fp32 one after the other, lowest power first, the rest fitted again.
public final class ScalarMath {
    static final int SIGN = 0x8000_0000;
    static final int MAGNITUDE = 0x7FFF_FFFF;

    /// 1.5 · 2²³: adding it rounds |x| < 2²² to an integer, which is then found in the low bits.
    static final float ROUNDER = 0x1.8p23f;

    static final float LOG2_E = 0x1.715476p0f;

    /// ln 2 = LN2 + LN2_LOW.
    static final float LN2 = 0x1.62e43p-1f;

    static final float LN2_LOW = -0x1.05c61p-29f;

    /// q of eʳ = 1 + r + r²·q(r), |r| ≤ ln 2 / 2; lowest power first.
    static final float[] EXP = {0.5f, 0x1.555492p-3f, 0x1.555534p-5f, 0x1.123f86p-7f, 0x1.6ce44ap-10f};

    static final float EXP_MAX = 89f;
    static final float EXP_MIN = -104f;

    /// p of log(1 + f) = f + f²·p(f), 1 + f from √½ to √2.
    static final float[] LOG = {
        -0x1.fffff8p-2f,
        0x1.555608p-2f,
        -0x1.0004f8p-2f,
        0x1.994876p-3f,
        -0x1.53ada2p-3f, //
        0x1.28faecp-3f,
        -0x1.19ea62p-3f,
        0x1.c70b6cp-4f,
        -0x1.5474d4p-5f
    };

    /// Bits of √½.
    static final int SQRT_HALF = 0x3F35_04F3;

    static final float LEAST_NORMAL = 0x1p-126f;

    /// From here on tanh rounds to 1 within an ulp.
    static final float TANH_MAX = 0x1.154246p3f;

    /// s of erf(x) = x + x·s(x²), |x| < ERF_SPLIT.
    static final float[] ERF_SMALL = {
        0x1.06eba8p-3f,
        -0x1.812732p-2f,
        0x1.ce2a4p-4f,
        -0x1.b7c74ep-6f, //
        0x1.527d2p-8f,
        -0x1.990e22p-11f,
        0x1.2caa6ep-14f
    };

    /// p of erf(x) = 1 − p(x)⁸, ERF_SPLIT ≤ x ≤ ERF_MAX.
    static final float[] ERF_LARGE = {
        0x1.002406p0f,
        -0x1.26416ep-3f,
        -0x1.070af2p-4f,
        -0x1.1087f6p-7f, //
        0x1.678004p-7f,
        -0x1.c7eadp-10f,
        0x1.1f11d2p-19f,
        0x1.a23a9ep-17f
    };

    static final float ERF_SPLIT = 1.1f;
    static final float ERF_MAX = 3.95f;

    static final float TWO_OVER_PI = 0x1.45f306p-1f;

    /// π / 2 = PIO2 + PIO2_MIDDLE + PIO2_LOW.
    static final float PIO2 = 0x1.921fb6p0f;

    static final float PIO2_MIDDLE = -0x1.777a5cp-25f;
    static final float PIO2_LOW = -0x1.ee59dap-50f;

    /// S of sin r = r + r³·S(r²).
    static final float[] SIN = {-0x1.555556p-3f, 0x1.111148p-7f, -0x1.a02868p-13f, 0x1.6f8c5p-19f};

    /// C of cos r = C(r²).
    static final float[] COS = {1f, -0.5f, 0x1.55552ep-5f, -0x1.6bfe92p-10f, 0x1.96c43ap-16f};

    /// Sine and cosine of a larger angle are NaN.
    static final float ANGLE_MAX = 0x1p20f;

    /// R of log((1 + q) / (1 − q)) = 2q + ⅔q³ + q⁵·R(q²); ⅔ is ATANH_CUBIC.
    static final float[] ATANH = {0x1.999c26p-2f, 0x1.23d3eep-2f, 0x1.f135ccp-3f};

    static final float ATANH_CUBIC = 0x1.555554p-1f;

    /// ln 2 in parts of which the first times any exponent is exact.
    static final float LN2_SHORT = 0x1.62e4p-1f;

    static final float LN2_REST = 0x1.7f7d1cp-20f;

    static final int PCG_FACTOR = 1664525;
    static final int PCG_TERM = 1013904223;

    private ScalarMath() {}

    /// c₀ + x·(c₁ + x·(c₂ + …)) by Horner's rule with fma.
    private static float horner(float[] c, float x) {
        float p = c[c.length - 1];
        for (int i = c.length - 2; i >= 0; i--) {
            p = fma(p, x, c[i]);
        }
        return p;
    }

    /// eˣ.
    public static float exp(float x) {
        float c = x > EXP_MAX ? EXP_MAX : x;
        c = c < EXP_MIN ? EXP_MIN : c;
        return exp(c, 0f);
    }

    /// e^(c + low), EXP_MIN ≤ c ≤ EXP_MAX, |low| below an ulp of c.
    private static float exp(float c, float low) {
        float magic = ROUNDER + 254f;
        float t = fma(c, LOG2_E, magic);
        float n = t - magic;
        float r = fma(n, -LN2, c);
        r = fma(n, -LN2_LOW, r);
        r = r + low; // adding 0 changes no result, so `MathExpansion` leaves it out of eˣ
        float p = fma(fma(horner(EXP, r), r, 1f), r, 1f);
        // 2ⁿ in two factors, as n reaches from −150 to 128; the low bits of t are n + 2 · 127.
        int i = floatToRawIntBits(t);
        int half = i >> 1;
        return p * intBitsToFloat(half << 23) * intBitsToFloat((i - half) << 23);
    }

    /// ln x; −∞ for ±0, NaN below.
    public static float log(float x) {
        boolean small = x < LEAST_NORMAL;
        float scaled = small ? x * 0x1p23f : x;
        int bits = floatToRawIntBits(scaled);
        int exponent = (bits - SQRT_HALF) >> 23;
        float f = intBitsToFloat(bits - (exponent << 23)) - 1f;
        float k = intBitsToFloat(exponent + floatToRawIntBits(ROUNDER)) - ROUNDER + (small ? -23f : 0f);
        float r = fma(horner(LOG, f), f * f, f);
        r = fma(k, LN2, fma(k, LN2_LOW, r));
        r = x < Float.POSITIVE_INFINITY ? r : x;
        r = x < 0f ? Float.NaN : r;
        return x == 0f ? Float.NEGATIVE_INFINITY : r;
    }

    /// With y = 2|x| and h = (eʸ − 1) / 2: tanh |x| = h / (h + 1), where eʸ − 1 = 2ⁿ·(eʳ − 1) + (2ⁿ − 1) does not
    /// cancel.
    public static float tanh(float x) {
        float a = intBitsToFloat(floatToRawIntBits(x) & MAGNITUDE);
        a = a > TANH_MAX ? TANH_MAX : a;
        float y = a + a;
        float magic = ROUNDER + 126f;
        float t = fma(y, LOG2_E, magic);
        float n = t - magic;
        float r = fma(n, -LN2, y);
        r = fma(n, -LN2_LOW, r);
        float scale = intBitsToFloat(floatToRawIntBits(t) << 23); // 2ⁿ⁻¹
        float p = fma(horner(EXP, r), r * r, r); // eʳ − 1
        float h = fma(scale, p, scale - 0.5f);
        float d = h + 1f;
        float lost = h - (d - 1f);
        float v = h / d;
        // One Newton step with the exact remainder h − v·(d + lost); 1 / d = 1 − v.
        float remainder = fma(-v, lost, fma(-v, d, h));
        v = fma(remainder, 1f - v, v);
        return intBitsToFloat(floatToRawIntBits(v) | (floatToRawIntBits(x) & SIGN));
    }

    /// The error function 2/√π · ∫₀ˣ e^(−t²) dt.
    public static float erf(float x) {
        float a = intBitsToFloat(floatToRawIntBits(x) & MAGNITUDE);
        a = a > ERF_MAX ? ERF_MAX : a;
        float small = fma(horner(ERF_SMALL, a * a), a, a);
        float p = horner(ERF_LARGE, a);
        p = p * p;
        p = p * p;
        float large = fma(-p, p, 1f);
        float v = a < ERF_SPLIT ? small : large;
        return intBitsToFloat(floatToRawIntBits(v) | (floatToRawIntBits(x) & SIGN));
    }

    /// sin x for |x| ≤ ANGLE_MAX, else NaN.
    public static float sin(float x) {
        return circular(x, 0, floatToRawIntBits(x) & SIGN);
    }

    /// cos x for |x| ≤ ANGLE_MAX, else NaN.
    public static float cos(float x) {
        return circular(x, 1, 0);
    }

    /// sin(|x| + quarters · π/2) with `sign` flipped in.
    private static float circular(float x, int quarters, int sign) {
        float a = intBitsToFloat(floatToRawIntBits(x) & MAGNITUDE);
        float t = fma(a, TWO_OVER_PI, ROUNDER);
        float n = t - ROUNDER;
        float r = fma(n, -PIO2, a); // exact
        r = fma(n, -PIO2_MIDDLE, r);
        r = fma(n, -PIO2_LOW, r);
        int quadrant = floatToRawIntBits(t) + quarters;
        float z = r * r;
        float sine = fma(horner(SIN, z) * z, r, r);
        float cosine = horner(COS, z);
        float v = (quadrant & 1) == 0 ? sine : cosine;
        v = intBitsToFloat(floatToRawIntBits(v) ^ ((quadrant & 2) << 30) ^ sign);
        return a <= ANGLE_MAX ? v : Float.NaN;
    }

    /// aᵇ with the special cases of C99: 1 for b = ±0 and for a = 1; the sign of a for odd b; NaN for finite a < 0 and
    /// fractional b.
    ///
    /// log |a| is hi + lo, about 40 bits, because its error is multiplied by b.
    public static float power(float a, float b) {
        float x = intBitsToFloat(floatToRawIntBits(a) & MAGNITUDE);
        boolean small = x < LEAST_NORMAL;
        int bits = floatToRawIntBits(small ? x * 0x1p23f : x);
        int exponent = (bits - SQRT_HALF) >> 23;
        float m = intBitsToFloat(bits - (exponent << 23));
        float k = intBitsToFloat(exponent + floatToRawIntBits(ROUNDER)) - ROUNDER + (small ? -23f : 0f);

        // q + qLow = (m − 1) / (m + 1)
        float f = m - 1f;
        float g = m + 1f;
        float gLow = m - (g - 1f);
        float inverse = 1f / g;
        float q = f * inverse;
        float qLow = fma(-q, gLow, fma(-q, g, f)) * inverse;

        // log m = 2q + ⅔q³ + q⁵·R, the first two terms in two parts
        float z = q * q;
        float zLow = fma(q, q, -z);
        float cube = z * q;
        float cubeLow = fma(z, q, -cube) + fma(zLow, q, 3f * z * qLow);
        float third = cube * ATANH_CUBIC;
        float low = fma(cube, ATANH_CUBIC, -third) + cubeLow * ATANH_CUBIC;
        low = fma(cube * z, horner(ATANH, z), low);
        low = low + (qLow + qLow);
        float twice = q + q;
        float u = twice + third;
        low = low + (third - (u - twice));

        float whole = k * LN2_SHORT; // exact
        float sum = whole + u;
        low = (u - (sum - whole)) + fma(k, LN2_REST, low);
        float hi = sum + low;
        float lo = low - (hi - sum);
        hi = x < Float.POSITIVE_INFINITY ? hi : x;
        hi = x == 0f ? Float.NEGATIVE_INFINITY : hi;

        float product = b * hi;
        float rest = fma(b, lo, fma(b, hi, -product));
        float c = product > EXP_MAX ? EXP_MAX : product;
        c = c < EXP_MIN ? EXP_MIN : c;
        float v = exp(c, c == product ? rest : 0f);

        float magnitude = intBitsToFloat(floatToRawIntBits(b) & MAGNITUDE);
        boolean integer = isInteger(magnitude);
        boolean odd = integer & !isInteger(magnitude * 0.5f);
        v = intBitsToFloat(floatToRawIntBits(v) ^ (odd ? floatToRawIntBits(a) & SIGN : 0));
        v = a < 0f & x < Float.POSITIVE_INFINITY & !integer ? Float.NaN : v;
        v = a == 1f | b == 0f ? 1f : v;
        return x == 1f & magnitude == Float.POSITIVE_INFINITY ? 1f : v;
    }

    /// For x ≥ 0; true for +∞.
    private static boolean isInteger(float x) {
        return x >= 0x1p23f | (x + 0x1p23f) - 0x1p23f == x;
    }

    /// What the random bits of one tensor have in common: the first round of the hash pcg4d.
    ///
    /// M. Jarzynski and M. Olano, Hash Functions for GPU Rendering, Journal of Computer Graphics Techniques 9(3), 2020.
    public static int[] randomKey(int seedLow, int seedHigh, int step, int stream) {
        int x = seedLow * PCG_FACTOR + PCG_TERM;
        int y = seedHigh * PCG_FACTOR + PCG_TERM;
        int z = step * PCG_FACTOR + PCG_TERM;
        int w = stream * PCG_FACTOR + PCG_TERM;
        x += y * w;
        y += z * x;
        z += x * y;
        w += y * z;
        x ^= x >>> 16;
        y ^= y >>> 16;
        z ^= z >>> 16;
        w ^= w >>> 16;
        x += y * w;
        y += z * x;
        z += x * y;
        w += y * z;
        return new int[] {x, y, z, w};
    }

    /// The bits at index `inner` of row `row`: the first word of the hash of (key + position).
    public static int randomBits(int[] key, int row, int inner) {
        int x = (key[0] + inner) * PCG_FACTOR + PCG_TERM;
        int y = (key[1] + row) * PCG_FACTOR + PCG_TERM;
        int z = key[2] * PCG_FACTOR + PCG_TERM;
        int w = key[3] * PCG_FACTOR + PCG_TERM;
        x += y * w;
        y += z * x;
        z += x * y;
        w += y * z;
        x ^= x >>> 16;
        y ^= y >>> 16;
        w ^= w >>> 16;
        return x + y * w;
    }
}
