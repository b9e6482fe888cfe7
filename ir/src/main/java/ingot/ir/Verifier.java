package ingot.ir;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;

/// Checks that a graph is well formed; run between passes.
public final class Verifier {
    private final Set<Graph> checked = Collections.newSetFromMap(new IdentityHashMap<>());

    private Verifier() {}

    /// Ids and topological order, every type inferred again, unique names, outputs, and the definitions of all
    /// functions.
    public static void check(Graph graph) {
        new Verifier().graph(graph, "graph " + graph.name());
    }

    private void graph(Graph graph, String where) {
        if (!checked.add(graph)) {
            return;
        }
        Set<String> names = new HashSet<>();
        Set<Op> ops = new HashSet<>();
        List<Value> values = graph.values();
        for (int i = 0; i < values.size(); i++) {
            Value value = values.get(i);
            String scope = graph.scope(value).isEmpty() ? "" : " (" + graph.scope(value) + ")";
            String at = where + ": " + value + scope + ": ";
            if (value.id() != i) {
                throw new IngotException(at + "expected id %" + i);
            }
            for (Value operand : value.op().operands()) {
                if (operand.id() >= i) {
                    throw new IngotException(at + "operand " + operand + " is not defined before");
                }
                if (values.get(operand.id()) != operand) {
                    throw new IngotException(
                            at + "operand " + operand + " : " + operand.type() + " belongs to another graph");
                }
            }
            Type type;
            try {
                type = ShapeRules.infer(value.op());
            } catch (IngotException e) {
                throw new IngotException(at + e.getMessage(), e);
            }
            if (!type.equals(value.type())) {
                throw new IngotException(at + "expected " + type + ", got " + value.type());
            }
            String name = switch (value.op()) {
                case Op.Input x -> x.name();
                case Op.Weight x -> x.name();
                default -> null;
            };
            if (name != null && !names.add(name)) {
                throw new IngotException(at + "the name " + name + " is declared twice");
            }
            if (!ops.add(value.op())) {
                throw new IngotException(at + "the op is there already");
            }
            if (value.op() instanceof Op.Composite composite) {
                function(composite.function(), at);
            }
        }
        if (graph.outputs().isEmpty()) {
            throw new IngotException(where + ": no outputs");
        }
        graph.outputs().forEach((key, value) -> {
            if (value.id() >= values.size() || values.get(value.id()) != value) {
                throw new IngotException(
                        where + ": output " + key + " = " + value + " : " + value.type() + " is not in the graph");
            }
        });
    }

    private void function(Function function, String at) {
        String where = at + "function " + function.name();
        if (checked.contains(function.definition())) {
            return;
        }
        graph(function.definition(), where);
        List<Value> inputs = function.definition().inputs();
        for (int i = 0; i < inputs.size(); i++) {
            String name = ((Op.Input) inputs.get(i).op()).name();
            if (!name.equals(Integer.toString(i))) {
                throw new IngotException(where + ": input " + i + " expected the name " + i + ", got " + name);
            }
        }
        Function gradient = function.gradient();
        if (gradient == null) {
            return;
        }
        List<Type> operands = new ArrayList<>(inputs.stream().map(Value::type).toList());
        operands.addAll(function.resultTypes());
        operands.addAll(function.resultTypes());
        List<Type> got =
                gradient.definition().inputs().stream().map(Value::type).toList();
        if (!got.equals(operands)) {
            throw new IngotException(where + ": its gradient " + gradient.name()
                    + " expected (operands, results, cotangents) " + operands + ", got " + got);
        }
        List<Type> cotangents = inputs.stream()
                .map(Value::type)
                .filter(type -> type.dtype().isFloating())
                .toList();
        if (!gradient.resultTypes().equals(cotangents)) {
            throw new IngotException(where + ": its gradient " + gradient.name() + " expected the results " + cotangents
                    + ", got " + gradient.resultTypes());
        }
        function(gradient, at);
    }
}
