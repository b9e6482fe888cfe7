package ingot.formats;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Operands;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.Initializer;
import ingot.nn.Layers;
import ingot.nn.Parameter;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import java.util.function.Predicate;

/// Imported graphs as parts of models that learn, with a linear head, `head.weight` and `head.bias`, of our own.
final class OnnxGrafts {
    static final String HEAD = "head";

    private OnnxGrafts() {}

    /// Copies the values of a graph that are wanted into a builder, under the scopes that they have in the graph; its
    /// inputs become what `inputs` says. The result says what became of each.
    static Map<Value, Value> copy(
            GraphBuilder b, Graph graph, Predicate<Value> wanted, Function<Op.Input, Value> inputs) {
        Map<Value, Value> mapped = new HashMap<>();
        String outer = b.scope();
        for (Value value : graph.values()) {
            if (wanted.test(value)) {
                b.enterScope(outer.isEmpty() ? graph.scope(value) : outer + "." + graph.scope(value));
                mapped.put(
                        value,
                        value.op() instanceof Op.Input input
                                ? inputs.apply(input)
                                : b.add(Operands.replace(value.op(), x -> Objects.requireNonNull(mapped.get(x)))));
            }
        }
        b.enterScope(outer);
        return mapped;
    }

    /// A weight of a file that is to learn.
    ///
    /// @param vector what a vector begins with, were it made anew
    static Parameter parameter(Path file, String name, Type type, float vector) {
        if (type.dtype() != DType.F32) {
            throw new IngotException("onnx: " + file + " has the weight " + name + " : " + type
                    + ", which cannot learn; a quantised model cannot be fine-tuned, use its f32 original");
        }
        boolean matrix = type.shape().rank() > 1;
        Initializer first = matrix ? new Initializer.Normal(0.02) : new Initializer.Constant(vector);
        return new Parameter(name, type, first, matrix);
    }

    static List<Parameter> head(int labels, int width) {
        return List.of(
                new Parameter(HEAD + ".weight", Type.f32(labels, width), new Initializer.Normal(0.02), true),
                new Parameter(HEAD + ".bias", Type.f32(labels), new Initializer.Constant(0), false));
    }

    /// The head's outputs [rows, labels] for x [rows, width].
    static Value head(GraphBuilder b, Value x, int labels) {
        return Layers.linearTransposed(
                b,
                x,
                b.weight(HEAD + ".weight", Type.f32(labels, x.shape().dim(1))),
                b.weight(HEAD + ".bias", Type.f32(labels)));
    }
}
