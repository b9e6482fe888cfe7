package ingot.ir;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;

/// An immutable directed acyclic graph of values in topological order; `values().get(i).id() == i`.
public final class Graph {
    private final String name;
    private final List<Value> values;
    private final SequencedMap<String, Value> outputs;
    private final Map<Integer, String> scopes;
    private @Nullable String text;
    private int hash;

    Graph(String name, List<Value> values, SequencedMap<String, Value> outputs, Map<Integer, String> scopes) {
        this.name = name;
        this.values = List.copyOf(values);
        this.outputs = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(outputs));
        this.scopes = Map.copyOf(scopes);
    }

    public String name() {
        return name;
    }

    public List<Value> values() {
        return values;
    }

    /// Named results in the order they were declared.
    public SequencedMap<String, Value> outputs() {
        return outputs;
    }

    public Value output(String key) {
        Value value = outputs.get(key);
        if (value == null) {
            throw new IngotException("graph " + name + ": no output " + key + ", it has " + outputs.keySet());
        }
        return value;
    }

    /// Values of the `Input` ops in order.
    public List<Value> inputs() {
        return values.stream().filter(v -> v.op() instanceof Op.Input).toList();
    }

    /// Values of the `Weight` ops in order.
    public List<Value> weights() {
        return values.stream().filter(v -> v.op() instanceof Op.Weight).toList();
    }

    /// The name of the scope a value was built in (`h.0.attn`), or an empty string.
    public String scope(Value value) {
        return scopes.getOrDefault(value.id(), "");
    }

    /// For each value, the values that use it, in order; index = id.
    public List<List<Value>> users() {
        List<List<Value>> users = new ArrayList<>();
        for (int i = 0; i < values.size(); i++) {
            users.add(new ArrayList<>());
        }
        for (Value value : values) {
            for (Value operand : new java.util.LinkedHashSet<>(value.op().operands())) {
                users.get(operand.id()).add(value);
            }
        }
        return users;
    }

    /// The text form; parses back to an equal graph.
    @Override
    public String toString() {
        if (text == null) {
            text = TextForm.print(this);
        }
        return text;
    }

    /// Structural: the same name, ops in the same order, and outputs; scopes do not count.
    @Override
    public boolean equals(Object other) {
        if (other == this) {
            return true;
        }
        if (!(other instanceof Graph graph)
                || hashCode() != graph.hashCode()
                || !name.equals(graph.name)
                || values.size() != graph.values.size()
                || !List.copyOf(outputs.entrySet()).equals(List.copyOf(graph.outputs.entrySet()))) {
            return false;
        }
        for (int i = 0; i < values.size(); i++) {
            // Operands compare by id, which is the position: equal ops at equal positions are equal graphs.
            if (!values.get(i).op().equals(graph.values.get(i).op())) {
                return false;
            }
        }
        return true;
    }

    @Override
    public int hashCode() {
        if (hash == 0) {
            int sum = name.hashCode();
            for (Value value : values) {
                sum = 31 * sum + value.op().hashCode();
            }
            hash = sum == 0 ? 1 : sum;
        }
        return hash;
    }
}
