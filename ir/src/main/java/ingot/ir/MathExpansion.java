package ingot.ir;

import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.UnaryKind;
import java.util.Collections;
import java.util.List;

/// The functions of `ScalarMath` as graph nodes: what a backend without its own code for them compiles.
///
/// The nodes are add, subtract, multiply, divide, fma, compare, select, bitcast and I32 add, subtract, multiply, shift,
/// and, or, xor: free of branches and of float-to-int conversions. Narrow floats are widened first and rounded once at
/// the end.
public final class MathExpansion {
    private final GraphBuilder b;
    private final Shape shape;

    private MathExpansion(GraphBuilder b, Shape shape) {
        this.b = b;
        this.shape = shape;
    }

    /// True for the ops that `expand` takes.
    public static boolean covers(Op op) {
        return switch (op) {
            case Op.Unary x ->
                switch (x.kind()) {
                    case FLOOR, CEIL, ROUND, EXP, LOG, SIN, COS, TANH, ERF -> true;
                    case SIGN -> x.x().dtype().isFloating();
                    case NEGATE, ABS, SQRT, NOT -> false;
                };
            case Op.Binary x -> x.kind() == BinaryKind.POWER;
            case Op.RandomBits _ -> true;
            default -> false;
        };
    }

    /// The value of `op`, whose operands are values of `b`, by simpler ops.
    public static Value expand(GraphBuilder b, Op op) {
        return switch (op) {
            case Op.Unary x
            when covers(x) -> {
                Value result = new MathExpansion(b, x.x().shape()).unary(x.kind(), b.convert(x.x(), DType.F32));
                yield b.convert(result, x.x().dtype());
            }
            case Op.Binary x
            when covers(x) -> {
                Value result = new MathExpansion(b, x.a().shape())
                        .power(b.convert(x.a(), DType.F32), b.convert(x.b(), DType.F32));
                yield b.convert(result, x.a().dtype());
            }
            case Op.RandomBits x -> randomBits(b, x, b.constant(x.stream()));
            default -> throw new IllegalArgumentException("no expansion for " + op);
        };
    }

    /// The value of `op` with the stream as a value, a scalar I32: so that uses of different streams share their code.
    public static Value randomBits(GraphBuilder b, Op.RandomBits op, Value stream) {
        return new MathExpansion(b, op.shape()).randomBits(op, stream);
    }

    /// The bits at index `inner` of row `row`, I32 of one shape, with a finished key of four I32 scalars:
    /// `ScalarMath.randomBits`.
    public static Value randomBits(GraphBuilder b, List<Value> key, Value row, Value inner) {
        return new MathExpansion(b, inner.shape()).randomBits(key, row, inner);
    }

    private Value unary(UnaryKind kind, Value x) {
        return switch (kind) {
            case EXP -> exp(x);
            case LOG -> log(x);
            case TANH -> tanh(x);
            case ERF -> erf(x);
            case SIN -> circular(x, false);
            case COS -> circular(x, true);
            case FLOOR, CEIL, ROUND -> integral(kind, x);
            case SIGN -> select(greater(x, f(0f)), f(1f), select(less(x, f(0f)), f(-1f), x));
            case NEGATE, ABS, SQRT, NOT -> throw new IllegalArgumentException("no expansion for " + kind);
        };
    }

    private Value exp(Value x) {
        return exp(clamp(x), null);
    }

    private Value clamp(Value x) {
        Value c = select(greater(x, f(ScalarMath.EXP_MAX)), f(ScalarMath.EXP_MAX), x);
        return select(less(c, f(ScalarMath.EXP_MIN)), f(ScalarMath.EXP_MIN), c);
    }

    private Value exp(Value c, @org.jspecify.annotations.Nullable Value low) {
        float magic = ScalarMath.ROUNDER + 254f;
        Value t = fma(c, f(ScalarMath.LOG2_E), f(magic));
        Value n = sub(t, f(magic));
        Value r = fma(n, f(-ScalarMath.LN2), c);
        r = fma(n, f(-ScalarMath.LN2_LOW), r);
        if (low != null) {
            r = add(r, low);
        }
        Value p = fma(fma(horner(ScalarMath.EXP, r), r, f(1f)), r, f(1f));
        Value i = bits(t);
        Value half = b.binary(BinaryKind.SHIFT_RIGHT, i, i(1));
        Value first = real(shiftLeft(half, 23));
        Value second = real(shiftLeft(sub(i, half), 23));
        return mul(mul(p, first), second);
    }

    /// The parts of x > 0: x = (1 + fraction) · 2^exponent, 1 + fraction from √½ to √2.
    private record Parts(Value fraction, Value mantissa, Value exponent) {}

    private Parts parts(Value x) {
        Value small = less(x, f(ScalarMath.LEAST_NORMAL));
        Value bits = bits(select(small, mul(x, f(0x1p23f)), x));
        Value exponent = b.binary(BinaryKind.SHIFT_RIGHT, sub(bits, i(ScalarMath.SQRT_HALF)), i(23));
        Value mantissa = real(sub(bits, shiftLeft(exponent, 23)));
        Value k = sub(real(add(exponent, i(Float.floatToRawIntBits(ScalarMath.ROUNDER)))), f(ScalarMath.ROUNDER));
        k = add(k, select(small, f(-23f), f(0f)));
        return new Parts(sub(mantissa, f(1f)), mantissa, k);
    }

    private Value log(Value x) {
        Parts parts = parts(x);
        Value fraction = parts.fraction();
        Value r = fma(horner(ScalarMath.LOG, fraction), mul(fraction, fraction), fraction);
        r = fma(parts.exponent(), f(ScalarMath.LN2), fma(parts.exponent(), f(ScalarMath.LN2_LOW), r));
        r = select(less(x, f(Float.POSITIVE_INFINITY)), r, x);
        r = select(less(x, f(0f)), f(Float.NaN), r);
        return select(equal(x, f(0f)), f(Float.NEGATIVE_INFINITY), r);
    }

    private Value tanh(Value x) {
        Value a = magnitude(x);
        a = select(greater(a, f(ScalarMath.TANH_MAX)), f(ScalarMath.TANH_MAX), a);
        Value y = add(a, a);
        float magic = ScalarMath.ROUNDER + 126f;
        Value t = fma(y, f(ScalarMath.LOG2_E), f(magic));
        Value n = sub(t, f(magic));
        Value r = fma(n, f(-ScalarMath.LN2), y);
        r = fma(n, f(-ScalarMath.LN2_LOW), r);
        Value scale = real(shiftLeft(bits(t), 23));
        Value p = fma(horner(ScalarMath.EXP, r), mul(r, r), r);
        Value h = fma(scale, p, sub(scale, f(0.5f)));
        Value d = add(h, f(1f));
        Value lost = sub(h, sub(d, f(1f)));
        Value v = b.divide(h, d);
        Value minus = b.negate(v);
        Value remainder = fma(minus, lost, fma(minus, d, h));
        v = fma(remainder, sub(f(1f), v), v);
        return withSign(v, x);
    }

    private Value erf(Value x) {
        Value a = magnitude(x);
        a = select(greater(a, f(ScalarMath.ERF_MAX)), f(ScalarMath.ERF_MAX), a);
        Value small = fma(horner(ScalarMath.ERF_SMALL, mul(a, a)), a, a);
        Value p = horner(ScalarMath.ERF_LARGE, a);
        p = mul(p, p);
        p = mul(p, p);
        Value large = fma(b.negate(p), p, f(1f));
        return withSign(select(less(a, f(ScalarMath.ERF_SPLIT)), small, large), x);
    }

    private Value circular(Value x, boolean cosineOf) {
        Value a = magnitude(x);
        Value t = fma(a, f(ScalarMath.TWO_OVER_PI), f(ScalarMath.ROUNDER));
        Value n = sub(t, f(ScalarMath.ROUNDER));
        Value r = fma(n, f(-ScalarMath.PIO2), a);
        r = fma(n, f(-ScalarMath.PIO2_MIDDLE), r);
        r = fma(n, f(-ScalarMath.PIO2_LOW), r);
        Value quadrant = bits(t);
        if (cosineOf) {
            quadrant = add(quadrant, i(1));
        }
        Value z = mul(r, r);
        Value sine = fma(mul(horner(ScalarMath.SIN, z), z), r, r);
        Value cosine = horner(ScalarMath.COS, z);
        Value even = b.compare(CompareKind.EQUAL, and(quadrant, i(1)), i(0));
        Value v = bits(select(even, sine, cosine));
        v = xor(v, shiftLeft(and(quadrant, i(2)), 30));
        if (!cosineOf) {
            v = xor(v, sign(x));
        }
        return select(b.compare(CompareKind.LESS_EQUAL, a, f(ScalarMath.ANGLE_MAX)), real(v), f(Float.NaN));
    }

    private Value power(Value base, Value exponent) {
        Value x = magnitude(base);
        Parts parts = parts(x);
        Value m = parts.mantissa();
        Value k = parts.exponent();

        Value g = add(m, f(1f));
        Value gLow = sub(m, sub(g, f(1f)));
        Value inverse = b.divide(f(1f), g);
        Value q = mul(parts.fraction(), inverse);
        Value minus = b.negate(q);
        Value qLow = mul(fma(minus, gLow, fma(minus, g, parts.fraction())), inverse);

        Value z = mul(q, q);
        Value zLow = fma(q, q, b.negate(z));
        Value cube = mul(z, q);
        Value cubeLow = add(fma(z, q, b.negate(cube)), fma(zLow, q, mul(mul(f(3f), z), qLow)));
        Value third = mul(cube, f(ScalarMath.ATANH_CUBIC));
        Value low = add(fma(cube, f(ScalarMath.ATANH_CUBIC), b.negate(third)), mul(cubeLow, f(ScalarMath.ATANH_CUBIC)));
        low = fma(mul(cube, z), horner(ScalarMath.ATANH, z), low);
        low = add(low, add(qLow, qLow));
        Value twice = add(q, q);
        Value u = add(twice, third);
        low = add(low, sub(third, sub(u, twice)));

        Value whole = mul(k, f(ScalarMath.LN2_SHORT));
        Value sum = add(whole, u);
        low = add(sub(u, sub(sum, whole)), fma(k, f(ScalarMath.LN2_REST), low));
        Value hi = add(sum, low);
        Value lo = sub(low, sub(hi, sum));
        Value finite = less(x, f(Float.POSITIVE_INFINITY));
        hi = select(finite, hi, x);
        hi = select(equal(x, f(0f)), f(Float.NEGATIVE_INFINITY), hi);

        Value product = mul(exponent, hi);
        Value rest = fma(exponent, lo, fma(exponent, hi, b.negate(product)));
        Value c = clamp(product);
        Value v = exp(c, select(equal(c, product), rest, f(0f)));

        Value magnitude = magnitude(exponent);
        Value integer = isInteger(magnitude);
        Value odd = and(integer, b.unary(UnaryKind.NOT, isInteger(mul(magnitude, f(0.5f)))));
        v = real(xor(bits(v), select(odd, sign(base), i(0))));
        Value fractional = b.unary(UnaryKind.NOT, integer);
        v = select(and(and(less(base, f(0f)), finite), fractional), f(Float.NaN), v);
        v = select(or(equal(base, f(1f)), equal(exponent, f(0f))), f(1f), v);
        return select(and(equal(x, f(1f)), equal(magnitude, f(Float.POSITIVE_INFINITY))), f(1f), v);
    }

    private Value isInteger(Value x) {
        Value large = b.compare(CompareKind.GREATER_EQUAL, x, f(0x1p23f));
        return or(large, equal(sub(add(x, f(0x1p23f)), f(0x1p23f)), x));
    }

    /// Rounding to an integer by adding and subtracting 2²³, then one step in the direction wanted; x itself from 2²³
    /// on.
    private Value integral(UnaryKind kind, Value x) {
        Value a = magnitude(x);
        Value near = withSign(sub(add(a, f(0x1p23f)), f(0x1p23f)), x);
        Value r = switch (kind) {
            case FLOOR -> select(greater(near, x), sub(near, f(1f)), near);
            case CEIL -> select(less(near, x), add(near, f(1f)), near);
            default -> near;
        };
        return select(less(a, f(0x1p23f)), withSign(r, x), x);
    }

    private Value randomBits(Op.RandomBits op, Value stream) {
        MathExpansion scalar = new MathExpansion(b, Shape.SCALAR);
        Value[] key = scalar.pcgRound(
                scalar.pcgStart(scalar.word(op.key(), 0)),
                scalar.pcgStart(scalar.word(op.key(), 1)),
                scalar.pcgStart(scalar.word(op.key(), 2)),
                scalar.pcgStart(stream));
        for (int i = 0; i < 4; i++) {
            key[i] = scalar.fold(key[i]);
        }
        key = scalar.pcgRound(key[0], key[1], key[2], key[3]);

        Value row = scalar.word(op.key(), 3);
        Value inner = i(0);
        if (shape.rank() > 0) {
            row = add(spread(row), b.iota(new Type(DType.I32, shape), 0));
            long stride = 1;
            for (int axis = shape.rank() - 1; axis > 0; axis--) {
                Value index = b.iota(new Type(DType.I32, shape), axis);
                inner = add(inner, stride == 1 ? index : mul(index, i((int) stride)));
                stride *= shape.dim(axis);
            }
        }
        return randomBits(List.of(key), row, inner);
    }

    private Value randomBits(List<Value> key, Value row, Value inner) {
        MathExpansion scalar = new MathExpansion(b, Shape.SCALAR);
        Value x = pcgStart(add(spread(key.get(0)), inner));
        Value y = pcgStart(add(spread(key.get(1)), row));
        Value[] hash = pcgRound(x, y, spread(scalar.pcgStart(key.get(2))), spread(scalar.pcgStart(key.get(3))));
        return add(fold(hash[0]), mul(fold(hash[1]), fold(hash[3])));
    }

    private Value word(Value key, int index) {
        Value one = b.add(new Op.Slice(key, List.of(index), List.of(index + 1), List.of(1)));
        return b.reshape(one, Shape.SCALAR);
    }

    private Value pcgStart(Value x) {
        return add(mul(x, i(ScalarMath.PCG_FACTOR)), i(ScalarMath.PCG_TERM));
    }

    private Value[] pcgRound(Value x, Value y, Value z, Value w) {
        x = add(x, mul(y, w));
        y = add(y, mul(z, x));
        z = add(z, mul(x, y));
        w = add(w, mul(y, z));
        return new Value[] {x, y, z, w};
    }

    private Value fold(Value x) {
        return xor(x, b.binary(BinaryKind.SHIFT_RIGHT_UNSIGNED, x, i(16)));
    }

    // ---- short names

    private Value horner(float[] c, Value x) {
        Value p = f(c[c.length - 1]);
        for (int i = c.length - 2; i >= 0; i--) {
            p = fma(p, x, f(c[i]));
        }
        return p;
    }

    private Value f(float value) {
        return spread(b.constant(value));
    }

    private Value i(int value) {
        return spread(b.constant(value));
    }

    private Value spread(Value scalar) {
        return b.broadcast(scalar, shape, Collections.emptyList());
    }

    private Value bits(Value x) {
        return b.bitcast(x, DType.I32);
    }

    private Value real(Value bits) {
        return b.bitcast(bits, DType.F32);
    }

    private Value sign(Value x) {
        return and(bits(x), i(ScalarMath.SIGN));
    }

    private Value magnitude(Value x) {
        return real(and(bits(x), i(ScalarMath.MAGNITUDE)));
    }

    private Value withSign(Value magnitude, Value x) {
        return real(or(bits(magnitude), sign(x)));
    }

    private Value shiftLeft(Value x, int by) {
        return b.binary(BinaryKind.SHIFT_LEFT, x, i(by));
    }

    private Value add(Value x, Value y) {
        return b.add(x, y);
    }

    private Value sub(Value x, Value y) {
        return b.subtract(x, y);
    }

    private Value mul(Value x, Value y) {
        return b.multiply(x, y);
    }

    private Value fma(Value x, Value y, Value z) {
        return b.fma(x, y, z);
    }

    private Value and(Value x, Value y) {
        return b.binary(BinaryKind.AND, x, y);
    }

    private Value or(Value x, Value y) {
        return b.binary(BinaryKind.OR, x, y);
    }

    private Value xor(Value x, Value y) {
        return b.binary(BinaryKind.XOR, x, y);
    }

    private Value less(Value x, Value y) {
        return b.compare(CompareKind.LESS, x, y);
    }

    private Value greater(Value x, Value y) {
        return b.compare(CompareKind.GREATER, x, y);
    }

    private Value equal(Value x, Value y) {
        return b.compare(CompareKind.EQUAL, x, y);
    }

    private Value select(Value condition, Value x, Value y) {
        return b.select(condition, x, y);
    }
}
