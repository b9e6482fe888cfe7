package ingot.nn;

import ingot.ir.Function;
import ingot.ir.GraphBuilder;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;

/// Writes down named functions: inputs `0`, `1`, … of given types, outputs `0`, `1`, ….
final class Definition {
    private Definition() {}

    static Function of(
            String name,
            Map<String, Double> attributes,
            List<Type> operands,
            @Nullable Function gradient,
            BiFunction<GraphBuilder, List<Value>, List<Value>> body) {
        GraphBuilder builder = new GraphBuilder(name);
        List<Value> inputs = new ArrayList<>();
        for (Type type : operands) {
            inputs.add(builder.input(Integer.toString(inputs.size()), type));
        }
        List<Value> results = body.apply(builder, inputs);
        for (int i = 0; i < results.size(); i++) {
            builder.output(Integer.toString(i), results.get(i));
        }
        return new Function(name, new TreeMap<>(attributes), builder.build(), gradient);
    }

    /// Types of `values`, in order.
    static List<Type> types(Value... values) {
        return java.util.stream.Stream.of(values).map(Value::type).toList();
    }
}
