package ingot.compiler;

import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Operands;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Rebuilds a graph value by value: the loop under every pass.
///
/// The results of a composite are looked up, not copied: a rule may replace a composite by several values.
final class Rewrite {
    private final GraphBuilder to;
    private final @Nullable Value[] mapped;
    private final Map<Value, List<Value>> results = new HashMap<>(); // of replaced composites, by their old value

    private Rewrite(Graph graph) {
        to = new GraphBuilder(graph.name());
        mapped = new Value[graph.values().size()];
    }

    /// What becomes of one value.
    interface Rule {
        /// The replacement of `value`; `op` is its op with operands of the new graph, which is also what `to.add(op)`
        /// would keep.
        Value apply(GraphBuilder to, Value value, Op op);
    }

    /// What becomes of a composite: all its results.
    interface CompositeRule {
        /// The replacements of the results of `value`, whose op with new operands is `op`; null keeps it.
        @Nullable
        List<Value> apply(GraphBuilder to, Value value, Op.Composite op);
    }

    static Graph values(Graph graph, Rule rule) {
        return run(graph, rule, (to, value, op) -> null, new ArrayList<>());
    }

    static Graph composites(Graph graph, CompositeRule rule) {
        return composites(graph, rule, new ArrayList<>());
    }

    /// `origins` receives, for each value of the new graph, the id of the old value it was made for.
    static Graph composites(Graph graph, CompositeRule rule, List<Integer> origins) {
        return run(graph, (to, value, op) -> to.add(op), rule, origins);
    }

    private static Graph run(Graph graph, Rule rule, CompositeRule composites, List<Integer> origins) {
        Rewrite rewrite = new Rewrite(graph);
        for (Value value : graph.values()) {
            rewrite.to.enterScope(graph.scope(value));
            rewrite.mapped[value.id()] = rewrite.replacement(value, rule, composites);
            while (origins.size() < rewrite.to.values().size()) {
                origins.add(value.id());
            }
        }
        graph.outputs().forEach((key, value) -> rewrite.to.output(key, rewrite.at(value)));
        return rewrite.to.build();
    }

    private Value replacement(Value value, Rule rule, CompositeRule composites) {
        if (value.op() instanceof Op.Result result) {
            List<Value> replaced = results.get(result.composite());
            if (replaced != null) {
                return replaced.get(result.index());
            }
        }
        Op op = Operands.replace(value.op(), this::at);
        if (op instanceof Op.Composite composite) {
            List<Value> found = composites.apply(to, value, composite);
            if (found != null) {
                results.put(value, found);
                return found.getFirst();
            }
        }
        return rule.apply(to, value, op);
    }

    private Value at(Value old) {
        Value found = mapped[old.id()];
        if (found == null) {
            throw new IllegalStateException(old + " is used before it is defined");
        }
        return found;
    }
}
