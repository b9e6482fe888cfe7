package ingot.nn;

import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Value;
import org.jspecify.annotations.Nullable;

/// The last step of a language model: rows [batch · time, width] times a table [vocabulary, width].
final class CausalHead {
    private CausalHead() {}

    /// Σ over rows of the cross entropy times `scale`.
    static Value loss(GraphBuilder b, Value hidden, Value table, @Nullable Value bias, Value targets, Value scale) {
        return b.scope("head", () -> {
            Value rows = b.reshape(targets, -1);
            Value losses = bias == null
                    ? CrossEntropy.linearCrossEntropy(b, hidden, table, rows)
                    : CrossEntropy.crossEntropy(b, Layers.linearTransposed(b, hidden, table, bias), rows); // [rows]
            return b.sum(b.multiply(losses, scale), 0);
        });
    }

    /// [rows, vocabulary].
    static Value logits(GraphBuilder b, Value hidden, Value table, @Nullable Value bias) {
        return b.scope("head", () -> Layers.linearTransposed(b, hidden, table, bias));
    }

    /// Row `last` of each sequence of rows [batch · n, width]: [batch, width].
    static Value last(GraphBuilder b, Value rows, int batch, Value last) {
        int width = rows.shape().dim(1);
        return b.gather(b.reshape(rows, batch, rows.shape().dim(0) / batch, width), last, 1);
    }

    static void check(String model, Value tokens, @Nullable Value targets, int context) {
        if (tokens.shape().dim(1) > context) {
            throw new IngotException(model + ": " + tokens.shape().dim(1) + " tokens, the context holds " + context
                    + "; cut the sequence or raise the context");
        }
        if (targets != null && !targets.type().equals(tokens.type())) {
            throw new IngotException(
                    model + ": targets expected " + tokens.type() + " like the tokens, got " + targets.type());
        }
    }
}
