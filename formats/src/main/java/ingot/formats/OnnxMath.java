package ingot.formats;

import static ingot.formats.OnnxOperator.one;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Value;
import ingot.nn.Activations;
import java.util.List;
import java.util.Map;
import java.util.function.BinaryOperator;

/// Operators that work element by element.
final class OnnxMath {
    private OnnxMath() {}

    static void addTo(Map<String, OnnxOperator> t) {
        arithmetic(t);
        logic(t);
        activations(t);
        t.put(OnnxExport.DOMAIN + ".Fma", one(c -> c.b().fma(c.in(0), c.in(1), c.in(2))));
        t.put("Clip", one(OnnxMath::clip));
        t.put("Where", one(c -> c.b().select(c.in(0), c.in(1), c.in(2))));
        t.put("Cast", one(c -> cast(c.b(), c.in(0), c.elementType("to", OnnxType.FLOAT))));
        t.put("CastLike", one(c -> cast(c.b(), c.in(0), c.type(1))));
        t.put("BitCast", one(c -> c.b().bitcast(c.in(0), c.dtype("to", OnnxType.FLOAT))));
    }

    private static void arithmetic(Map<String, OnnxOperator> t) {
        t.put("Add", one(c -> binary(c, BinaryKind.ADD)));
        t.put("Sub", one(c -> binary(c, BinaryKind.SUBTRACT)));
        t.put("Mul", one(c -> binary(c, BinaryKind.MULTIPLY)));
        t.put("Div", one(c -> binary(c, BinaryKind.DIVIDE)));
        t.put("Mod", one(OnnxMath::mod));
        t.put("Pow", one(OnnxMath::pow));
        t.put("Max", one(c -> fold(c, c.b()::max)));
        t.put("Min", one(c -> fold(c, c.b()::min)));
        t.put("Sum", one(c -> fold(c, c.b()::add)));
        t.put("Mean", one(c -> c.b().divide(fold(c, c.b()::add), c.scalar(c.in(0), c.inputs()))));
        t.put("Neg", one(c -> c.b().negate(c.in(0))));
        unary(t, "Abs", UnaryKind.ABS);
        unary(t, "Sign", UnaryKind.SIGN);
        unary(t, "Floor", UnaryKind.FLOOR);
        unary(t, "Ceil", UnaryKind.CEIL);
        unary(t, "Round", UnaryKind.ROUND);
        unary(t, "Sqrt", UnaryKind.SQRT);
        unary(t, "Exp", UnaryKind.EXP);
        unary(t, "Log", UnaryKind.LOG);
        unary(t, "Sin", UnaryKind.SIN);
        unary(t, "Cos", UnaryKind.COS);
        unary(t, "Tanh", UnaryKind.TANH);
        unary(t, "Erf", UnaryKind.ERF);
        unary(t, "Not", UnaryKind.NOT);
        unary(t, "BitwiseNot", UnaryKind.NOT);
        t.put("Reciprocal", one(c -> c.b().divide(c.scalar(c.in(0), 1), c.in(0))));
    }

    private static void logic(Map<String, OnnxOperator> t) {
        t.put("And", one(c -> binary(c, BinaryKind.AND)));
        t.put("Or", one(c -> binary(c, BinaryKind.OR)));
        t.put("Xor", one(c -> binary(c, BinaryKind.XOR)));
        t.put("BitwiseAnd", one(c -> binary(c, BinaryKind.AND)));
        t.put("BitwiseOr", one(c -> binary(c, BinaryKind.OR)));
        t.put("BitwiseXor", one(c -> binary(c, BinaryKind.XOR)));
        t.put("BitShift", one(OnnxMath::shift));
        t.put("Equal", one(c -> compare(c, CompareKind.EQUAL)));
        t.put("Greater", one(c -> compare(c, CompareKind.GREATER)));
        t.put("GreaterOrEqual", one(c -> compare(c, CompareKind.GREATER_EQUAL)));
        t.put("Less", one(c -> compare(c, CompareKind.LESS)));
        t.put("LessOrEqual", one(c -> compare(c, CompareKind.LESS_EQUAL)));
        t.put("IsNaN", one(c -> c.b().compare(CompareKind.NOT_EQUAL, c.in(0), c.in(0))));
        t.put("IsInf", one(OnnxMath::isInfinite));
    }

    private static void activations(Map<String, OnnxOperator> t) {
        t.put("Relu", one(c -> relu(c.b(), c.in(0))));
        t.put("Sigmoid", one(c -> Activations.sigmoid(c.b(), c.in(0))));
        t.put("LeakyRelu", one(c -> slope(c.b(), c.in(0), c.scalar(c.in(0), c.number("alpha", 0.01)))));
        t.put("PRelu", one(c -> slope(c.b(), c.in(0), perChannel(c, c.in(1)))));
        t.put("Elu", one(c -> elu(c.b(), c.in(0), c.number("alpha", 1))));
        t.put("Selu", one(c -> {
            Value elu = elu(c.b(), c.in(0), c.number("alpha", 1.67326319217681884765625));
            return c.b().multiply(elu, c.number("gamma", 1.05070102214813232421875));
        }));
        // max(0, x) + min(0, α·(e^(x/α) − 1))
        t.put("Celu", one(c -> {
            double alpha = c.number("alpha", 1);
            return c.b().multiply(elu(c.b(), c.b().multiply(c.in(0), 1 / alpha), 1), alpha);
        }));
        t.put("HardSigmoid", one(c -> hardSigmoid(c, c.number("alpha", 0.2), c.number("beta", 0.5))));
        t.put("HardSwish", one(c -> c.b().multiply(c.in(0), hardSigmoid(c, 1.0 / 6, 0.5))));
        t.put("Softplus", one(c -> softplus(c.b(), c.in(0))));
        t.put("Softsign", one(c -> softsign(c.b(), c.in(0))));
        t.put("Mish", one(c -> c.b().multiply(c.in(0), c.b().tanh(softplus(c.b(), c.in(0))))));
        t.put(
                "Gelu",
                one(c -> c.text("approximate", "none").equals("tanh")
                        ? Activations.geluTanh(c.b(), c.in(0))
                        : Activations.gelu(c.b(), c.in(0))));
        t.put(
                "Swish",
                one(c -> c.b().multiply(
                                c.in(0), Activations.sigmoid(c.b(), c.b().multiply(c.in(0), c.number("alpha", 1))))));
        t.put("ThresholdedRelu", one(c -> {
            Value above = c.b().compare(CompareKind.GREATER, c.in(0), c.scalar(c.in(0), c.number("alpha", 1)));
            return c.b().select(above, c.in(0), c.scalar(c.in(0), 0));
        }));
        t.put("Shrink", one(OnnxMath::shrink));
    }

    private static void unary(Map<String, OnnxOperator> t, String name, UnaryKind kind) {
        t.put(name, one(c -> isExact(kind) && !c.in(0).dtype().isFloating() ? c.in(0) : c.b().unary(kind, c.in(0))));
    }

    /// Changes no integer.
    private static boolean isExact(UnaryKind kind) {
        return kind == UnaryKind.FLOOR || kind == UnaryKind.CEIL || kind == UnaryKind.ROUND;
    }

    /// Old opsets (below 7) align the second operand at `axis`; new ones at the end.
    private static Value binary(OnnxCall c, BinaryKind kind) {
        return c.b().binary(kind, c.in(0), aligned(c));
    }

    private static Value compare(OnnxCall c, CompareKind kind) {
        return c.b().compare(kind, c.in(0), aligned(c));
    }

    private static Value aligned(OnnxCall c) {
        Value b = c.in(1);
        if (!c.flag("broadcast") || !c.hasAttribute("axis")) {
            return b;
        }
        int rank = c.in(0).shape().rank();
        int after = rank - c.axis("axis", 0, rank) - b.shape().rank();
        int[] dims = java.util.Arrays.copyOf(b.shape().dims(), b.shape().rank() + Math.max(0, after));
        java.util.Arrays.fill(dims, b.shape().rank(), dims.length, 1);
        return c.b().reshape(b, dims);
    }

    private static Value fold(OnnxCall c, BinaryOperator<Value> combine) {
        return c.allInputs().stream().reduce(combine).orElseThrow(() -> new IngotException("no inputs"));
    }

    /// `fmod` has the sign of x; else the result has the sign of the divisor.
    private static Value mod(OnnxCall c) {
        GraphBuilder b = c.b();
        Value remainder = b.binary(BinaryKind.REMAINDER, c.in(0), c.in(1));
        if (c.flag("fmod")) {
            return remainder;
        }
        Value zero = c.scalar(remainder, 0);
        Value signs = b.compare(
                CompareKind.NOT_EQUAL,
                b.compare(CompareKind.LESS, remainder, zero),
                b.compare(CompareKind.LESS, b.broadcast(c.in(1), remainder.shape()), zero));
        Value wrong = b.binary(BinaryKind.AND, signs, b.compare(CompareKind.NOT_EQUAL, remainder, zero));
        return b.select(wrong, b.add(remainder, c.in(1)), remainder);
    }

    /// Small whole exponents become products: exact, and differentiable at negative bases.
    private static Value pow(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        Tensor exponent = c.knownIfAny(1);
        if (exponent != null
                && exponent.shape().elements() == 1
                && exponent.shape().rank() <= x.shape().rank()) {
            double value = exponent.type().dtype().isFloating() ? exponent.getFloat(0) : exponent.getLong(0);
            if (value == 1) {
                return x;
            } else if (value == 2) {
                return b.multiply(x, x);
            } else if (value == 3) {
                return b.multiply(b.multiply(x, x), x);
            } else if (value == 0.5 && x.dtype().isFloating()) {
                return b.sqrt(x);
            }
        }
        Value power = b.binary(BinaryKind.POWER, b.convert(x, DType.F32), b.convert(c.in(1), DType.F32));
        return x.dtype().isFloating() ? power : b.convert(b.unary(UnaryKind.ROUND, power), x.dtype());
    }

    private static Value shift(OnnxCall c) {
        boolean left = c.text("direction", "").equals("LEFT");
        GraphBuilder b = c.b();
        Value shifted = b.binary(left ? BinaryKind.SHIFT_LEFT : BinaryKind.SHIFT_RIGHT_UNSIGNED, c.in(0), c.in(1));
        return narrow(b, shifted, c.type(0));
    }

    /// Keeps the bits that the type of the file has, where the graph has a wider one.
    private static Value narrow(GraphBuilder b, Value x, OnnxType type) {
        return switch (type) {
            case UINT16 -> b.binary(BinaryKind.AND, x, b.scalarLike(x, 0xFFFF));
            case UINT32 -> b.binary(BinaryKind.AND, x, b.scalarLike(x, 0xFFFF_FFFFL));
            case INT16 -> {
                Value by = b.scalarLike(x, 16);
                yield b.binary(BinaryKind.SHIFT_RIGHT, b.binary(BinaryKind.SHIFT_LEFT, x, by), by);
            }
            default -> x;
        };
    }

    static Value cast(GraphBuilder b, Value x, OnnxType to) {
        DType dtype = to.dtype("the target of the cast");
        return switch (to) {
            case FLOAT16 -> b.convert(b.convert(x, DType.F16), dtype);
            case BFLOAT16 -> b.convert(b.convert(x, DType.BF16), dtype);
            default -> narrow(b, b.convert(x, dtype), to);
        };
    }

    private static Value isInfinite(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        boolean positive = c.integer("detect_positive", 1) != 0;
        boolean negative = c.integer("detect_negative", 1) != 0;
        Value infinity = c.scalar(x, Double.POSITIVE_INFINITY);
        if (positive && negative) {
            return b.compare(CompareKind.EQUAL, b.unary(UnaryKind.ABS, x), infinity);
        }
        Value which = positive ? infinity : c.scalar(x, Double.NEGATIVE_INFINITY);
        return positive || negative
                ? b.compare(CompareKind.EQUAL, x, which)
                : b.compare(CompareKind.NOT_EQUAL, c.scalar(x, 0), b.fullLike(x, 0));
    }

    private static Value clip(OnnxCall c) {
        GraphBuilder b = c.b();
        Value low = c.optional(1);
        Value high = c.optional(2);
        if (low == null && c.hasAttribute("min")) {
            low = c.scalar(c.in(0), c.number("min", 0));
        }
        if (high == null && c.hasAttribute("max")) {
            high = c.scalar(c.in(0), c.number("max", 0));
        }
        Value clipped = low == null ? c.in(0) : b.max(c.in(0), low);
        return high == null ? clipped : b.min(clipped, high);
    }

    // ---- activations

    static Value relu(GraphBuilder b, Value x) {
        return x.dtype().isFloating() ? Activations.relu(b, x) : b.max(x, b.scalarLike(x, 0));
    }

    /// x where it is not negative, else slope · x.
    private static Value slope(GraphBuilder b, Value x, Value slope) {
        Value negative = b.compare(CompareKind.LESS, x, b.scalarLike(x, 0));
        return b.select(negative, b.multiply(x, slope), x);
    }

    /// A slope [C] of PRelu goes with axis 1 of [N, C, …]: what exporters mean, though the specification aligns at the
    /// end.
    private static Value perChannel(OnnxCall c, Value slope) {
        Shape x = c.in(0).shape();
        boolean channels = slope.shape().rank() == 1
                && x.rank() > 2
                && slope.shape().dim(0) == x.dim(1)
                && slope.shape().dim(0) != x.dim(-1);
        return channels ? c.b().broadcast(slope, x, List.of(1)) : slope;
    }

    /// x where positive, else α·(eˣ − 1).
    static Value elu(GraphBuilder b, Value x, double alpha) {
        Value zero = b.scalarLike(x, 0);
        // the exponential of the positive ones is never used, and must not overflow into a gradient
        Value grown = OnnxElementary.expm1(b, b.min(x, zero));
        return b.select(b.compare(CompareKind.GREATER, x, zero), x, b.multiply(grown, alpha));
    }

    private static Value hardSigmoid(OnnxCall c, double alpha, double beta) {
        return hardSigmoid(c.b(), c.in(0), alpha, beta);
    }

    /// max(0, min(1, α·x + β)).
    static Value hardSigmoid(GraphBuilder b, Value x, double alpha, double beta) {
        Value line = b.add(b.multiply(x, alpha), beta);
        return b.max(b.min(line, b.scalarLike(x, 1)), b.scalarLike(x, 0));
    }

    /// log(1 + eˣ) = max(x, 0) + log(1 + e^−|x|).
    static Value softplus(GraphBuilder b, Value x) {
        Value small = b.exp(b.negate(b.unary(UnaryKind.ABS, x)));
        return b.add(b.max(x, b.scalarLike(x, 0)), OnnxElementary.log1p(b, small));
    }

    static Value softsign(GraphBuilder b, Value x) {
        return b.divide(x, b.add(b.unary(UnaryKind.ABS, x), 1));
    }

    /// x + bias below −λ, x − bias above λ, 0 between.
    private static Value shrink(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        double lambda = c.number("lambd", 0.5);
        Value bias = c.scalar(x, c.number("bias", 0));
        Value low = b.compare(CompareKind.LESS, x, c.scalar(x, -lambda));
        Value high = b.compare(CompareKind.GREATER, x, c.scalar(x, lambda));
        return b.select(low, b.add(x, bias), b.select(high, b.subtract(x, bias), c.scalar(x, 0)));
    }
}
