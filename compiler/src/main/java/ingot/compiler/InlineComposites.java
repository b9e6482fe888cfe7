package ingot.compiler;

import ingot.ir.Graph;
import ingot.ir.Op;
import java.util.Set;

/// Replaces composites that the backend has no kernel for by their definitions, from the outside in.
///
///     %2 = softmax(%1)   →   %2 = max %1   %3 = broadcast %2   %4 = %1 − %3   …
final class InlineComposites {
    private InlineComposites() {}

    /// `kept`: names of the composites that stay.
    static Graph apply(Graph graph, Set<String> kept) {
        Graph next = graph;
        while (next.values().stream()
                .anyMatch(value -> value.op() instanceof Op.Composite composite
                        && !kept.contains(composite.function().name()))) {
            next = Rewrite.composites(
                    next,
                    (to, value, op) -> kept.contains(op.function().name())
                            ? null
                            : to.inline(op.function().definition(), op.operands()));
        }
        return next;
    }
}
