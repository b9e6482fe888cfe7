package ingot.ir;

import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/// A named, attributed group of ops: a backend may have a kernel for the name; if not, `definition` is inlined.
///
/// The definition's inputs are the operands in order (named `0`, `1`, …), its outputs the results in order. It has no
/// weights.
/// `gradient`, if present, is used instead of differentiating the definition: its operands are this function's operands, then its results,
/// then one cotangent per result; its results are one cotangent per floating-point operand, in operand order.
public record Function(
        String name,
        SortedMap<String, Double> attributes,
        Graph definition,
        @Nullable Function gradient) {
    public Function {
        attributes = java.util.Collections.unmodifiableSortedMap(new TreeMap<>(attributes));
        if (!definition.weights().isEmpty()) {
            throw new IngotException("function " + name + ": a definition has no weights, pass them as operands");
        }
    }

    public static Function of(String name, Graph definition) {
        return new Function(name, new TreeMap<>(), definition, null);
    }

    public double attribute(String key) {
        Double value = attributes.get(key);
        if (value == null) {
            throw new IngotException("function " + name + ": no attribute " + key + ", it has " + attributes.keySet());
        }
        return value;
    }

    public List<Type> resultTypes() {
        return definition.outputs().values().stream().map(Value::type).toList();
    }
}
