package ingot.cpu;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Operands;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Turns values of a kernel's body into the scalar graph of one pass: the work at one index.
///
/// Broadcasts vanish, iotas become counts, and elementary functions become the basic ops of the contract, so that
/// scalar and vector code are the same by construction.
final class PassBuilder {
    private final GraphBuilder graph = new GraphBuilder("pass");
    private final Map<Source, Value> reads = new LinkedHashMap<>();
    private final Map<Value, Value> known = new HashMap<>();
    private final List<Value> writes = new ArrayList<>();
    private final List<Value> reduced = new ArrayList<>();
    private final List<ReduceKind> reductions = new ArrayList<>();
    private final Function<Value, @Nullable Source> bound;

    /// `bound` names the values that are read rather than computed; null for the others. Inputs are always read.
    PassBuilder(Function<Value, @Nullable Source> bound) {
        this.bound = bound;
    }

    /// The scalar that stands for a value of the kernel's body.
    Value scalar(Value value) {
        Value done = known.get(value);
        if (done == null) {
            done = translate(value);
            known.put(value, done);
        }
        return done;
    }

    private Value translate(Value value) {
        Source source = bound.apply(value);
        if (source != null) {
            Value read = read(source);
            return read.dtype() == value.dtype() ? read : graph.convert(read, value.dtype());
        }
        return switch (value.op()) {
            case Op.Input input -> read(new Source.Argument(Integer.parseInt(input.name()), value.dtype()));
            case Op.Iota iota -> graph.convert(read(new Source.Count(iota.axis())), value.dtype());
            case Op.Broadcast broadcast -> scalar(broadcast.x());
            case Op.Constant constant -> {
                if (constant.data().shape().elements() != 1) {
                    throw new UnsupportedPassException("a constant of shape " + value.shape());
                }
                yield graph.constant(Tensor.over(
                        value.type().with(Shape.SCALAR), constant.data().data()));
            }
            default -> Expansion.add(graph, Operands.replace(value.op(), this::scalar));
        };
    }

    Value read(Source source) {
        Value value = reads.get(source);
        if (value == null) {
            supported(source.dtype());
            value = graph.input(Integer.toString(reads.size()), new Type(source.dtype(), Shape.SCALAR));
            reads.put(source, value);
        }
        return value;
    }

    /// Rewrites scalars further, for passes that are built rather than translated.
    GraphBuilder graph() {
        return graph;
    }

    void write(Value scalar) {
        supported(scalar.dtype());
        writes.add(scalar);
    }

    void reduce(ReduceKind kind, Value scalar) {
        reductions.add(kind);
        reduced.add(scalar);
    }

    boolean isEmpty() {
        return writes.isEmpty() && reductions.isEmpty();
    }

    /// In the order of the pass's read ports.
    List<Source> sources() {
        return List.copyOf(reads.keySet());
    }

    /// `kind` tells how each source is read.
    Pass build(Function<Source, Pass.Kind> kind) {
        int out = 0;
        for (Value value : writes) {
            graph.output(Integer.toString(out++), value);
        }
        for (Value value : reduced) {
            graph.output(Integer.toString(out++), value);
        }
        Graph body = graph.build();
        return new Pass(
                body,
                sources().stream()
                        .map(s -> new Pass.Port(s.dtype(), kind.apply(s)))
                        .toList(),
                writes.stream()
                        .map(v -> new Pass.Port(v.dtype(), Pass.Kind.EACH))
                        .toList(),
                reductions);
    }

    private static void supported(DType dtype) {
        if (dtype != DType.F32 && dtype != DType.I32 && dtype != DType.BOOL) {
            throw new UnsupportedPassException("elements of " + dtype.text());
        }
    }
}
