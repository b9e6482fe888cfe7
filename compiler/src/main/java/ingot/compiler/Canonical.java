package ingot.compiler;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.MathExpansion;
import ingot.ir.Op;
import ingot.ir.Operands;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// The form of a graph that lowering reads: composites inlined, dead values gone, constants of one repeated element as
/// a broadcast scalar, every reduction along exactly one axis, convolutions that reach no padding, no view of a view
/// that is one view.
final class Canonical {
    private final GraphBuilder to;
    private final Map<Value, Value> mapped = new HashMap<>();
    private final Map<Value, List<Value>> results = new HashMap<>(); // of inlined composites, by their old value

    private Canonical(String name) {
        to = new GraphBuilder(name);
    }

    static Graph of(Graph graph) {
        Canonical pass = new Canonical(graph.name());
        pass.copy(graph, live(graph));
        graph.outputs().forEach((key, value) -> pass.to.output(key, pass.at(value)));
        Graph all = pass.to.build();
        // Rewriting leaves unused values behind.
        Canonical sweep = new Canonical(graph.name());
        BitSet live = live(all);
        for (Value value : all.values()) {
            if (live.get(value.id())) {
                sweep.to.enterScope(all.scope(value));
                sweep.mapped.put(value, sweep.to.add(Operands.replace(value.op(), sweep::at)));
            }
        }
        all.outputs().forEach((key, value) -> sweep.to.output(key, sweep.at(value)));
        return sweep.to.build();
    }

    /// Element types that map, row and column kernels compute with.
    static boolean isNative(DType dtype) {
        return dtype == DType.F32 || dtype == DType.I32 || dtype == DType.BOOL;
    }

    /// Ids of what results need; inputs and weights always count.
    private static BitSet live(Graph graph) {
        BitSet live = new BitSet();
        graph.outputs().values().forEach(value -> live.set(value.id()));
        for (int id = graph.values().size() - 1; id >= 0; id--) {
            Value value = graph.values().get(id);
            if (value.op() instanceof Op.Input || value.op() instanceof Op.Weight) {
                live.set(id);
            }
            if (live.get(id)) {
                value.op().operands().forEach(operand -> live.set(operand.id()));
            }
        }
        return live;
    }

    private Value at(Value old) {
        Value value = mapped.get(old);
        if (value == null) {
            throw new IllegalStateException("lower: " + old + " = " + old.op() + " is used before it is defined");
        }
        return value;
    }

    private void copy(Graph graph, BitSet live) {
        for (Value value : graph.values()) {
            if (live.get(value.id())) {
                if (!graph.scope(value).isEmpty()) {
                    to.enterScope(graph.scope(value));
                }
                mapped.put(value, replacement(value));
            }
        }
    }

    private Value replacement(Value value) {
        if (value.op() instanceof Op.Result result) {
            List<Value> inlined = results.get(result.composite());
            if (inlined != null) {
                return inlined.get(result.index());
            }
        }
        if (value.op() instanceof Op.Composite composite) {
            List<Value> inlined = inline(
                    composite.function().definition(),
                    composite.operands().stream().map(this::at).toList());
            results.put(value, inlined);
            return inlined.getFirst();
        }
        Op op = Operands.replace(value.op(), this::at);
        return switch (op) {
            case Op.Constant constant -> constant(constant.data());
            case Op.RandomBits random -> MathExpansion.expand(to, random);
            case Op.Reduce reduce -> reduce(reduce);
            case Op.Convolution convolution -> to.add(Convolutions.padded(to, convolution, value.shape()));
            case Op.Reshape reshape -> reshape(reshape.x(), reshape.shape());
            case Op.Transpose transpose -> transpose(transpose.x(), transpose.permutation());
            default -> Places.isPointwise(op) ? pointwise(op) : to.add(op);
        };
    }

    /// Where an operand regroups the axes of a repeated value, [batch, time, width] → [rows, width], which is no view,
    /// the op is done before the regrouping: reshape(x) + y = reshape(x + reshape(y)).
    private Value pointwise(Op op) {
        for (Value operand : op.operands()) {
            if (operand.op() instanceof Op.Reshape reshape
                    && layout(operand).isEmpty()
                    && layout(reshape.x()).isPresent()
                    && divides(reshape.x().shape(), operand.shape())) {
                Value finer =
                        to.add(Operands.replace(op, x -> reshape(x, reshape.x().shape())));
                return reshape(finer, operand.shape());
            }
        }
        return to.add(op);
    }

    /// A value as a view of its root, were that row-major.
    private static Optional<Layout> layout(Value value) {
        return switch (value.op()) {
            case Op.Reshape x -> layout(x.x()).flatMap(layout -> Layout.view(x, layout));
            case Op.Broadcast x -> layout(x.x()).flatMap(layout -> Layout.view(x, layout));
            case Op.Transpose x -> layout(x.x()).flatMap(layout -> Layout.view(x, layout));
            case Op.Slice x -> layout(x.x()).flatMap(layout -> Layout.view(x, layout));
            case Op.Reverse x -> layout(x.x()).flatMap(layout -> Layout.view(x, layout));
            default -> Optional.of(Layout.rowMajor(value.type()));
        };
    }

    /// True when the axes of `coarse` are whole groups of those of `fine`.
    private static boolean divides(Shape fine, Shape coarse) {
        Set<Long> bounds = new HashSet<>();
        for (long stride : fine.strides()) {
            bounds.add(stride);
        }
        for (long stride : coarse.strides()) {
            if (stride != fine.elements() && !bounds.contains(stride)) {
                return false;
            }
        }
        return true;
    }

    private List<Value> inline(Graph definition, List<Value> operands) {
        Canonical inner = new Canonical(to);
        List<Value> inputs = definition.inputs();
        for (int i = 0; i < inputs.size(); i++) {
            inner.mapped.put(inputs.get(i), operands.get(i));
        }
        BitSet live = live(definition);
        inputs.forEach(input -> live.clear(input.id()));
        inner.copy(definition, live);
        return definition.outputs().values().stream().map(inner::at).toList();
    }

    private Canonical(GraphBuilder to) {
        this.to = to;
    }

    private Value constant(Tensor data) {
        Type type = data.type();
        long elements = type.shape().elements();
        if (type.shape().rank() == 0 || elements == 0 || !isNative(type.dtype())) {
            return to.constant(data);
        }
        int bytes = type.dtype().bytes();
        var first = data.data().asSlice(0, bytes);
        for (long i = 1; i < elements; i++) {
            if (data.data().asSlice(i * bytes, bytes).mismatch(first) >= 0) {
                return to.constant(data);
            }
        }
        Tensor scalar = Tensor.over(
                type.with(Shape.SCALAR), java.lang.foreign.MemorySegment.ofArray(first.toArray(ValueLayout.JAVA_BYTE)));
        return to.broadcast(to.constant(scalar), type.shape());
    }

    /// Merges the reduced axes into one: neighbours by a reshape, others after a transposition to the end. The
    /// numbering of the reduced elements, row-major over the axes, stays.
    private Value reduce(Op.Reduce reduce) {
        Shape from = reduce.x().shape();
        if (!isNative(reduce.x().dtype()) || from.elements() == 0) {
            return to.add(reduce);
        }
        List<Integer> axes = new ArrayList<>();
        for (int axis : reduce.axes()) {
            if (from.dim(axis) != 1) {
                axes.add(axis);
            }
        }
        Shape result = from.without(reduce.axes());
        int[] block = block(from, axes);
        if (block.length == 3) {
            Value merged = reshape(reduce.x(), Shape.of(block));
            // Nothing after the block: the last axis is the reduced one.
            return last(reduce, block[2] == 1 ? reshape(merged, Shape.of(block[0], block[1])) : merged, 1, result);
        }
        List<Integer> permutation = new ArrayList<>();
        for (int i = 0; i < from.rank(); i++) {
            if (!axes.contains(i)) {
                permutation.add(i);
            }
        }
        permutation.addAll(axes);
        Value moved = transpose(reduce.x(), permutation);
        int length = 1;
        for (int axis : axes) {
            length *= from.dim(axis);
        }
        return last(reduce, reshape(moved, Shape.of((int) result.elements(), length)), 1, result);
    }

    private Value last(Op.Reduce reduce, Value x, int axis, Shape result) {
        return reshape(to.add(new Op.Reduce(reduce.kind(), x, List.of(axis), reduce.segments())), result);
    }

    /// [outer, length, inner] when the reduced axes are neighbours up to axes of size 1, else nothing.
    private static int[] block(Shape from, List<Integer> axes) {
        int outer = 1;
        int length = 1;
        int inner = 1;
        boolean after = axes.isEmpty();
        int seen = 0;
        for (int i = 0; i < from.rank(); i++) {
            if (axes.contains(i)) {
                if (after) {
                    return new int[0];
                }
                length *= from.dim(i);
                seen++;
            } else if (from.dim(i) != 1) {
                after = after || seen > 0;
                if (axes.isEmpty() || seen == 0) {
                    outer *= from.dim(i);
                } else {
                    inner *= from.dim(i);
                }
            }
        }
        return new int[] {outer, length, inner};
    }

    private Value reshape(Value x, Shape shape) {
        Value source = x.op() instanceof Op.Reshape inner ? inner.x() : x;
        return to.reshape(source, shape);
    }

    private Value transpose(Value x, List<Integer> permutation) {
        if (x.op() instanceof Op.Transpose inner) {
            return to.transpose(
                    inner.x(),
                    permutation.stream().map(inner.permutation()::get).toList());
        }
        return to.transpose(x, permutation);
    }
}
