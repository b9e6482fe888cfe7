package ingot.nn;

import ingot.ir.Function;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.CompareKind;
import ingot.ir.Shape;
import ingot.ir.Value;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Nonlinearities, element by element, and dropout.
public final class Activations {
    /// 2u = x·(2√(2/π) + 2√(2/π)·0.044715·x²)
    private static final double GELU_LINE = 2 * Math.sqrt(2 / Math.PI);

    private static final double GELU_CUBE = GELU_LINE * 0.044715;

    private Activations() {}

    /// x where positive, else 0; derivative 0 at 0; a NaN stays one.
    public static Value relu(GraphBuilder b, Value x) {
        Value zero = b.scalarLike(x, 0);
        return b.select(b.compare(CompareKind.LESS_EQUAL, x, zero), zero, x);
    }

    /// x between 0 and 6, else the nearer of both; derivative 0 at both ends.
    public static Value relu6(GraphBuilder b, Value x) {
        Value y = relu(b, x);
        Value six = b.scalarLike(x, 6);
        return b.select(b.compare(CompareKind.GREATER_EQUAL, y, six), six, y);
    }

    /// 1 / (1 + e⁻ˣ).
    public static Value sigmoid(GraphBuilder b, Value x) {
        // σ′ = σ·(1 − σ): differentiating the definition would give 0·∞ where e⁻ˣ overflows
        Function gradient = Definition.of("sigmoidGradient", Map.of(), Definition.types(x, x, x), null, (g, in) -> {
            Value y = in.get(1);
            return List.of(g.multiply(in.get(2), g.multiply(y, g.subtract(g.scalarLike(y, 1), y))));
        });
        Function sigmoid = Definition.of("sigmoid", Map.of(), Definition.types(x), gradient, (g, in) -> {
            Value one = g.scalarLike(x(in), 1);
            return List.of(g.divide(one, g.add(one, g.exp(g.negate(x(in))))));
        });
        return b.call(sigmoid, List.of(x)).getFirst();
    }

    /// x · sigmoid(x), also called swish.
    public static Value silu(GraphBuilder b, Value x) {
        return b.multiply(x, sigmoid(b, x));
    }

    /// x · Φ(x) by the error function (Hendrycks and Gimpel 2016).
    public static Value gelu(GraphBuilder b, Value x) {
        Function gelu = Definition.of("gelu", Map.of(), Definition.types(x), null, (g, in) -> {
            Value half = g.multiply(x(in), 0.5);
            return List.of(g.fma(half, g.erf(g.multiply(x(in), Math.sqrt(0.5))), half));
        });
        return b.call(gelu, List.of(x)).getFirst();
    }

    /// x · Φ(x) with Φ approximated by ½·(1 + tanh(√(2/π)·(x + 0.044715·x³))): GPT-2's `gelu_new`.
    ///
    /// ½·(1 + tanh u) = 1 / (1 + e⁻²ᵘ), which costs one exponential and loses nothing where u is far below 0.
    public static Value geluTanh(GraphBuilder b, Value x) {
        // y = x·s, s = σ(2u), dy/dx = s + x·s·(1 − s)·2u′; by the definition it would be 0·∞ where e⁻²ᵘ overflows
        Function gradient = Definition.of("geluTanhGradient", Map.of(), Definition.types(x, x, x), null, (g, in) -> {
            Value s = geluGate(g, x(in));
            Value slope = g.fma(
                    g.multiply(x(in), x(in)),
                    g.scalarLike(x(in), 3 * GELU_CUBE),
                    g.scalarLike(x(in), GELU_LINE)); // 2u′
            Value bend = g.multiply(g.subtract(g.scalarLike(s, 1), s), slope);
            return List.of(g.multiply(in.get(2), g.fma(in.get(1), bend, s)));
        });
        Function gelu = Definition.of(
                "geluTanh",
                Map.of(),
                Definition.types(x),
                gradient,
                (g, in) -> List.of(g.multiply(x(in), geluGate(g, x(in)))));
        return b.call(gelu, List.of(x)).getFirst();
    }

    private static Value geluGate(GraphBuilder b, Value x) {
        Value factor = b.fma(b.multiply(x, x), b.scalarLike(x, -GELU_CUBE), b.scalarLike(x, -GELU_LINE));
        Value one = b.scalarLike(x, 1);
        return b.divide(one, b.add(one, b.exp(b.multiply(x, factor))));
    }

    /// Zeroes each element with probability `rate` and scales the others by 1 / (1 − rate); the identity without
    /// `random`.
    ///
    /// Axis 0 of x carries `batch` rows as its outermost factor: each batch row draws by its own index, so a slice of
    /// the batch gets the same mask as in the whole.
    public static Value dropout(GraphBuilder b, Value x, double rate, @Nullable Randomness random, int batch) {
        if (random == null || rate == 0) {
            return x;
        }
        Value keep = keep(b, random.key(), random.nextStream(), x.shape(), rate, batch);
        return b.select(keep, b.multiply(x, 1 / (1 - rate)), b.scalarLike(x, 0));
    }

    /// True (BOOL, of `shape`) with probability 1 − rate.
    static Value keep(GraphBuilder b, Value key, int stream, Shape shape, double rate, int batch) {
        int each = Math.toIntExact(shape.elements() / Math.max(1, batch));
        Value bits = b.reshape(b.add(new Op.RandomBits(Shape.of(batch, each), stream, key)), shape);
        Value top24 = b.binary(BinaryKind.SHIFT_RIGHT_UNSIGNED, bits, b.constant(8)); // uniform in [0, 2²⁴)
        return b.compare(CompareKind.GREATER_EQUAL, top24, b.constant((int) Math.round(rate * (1 << 24))));
    }

    private static Value x(List<Value> operands) {
        return operands.getFirst();
    }
}
