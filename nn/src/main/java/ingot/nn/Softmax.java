package ingot.nn;

import ingot.ir.Function;
import ingot.ir.GraphBuilder;
import ingot.ir.Value;
import java.util.List;
import java.util.Map;

/// Softmax and its logarithm along the last axis.
public final class Softmax {
    private Softmax() {}

    /// eˣ / Σ eˣ, with the maximum subtracted first so that nothing overflows.
    public static Value softmax(GraphBuilder b, Value x) {
        Function gradient = Definition.of(
                "softmaxGradient",
                Map.of(),
                Definition.types(x, x, x),
                null,
                (g, in) -> List.of(softmaxGradient(g, in.get(1), in.get(2))));
        Function softmax = Definition.of(
                "softmax", Map.of(), Definition.types(x), gradient, (g, in) -> List.of(probabilities(g, in.get(0))));
        return b.call(softmax, List.of(x)).getFirst();
    }

    /// x − max − log Σ e^(x − max).
    public static Value logSoftmax(GraphBuilder b, Value x) {
        Function gradient = Definition.of("logSoftmaxGradient", Map.of(), Definition.types(x, x, x), null, (g, in) -> {
            Value y = in.get(1);
            Value dy = in.get(2);
            // dx = dy − softmax · Σ dy, and softmax = eʸ
            return List.of(g.subtract(dy, g.multiply(g.exp(y), Rows.spread(g, Rows.sum(g, dy), y))));
        });
        Function logSoftmax = Definition.of("logSoftmax", Map.of(), Definition.types(x), gradient, (g, in) -> {
            Value shifted = g.subtract(in.get(0), Rows.spread(g, Rows.max(g, in.get(0)), in.get(0)));
            Value total = g.log(Rows.sum(g, g.exp(shifted)));
            return List.of(g.subtract(shifted, Rows.spread(g, total, shifted)));
        });
        return b.call(logSoftmax, List.of(x)).getFirst();
    }

    /// The meaning of `softmax`, for use inside other definitions: one division per row.
    static Value probabilities(GraphBuilder b, Value x) {
        Value e = b.exp(b.subtract(x, Rows.spread(b, Rows.max(b, x), x)));
        Value inverse = b.divide(b.scalarLike(x, 1), Rows.sum(b, e));
        return b.multiply(e, Rows.spread(b, inverse, x));
    }

    /// dx = p·(dp − Σ p·dp)
    private static Value softmaxGradient(GraphBuilder b, Value p, Value dp) {
        return b.multiply(p, b.subtract(dp, Rows.spread(b, Rows.sum(b, b.multiply(p, dp)), p)));
    }
}
