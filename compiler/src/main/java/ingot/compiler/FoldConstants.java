package ingot.compiler;

import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Interpreter;
import ingot.ir.Op;
import ingot.ir.Operands;
import ingot.ir.ShapeRules;
import ingot.ir.Tensor;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;

/// Computes by the reference interpreter what depends on constants only.
///
///     broadcast 2 + broadcast 3   →   broadcast 5          [1, 2] · [3, 4]   →   [3, 8]
///
/// Repeated scalars stay repeated scalars; other results are folded up to `LIMIT` elements, larger ones are cheaper to
/// compute than to carry.
final class FoldConstants {
    private static final int LIMIT = 64;

    private FoldConstants() {}

    static Graph apply(Graph graph) {
        return Rewrite.values(graph, (to, value, op) -> folded(to, op));
    }

    private static Value folded(GraphBuilder to, Op op) {
        if (op.operands().isEmpty()) {
            return to.add(op);
        }
        boolean pointwise = switch (op) {
            case Op.Unary _, Op.Binary _, Op.Fma _, Op.Compare _, Op.Select _, Op.Convert _, Op.Bitcast _ -> true;
            case Op _ -> false;
        };
        if (pointwise && op.operands().stream().allMatch(operand -> Simplify.scalar(operand) != null)) {
            List<Tensor> scalars = new ArrayList<>();
            for (Value operand : op.operands()) {
                Tensor scalar = Simplify.scalar(operand);
                if (scalar != null) {
                    scalars.add(scalar);
                }
            }
            GraphBuilder alone = new GraphBuilder("scalar");
            List<Value> constants = scalars.stream().map(alone::constant).toList();
            int[] next = {0};
            Op onScalars = Operands.replace(op, operand -> constants.get(next[0]++));
            return to.broadcast(
                    to.constant(Interpreter.evaluate(onScalars, scalars)),
                    ShapeRules.infer(op).shape());
        }
        boolean foldable = switch (op) {
            case Op.Broadcast _, Op.Composite _, Op.Result _, Op.Custom _ -> false;
            case Op _ -> ShapeRules.infer(op).shape().elements() <= LIMIT;
        };
        List<Tensor> constants = new ArrayList<>();
        for (Value operand : op.operands()) {
            if (operand.op() instanceof Op.Constant constant) {
                constants.add(constant.data());
            }
        }
        return foldable && constants.size() == op.operands().size()
                ? to.constant(Interpreter.evaluate(op, constants))
                : to.add(op);
    }
}
