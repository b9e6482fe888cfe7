package ingot.formats;

import ingot.ir.IngotException;
import ingot.ir.Value;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// The names of one ONNX graph and what they stand for; names of the graph around it are seen too.
final class OnnxScope {
    private final @Nullable OnnxScope outer;
    private final Map<String, Value> tensors = new HashMap<>();
    private final Map<String, List<Value>> sequences = new HashMap<>();
    private final Map<String, OnnxType> types = new HashMap<>();

    OnnxScope(@Nullable OnnxScope outer) {
        this.outer = outer;
    }

    void define(String name, Value value) {
        if (!name.isEmpty()) {
            sequences.remove(name);
            tensors.put(name, value);
        }
    }

    /// A sequence of tensors whose length is known: it exists only while importing.
    void define(String name, List<Value> sequence) {
        if (!name.isEmpty()) {
            tensors.remove(name);
            sequences.put(name, List.copyOf(sequence));
        }
    }

    /// Remembers the type that the file declares, where it is wider in the graph.
    void declare(String name, @Nullable OnnxType type) {
        if (type != null) {
            types.put(name, type);
        }
    }

    @Nullable
    OnnxType declared(String name) {
        OnnxType type = types.get(name);
        return type != null || outer == null ? type : outer.declared(name);
    }

    @Nullable
    Value find(String name) {
        Value value = tensors.get(name);
        return value != null || outer == null || sequences.containsKey(name) ? value : outer.find(name);
    }

    @Nullable
    List<Value> sequence(String name) {
        List<Value> values = sequences.get(name);
        return values != null || outer == null || tensors.containsKey(name) ? values : outer.sequence(name);
    }

    Value tensor(String name) {
        Value value = find(name);
        if (value == null) {
            throw new IngotException(
                    sequence(name) != null
                            ? "input " + name + " is a sequence, expected a tensor"
                            : "input " + name + " is not defined before it: the graph has a cycle, is not in"
                                    + " topological order, or lacks it");
        }
        return value;
    }
}
