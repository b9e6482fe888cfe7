package ingot.nn;

import ingot.ir.Function;
import ingot.ir.GraphBuilder;
import ingot.ir.Op.ReduceKind;
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
            Value total = g.reduceKeep(ReduceKind.SUM, dy, -1);
            return List.of(g.subtract(dy, g.multiply(g.exp(y), total)));
        });
        Function logSoftmax = Definition.of("logSoftmax", Map.of(), Definition.types(x), gradient, (g, in) -> {
            Value shifted = g.subtract(in.get(0), g.reduceKeep(ReduceKind.MAX, in.get(0), -1));
            Value total = g.reduceKeep(ReduceKind.SUM, g.exp(shifted), -1);
            return List.of(g.subtract(shifted, g.log(total)));
        });
        return b.call(logSoftmax, List.of(x)).getFirst();
    }

    /// The meaning of `softmax`, for use inside other definitions: one division per row.
    static Value probabilities(GraphBuilder b, Value x) {
        Value e = b.exp(b.subtract(x, b.reduceKeep(ReduceKind.MAX, x, -1)));
        Value total = b.reduceKeep(ReduceKind.SUM, e, -1);
        return b.multiply(e, b.divide(b.scalarLike(x, 1), total));
    }

    /// dx = p·(dp − Σ p·dp)
    private static Value softmaxGradient(GraphBuilder b, Value p, Value dp) {
        return b.multiply(p, b.subtract(dp, b.reduceKeep(ReduceKind.SUM, b.multiply(p, dp), -1)));
    }
}
