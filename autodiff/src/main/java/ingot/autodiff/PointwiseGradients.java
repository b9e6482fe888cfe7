package ingot.autodiff;

import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Value;

/// Derivatives of the elementwise ops; `y` is the op's value, `dy` its cotangent.
final class PointwiseGradients {
    private PointwiseGradients() {}

    static void unary(GraphBuilder b, Op.Unary op, Value y, Value dy, Cotangents flow) {
        Value x = op.x();
        switch (op.kind()) {
            // (−a)′ = −1
            case NEGATE -> flow.add(x, () -> b.negate(dy));
            // |a|′ = sign a, 0 at 0
            case ABS -> flow.add(x, () -> times(b, dy, b.unary(UnaryKind.SIGN, x)));
            // (√a)′ = 1 / (2√a)
            case SQRT -> flow.add(x, () -> b.divide(b.multiply(dy, 0.5), y));
            // (eᵃ)′ = eᵃ
            case EXP -> flow.add(x, () -> times(b, dy, y));
            // (ln a)′ = 1 / a
            case LOG -> flow.add(x, () -> b.divide(dy, x));
            // (sin a)′ = cos a
            case SIN -> flow.add(x, () -> times(b, dy, b.unary(UnaryKind.COS, x)));
            // (cos a)′ = −sin a
            case COS -> flow.add(x, () -> b.negate(times(b, dy, b.unary(UnaryKind.SIN, x))));
            // (tanh a)′ = 1 − tanh² a
            case TANH -> flow.add(x, () -> times(b, dy, b.subtract(b.scalarLike(y, 1), b.multiply(y, y))));
            // (erf a)′ = 2/√π · e^(−a²)
            case ERF ->
                flow.add(x, () -> times(b, dy, b.multiply(b.exp(b.negate(b.multiply(x, x))), 2 / Math.sqrt(Math.PI))));
            // Steps: derivative 0 wherever there is one.
            case SIGN, FLOOR, CEIL, ROUND, NOT -> {}
        }
    }

    static void binary(GraphBuilder b, Op.Binary op, Value y, Value dy, Cotangents flow) {
        Value x = op.a();
        Value z = op.b();
        switch (op.kind()) {
            case ADD -> {
                flow.add(x, dy);
                flow.add(z, dy);
            }
            case SUBTRACT -> {
                flow.add(x, dy);
                flow.add(z, () -> b.negate(dy));
            }
            // ∂(ab)/∂a = b
            case MULTIPLY -> {
                flow.add(x, () -> times(b, dy, z));
                flow.add(z, () -> times(b, dy, x));
            }
            // ∂(a/b)/∂a = 1/b, ∂(a/b)/∂b = −(a/b)/b
            case DIVIDE -> {
                flow.add(x, () -> b.divide(dy, z));
                flow.add(z, () -> b.negate(b.multiply(b.divide(dy, z), y)));
            }
            // a % b = a − trunc(a/b)·b, and trunc(a/b) = (a − a % b) / b, an integer up to rounding
            case REMAINDER -> {
                flow.add(x, dy);
                flow.add(z, () -> b.negate(times(b, dy, b.unary(UnaryKind.ROUND, b.divide(b.subtract(x, y), z)))));
            }
            // All to the smaller (larger); equal operands get half each
            case MIN -> {
                flow.add(x, () -> chosen(b, CompareKind.LESS, x, z, dy));
                flow.add(z, () -> chosen(b, CompareKind.LESS, z, x, dy));
            }
            case MAX -> {
                flow.add(x, () -> chosen(b, CompareKind.GREATER, x, z, dy));
                flow.add(z, () -> chosen(b, CompareKind.GREATER, z, x, dy));
            }
            // ∂aᵇ/∂a = b·aᵇ⁻¹, ∂aᵇ/∂b = aᵇ·ln a for a > 0, else taken as 0
            case POWER -> {
                flow.add(x, () -> times(b, dy, b.multiply(z, b.binary(BinaryKind.POWER, x, b.add(z, -1)))));
                flow.add(
                        z,
                        () -> b.select(
                                b.compare(CompareKind.GREATER, x, b.scalarLike(x, 0)),
                                times(b, dy, b.multiply(y, b.log(x))),
                                b.scalarLike(x, 0)));
            }
            // Integers and booleans only
            case AND, OR, XOR, SHIFT_LEFT, SHIFT_RIGHT, SHIFT_RIGHT_UNSIGNED -> {}
        }
    }

    /// ∂(ab + c) = b, a, 1
    static void fma(GraphBuilder b, Op.Fma op, Value dy, Cotangents flow) {
        flow.add(op.a(), () -> times(b, dy, op.b()));
        flow.add(op.b(), () -> times(b, dy, op.a()));
        flow.add(op.c(), dy);
    }

    /// The chosen operand gets dy, the other 0.
    static void select(GraphBuilder b, Op.Select op, Value dy, Cotangents flow) {
        flow.add(op.a(), () -> b.select(op.condition(), dy, b.scalarLike(dy, 0)));
        flow.add(op.b(), () -> b.select(op.condition(), b.scalarLike(dy, 0), dy));
    }

    /// Between floats: the identity, rounded to the operand's type. An integer on either side ends the flow.
    static void convert(GraphBuilder b, Op.Convert op, Value dy, Cotangents flow) {
        if (op.to().isFloating()) {
            flow.add(op.x(), () -> b.convert(dy, op.x().dtype()));
        }
    }

    /// dy · x, without multiplying by 1.
    static Value times(GraphBuilder b, Value dy, Value x) {
        return Gradients.isOne(dy) ? x : Gradients.isOne(x) ? dy : b.multiply(dy, x);
    }

    private static Value chosen(GraphBuilder b, CompareKind wins, Value mine, Value other, Value dy) {
        Value tied = b.select(b.compare(CompareKind.EQUAL, mine, other), b.multiply(dy, 0.5), b.scalarLike(dy, 0));
        return b.select(b.compare(wins, mine, other), dy, tied);
    }
}
