package ingot.nn;

import ingot.ir.GraphBuilder;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Value;
import java.util.List;
import java.util.stream.IntStream;

/// Reductions along the last axis and the way back: the two moves of a kernel over rows.
final class Rows {
    private Rows() {}

    /// [outer…, length] → [outer…].
    static Value sum(GraphBuilder b, Value x) {
        return b.reduce(ReduceKind.SUM, x, -1);
    }

    static Value max(GraphBuilder b, Value x) {
        return b.reduce(ReduceKind.MAX, x, -1);
    }

    static Value mean(GraphBuilder b, Value x) {
        return b.multiply(sum(b, x), 1.0 / x.shape().dim(-1));
    }

    /// [outer…] → the shape of `like`, [outer…, length].
    static Value spread(GraphBuilder b, Value row, Value like) {
        List<Integer> outer =
                IntStream.range(0, like.shape().rank() - 1).boxed().toList();
        return b.broadcast(row, like.shape(), outer);
    }
}
