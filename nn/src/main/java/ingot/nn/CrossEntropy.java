package ingot.nn;

import ingot.ir.DType;
import ingot.ir.Function;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op.CompareKind;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.List;
import java.util.Map;

/// −log of the probability that softmax gives the target, per row.
public final class CrossEntropy {
    /// A target that is left out: its row has loss 0 and no gradient.
    public static final int IGNORED = -100;

    private CrossEntropy() {}

    /// logits [rows, classes], targets I32 [rows] → [rows].
    public static Value crossEntropy(GraphBuilder b, Value logits, Value targets) {
        check("crossEntropy", logits, targets);
        Value rows = targets;
        Type perRow = new Type(DType.F32, rows.shape());
        Function gradient = Definition.of(
                "crossEntropyGradient",
                Map.of(),
                List.of(logits.type(), rows.type(), perRow, perRow),
                null,
                (g, in) -> List.of(logitsGradient(g, in.get(0), in.get(1), in.get(3))));
        Function crossEntropy = Definition.of(
                "crossEntropy",
                Map.of(),
                Definition.types(logits, rows),
                gradient,
                (g, in) -> List.of(losses(g, in.get(0), in.get(1))));
        return b.call(crossEntropy, List.of(logits, targets)).getFirst();
    }

    /// The cross entropy of logits = hidden [rows, width] · weightᵀ [classes, width], as one function that a backend
    /// may compute in tiles of rows so that the logits never exist as a whole.
    ///
    /// Its gradient `linearCrossEntropyGradient` computes the logits again; its results are the cotangents of hidden
    /// and weight.
    public static Value linearCrossEntropy(GraphBuilder b, Value hidden, Value weight, Value targets) {
        check("linearCrossEntropy", hidden, targets);
        Type perRow = new Type(DType.F32, targets.shape());
        Function gradient = Definition.of(
                "linearCrossEntropyGradient",
                Map.of(),
                List.of(hidden.type(), weight.type(), targets.type(), perRow, perRow),
                null,
                (g, in) -> {
                    Value logits = Layers.linearTransposed(g, in.get(0), in.get(1), null); // [rows, classes]
                    Value dLogits = logitsGradient(g, logits, in.get(2), in.get(4));
                    Value dHidden = g.dot(dLogits, in.get(1), List.of(), List.of(), List.of(1), List.of(0));
                    Value dWeight = g.dot(dLogits, in.get(0), List.of(), List.of(), List.of(0), List.of(0));
                    return List.of(dHidden, dWeight);
                });
        Function function = Definition.of(
                "linearCrossEntropy",
                Map.of(),
                Definition.types(hidden, weight, targets),
                gradient,
                (g, in) -> List.of(losses(g, Layers.linearTransposed(g, in.get(0), in.get(1), null), in.get(2))));
        return b.call(function, List.of(hidden, weight, targets)).getFirst();
    }

    /// log Σ e^(x − max) − (x[target] − max); the target is picked by a sum over the row in which all others are 0.
    private static Value losses(GraphBuilder b, Value logits, Value targets) {
        Value shifted = b.subtract(logits, Rows.spread(b, Rows.max(b, logits), logits));
        Value total = Rows.sum(b, b.exp(shifted));
        Value picked = Rows.sum(b, b.select(isTarget(b, logits, targets), shifted, b.scalarLike(logits, 0)));
        return b.select(counted(b, targets), b.subtract(b.log(total), picked), b.scalarLike(logits, 0));
    }

    /// (softmax − [class = target]) · dloss, 0 in ignored rows.
    private static Value logitsGradient(GraphBuilder b, Value logits, Value targets, Value dLoss) {
        Value p = Softmax.probabilities(b, logits);
        Value zero = b.scalarLike(logits, 0);
        Value factor = b.select(counted(b, targets), dLoss, zero); // [rows]
        Value difference = b.select(isTarget(b, logits, targets), b.add(p, -1), p);
        return b.multiply(difference, Rows.spread(b, factor, logits));
    }

    private static Value isTarget(GraphBuilder b, Value logits, Value targets) {
        Value classes = b.iota(new Type(DType.I32, logits.shape()), 1);
        return b.compare(CompareKind.EQUAL, classes, Rows.spread(b, targets, logits));
    }

    private static Value counted(GraphBuilder b, Value targets) {
        return b.compare(CompareKind.NOT_EQUAL, targets, b.constant(IGNORED));
    }

    private static void check(String what, Value rows, Value targets) {
        if (rows.shape().rank() != 2
                || targets.dtype() != DType.I32
                || targets.shape().rank() != 1
                || targets.shape().dim(0) != rows.shape().dim(0)) {
            throw new IngotException(what + ": expected [rows, …] and i32[rows], got " + rows.type() + " at " + rows
                    + " and " + targets.type() + " at " + targets);
        }
    }
}
