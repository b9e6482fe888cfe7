package ingot.nn;

import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Op.CompareKind;
import ingot.ir.Value;

/// Routing in a mixture of experts.
public final class Experts {
    private Experts() {}

    /// What each expert contributes to each row: softmax over all of `scores` [rows, experts], the `chosen` greatest
    /// kept and divided by their sum, the others 0. Of equal ones the first is chosen.
    public static Value shares(GraphBuilder b, Value scores, int chosen) {
        Value p = Softmax.softmax(b, scores);
        Value order = b.add(new Op.ArgSort(p, 1, true)); // expert of each rank
        Value rank = b.add(new Op.ArgSort(order, 1, false)); // rank of each expert
        Value kept = b.select(b.compare(CompareKind.LESS, rank, b.constant(chosen)), p, b.scalarLike(p, 0));
        return b.divide(kept, Rows.spread(b, Rows.sum(b, kept), kept));
    }
}
