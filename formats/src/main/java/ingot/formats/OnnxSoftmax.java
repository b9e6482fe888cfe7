package ingot.formats;

import ingot.ir.Graph;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Value;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/// Softmax that is written out, as inside of `attention`: e × 1/Σe with e = exp(x − max x).
final class OnnxSoftmax {
    private OnnxSoftmax() {}

    /// Its probabilities → its scores.
    static Map<Value, Value> in(Graph inner) {
        Map<Value, Value> found = new HashMap<>();
        for (Value value : inner.values()) {
            if (value.op() instanceof Op.Binary(Op.BinaryKind kind, Value e, Value inverse)
                    && kind == Op.BinaryKind.MULTIPLY
                    && e.op() instanceof Op.Unary(Op.UnaryKind exp, Value shifted)
                    && exp == Op.UnaryKind.EXP
                    && shifted.op() instanceof Op.Binary(Op.BinaryKind minus, Value x, Value most)
                    && minus == Op.BinaryKind.SUBTRACT
                    && overRows(most, x).equals(List.of(Op.ReduceKind.MAX))
                    && isInverseSum(inverse, e)) {
                found.put(value, x);
            }
        }
        return found;
    }

    /// The reduction of x over its last axis that `spread` repeats along it, if it is one.
    private static List<Op.ReduceKind> overRows(Value spread, Value x) {
        int last = x.shape().rank() - 1;
        return spread.op() instanceof Op.Broadcast(Value row, Shape _, List<Integer> axes)
                        && axes.equals(IntStream.range(0, last).boxed().toList())
                        && row.op() instanceof Op.Reduce reduce
                        && reduce.x().equals(x)
                        && reduce.axes().equals(List.of(last))
                ? List.of(reduce.kind())
                : List.of();
    }

    private static boolean isInverseSum(Value spread, Value e) {
        int last = e.shape().rank() - 1;
        return spread.op() instanceof Op.Broadcast(Value inverse, Shape _, List<Integer> axes)
                && axes.equals(IntStream.range(0, last).boxed().toList())
                && inverse.op() instanceof Op.Binary(Op.BinaryKind kind, Value one, Value sum)
                && kind == Op.BinaryKind.DIVIDE
                && isOne(one)
                && sum.op() instanceof Op.Reduce reduce
                && reduce.kind() == Op.ReduceKind.SUM
                && reduce.x().equals(e)
                && reduce.axes().equals(List.of(last));
    }

    private static boolean isOne(Value value) {
        return switch (value.op()) {
            case Op.Constant c -> c.data().shape().elements() == 1 && c.data().getFloat(0) == 1;
            case Op.Broadcast x -> isOne(x.x());
            default -> false;
        };
    }
}
