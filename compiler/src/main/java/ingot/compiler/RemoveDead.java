package ingot.compiler;

import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Operands;
import ingot.ir.Value;

/// Drops values that no output depends on; inputs and weights stay, they are the graph's interface.
///
///     %0 = input   %1 = exp %0   %2 = log %0   output %1   →   %0 = input   %1 = exp %0   output %1
final class RemoveDead {
    private RemoveDead() {}

    static Graph apply(Graph graph) {
        boolean[] alive = new boolean[graph.values().size()];
        graph.outputs().values().forEach(value -> alive[value.id()] = true);
        for (Value value : graph.values().reversed()) {
            alive[value.id()] |= value.op() instanceof Op.Input || value.op() instanceof Op.Weight;
            if (alive[value.id()]) {
                value.op().operands().forEach(operand -> alive[operand.id()] = true);
            }
        }
        GraphBuilder to = new GraphBuilder(graph.name());
        Value[] mapped = new Value[alive.length];
        for (Value value : graph.values()) {
            if (alive[value.id()]) {
                to.enterScope(graph.scope(value));
                mapped[value.id()] = to.add(Operands.replace(value.op(), operand -> mapped[operand.id()]));
            }
        }
        graph.outputs().forEach((key, value) -> to.output(key, mapped[value.id()]));
        return to.build();
    }
}
