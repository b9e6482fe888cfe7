package ingot.compiler;

import ingot.ir.Function;
import ingot.ir.Graph;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Value;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntUnaryOperator;
import org.jspecify.annotations.Nullable;

/// For every value of a graph, the axis that carries the rows of the batch as its outermost factor.
///
/// [batch·time, width] carries it on axis 0, [heads, batch·time] on axis 1. The relation runs both ways through an op:
/// a mask that is drawn from a counter knows nothing of the batch, but it is multiplied with something that does. It
/// ends where the axis does: at sums over it, and at broadcasts that make it. Facts only grow, from nothing over
/// "mixed" to an axis, until nothing changes.
final class BatchAxes {
    /// The value does not carry the batch.
    static final int NONE = -1;
    /// The value depends on the rows in a way that no axis shows (sorted, cut, merged).
    static final int MIXED = -2;

    private final Graph graph;
    private final int batch;
    private final int[] axes;
    private final @Nullable Value[] mixedBy;
    private final Map<Value, BatchAxes> inside = new HashMap<>();
    private final Map<Call, BatchAxes> analysed;
    private boolean changed;

    /// A function and where the batch enters it: the layers of a model are the same few calls again and again.
    private record Call(Function function, List<Integer> operandAxes) {}

    private BatchAxes(Graph graph, int batch, Map<Call, BatchAxes> analysed) {
        this.graph = graph;
        this.batch = batch;
        this.analysed = analysed;
        this.axes = new int[graph.values().size()];
        this.mixedBy = new Value[axes.length];
        Arrays.fill(axes, NONE);
    }

    /// `seeds`: where the batch enters; `batch`: its number of rows. Of one row, sizes say nothing: only what follows from the seeds is found.
    static BatchAxes of(Graph graph, Map<Value, Integer> seeds, int batch) {
        return of(graph, seeds, batch, new HashMap<>());
    }

    private static BatchAxes of(Graph graph, Map<Value, Integer> seeds, int batch, Map<Call, BatchAxes> analysed) {
        BatchAxes found = new BatchAxes(graph, batch, analysed);
        seeds.forEach(found::mark);
        do {
            found.changed = false;
            graph.values().forEach(found::visit);
            graph.values().reversed().forEach(found::visit);
        } while (found.changed);
        for (Value value : graph.values()) {
            found.rejectMixedSum(value);
        }
        return found;
    }

    int axis(Value value) {
        return axes[value.id()];
    }

    /// The facts inside the definition of a composite.
    BatchAxes inside(Value composite) {
        BatchAxes found = inside.get(composite);
        if (found == null) {
            throw new IllegalArgumentException(composite + " is not a composite");
        }
        return found;
    }

    /// True when the value is a sum over the rows of the batch.
    boolean isSum(Value value) {
        return switch (value.op()) {
            case Op.Reduce op -> op.kind() == Op.ReduceKind.SUM && op.axes().contains(axis(op.x()));
            case Op.Dot op -> contracted(op) >= 0;
            case Op.ScatterAdd op -> {
                int at = axis(op.updates()) - op.axis();
                yield axis(op.updates()) >= 0
                        && at >= 0
                        && at < op.indices().shape().rank();
            }
            case Op.Convolution op -> axis(op.x()) == 1 && axis(op.kernel()) == 1;
            case Op.Composite op -> inside(value).isSum(output(op, 0));
            case Op.Result op ->
                inside(op.composite())
                        .isSum(output((Op.Composite) op.composite().op(), op.index()));
            case Op.Input _, Op.Weight _, Op.Constant _, Op.Iota _, Op.RandomBits _ -> false;
            case Op.Unary _, Op.Binary _, Op.Fma _, Op.Compare _, Op.Select _, Op.Convert _, Op.Bitcast _ -> false;
            case Op.Broadcast _, Op.Reshape _, Op.Transpose _, Op.Slice _, Op.Pad _, Op.Concatenate _ -> false;
            case Op.Reverse _, Op.Gather _, Op.TakeAlong _, Op.AddAlong _, Op.ArgSort _, Op.Cumulative _ -> false;
            case Op.ReduceWindow _, Op.ScatterWindowMax _, Op.Custom _ -> false;
        };
    }

    /// Which pair of contracted axes carries the batch, or −1.
    int contracted(Op.Dot op) {
        int ofA = op.contractA().indexOf(axis(op.a()));
        return ofA >= 0 ? ofA : op.contractB().indexOf(axis(op.b()));
    }

    static Value output(Op.Composite composite, int index) {
        return List.copyOf(composite.function().definition().outputs().values()).get(index);
    }

    private void visit(Value y) {
        switch (y.op()) {
            case Op.Input _, Op.Weight _, Op.Constant _, Op.Iota _, Op.RandomBits _ -> {}
            case Op.Unary _, Op.Binary _, Op.Fma _, Op.Compare _, Op.Select _, Op.Convert _, Op.Bitcast _ ->
                y.op().operands().forEach(x -> tie(x, y, a -> a, a -> a));

            case Op.Broadcast op ->
                tie(op.x(), y, a -> op.axes().get(a), r -> {
                    int source = op.axes().indexOf(r);
                    return source >= 0
                                    && op.x().shape().dim(source) == y.shape().dim(r)
                                    && batch > 1
                            ? source
                            : NONE;
                });
            case Op.Reshape op ->
                tie(
                        op.x(),
                        y,
                        a -> reshaped(op.x().shape(), a, y.shape()),
                        r -> reshaped(y.shape(), r, op.x().shape()));
            case Op.Transpose op -> tie(op.x(), y, op.permutation()::indexOf, op.permutation()::get);
            case Op.Slice op -> {
                IntUnaryOperator whole = a -> y.shape().dim(a) == op.x().shape().dim(a) ? a : MIXED;
                tie(op.x(), y, whole, whole);
            }
            case Op.Pad op -> {
                IntUnaryOperator whole = a -> y.shape().dim(a) == op.x().shape().dim(a) ? a : MIXED;
                tie(op.x(), y, whole, whole);
            }
            case Op.Concatenate op -> op.operands().forEach(x -> tie(x, y, except(op.axis()), except(op.axis())));
            case Op.Reverse op -> {
                IntUnaryOperator kept = a -> op.axes().contains(a) ? MIXED : a;
                tie(op.x(), y, kept, kept);
            }

            case Op.Gather op -> {
                int rank = op.indices().shape().rank();
                tie(
                        op.x(),
                        y,
                        a -> a == op.axis() ? MIXED : a < op.axis() ? a : a + rank - 1,
                        r -> r < op.axis() ? r : r < op.axis() + rank ? NONE : r - rank + 1);
                tie(
                        op.indices(),
                        y,
                        a -> a + op.axis(),
                        r -> r >= op.axis() && r < op.axis() + rank ? r - op.axis() : NONE);
            }
            case Op.ScatterAdd op -> {
                int rank = op.indices().shape().rank();
                IntUnaryOperator position = a -> a >= op.axis() && a < op.axis() + rank ? a - op.axis() : NONE;
                tie(op.indices(), op.updates(), a -> a + op.axis(), position);
                tie(
                        op.updates(),
                        y,
                        a -> a < op.axis() ? a : a < op.axis() + rank ? NONE : a - rank + 1,
                        r -> r < op.axis() ? r : r == op.axis() ? NONE : r + rank - 1);
            }
            case Op.TakeAlong op -> {
                tie(op.x(), y, except(op.axis()), r -> r == op.axis() ? NONE : r);
                tie(op.indices(), y, a -> a, a -> a);
            }
            case Op.AddAlong op -> {
                tie(op.indices(), op.updates(), a -> a, a -> a);
                tie(op.updates(), y, except(op.axis()), r -> r == op.axis() ? NONE : r);
            }
            case Op.ArgSort op -> tie(op.x(), y, except(op.axis()), except(op.axis()));

            case Op.Reduce op -> {
                List<Integer> kept = kept(op.x().shape(), op.axes());
                tie(op.x(), y, kept::indexOf, kept::get);
            }
            case Op.Cumulative op -> tie(op.x(), y, except(op.axis()), except(op.axis()));
            case Op.Dot op -> dot(op, y);
            case Op.Convolution op -> convolution(op, y);
            case Op.ReduceWindow op -> {
                IntUnaryOperator still = a -> still(op.size(), op.window(), a) ? a : MIXED;
                tie(op.x(), y, still, still);
            }
            case Op.ScatterWindowMax op -> {
                IntUnaryOperator still = a -> still(op.size(), op.window(), a) ? a : MIXED;
                tie(op.x(), y, still, still);
                tie(op.updates(), y, still, still);
            }

            case Op.Composite op -> composite(op, y);
            case Op.Result op -> {
                BatchAxes definition = inside.get(op.composite());
                if (definition != null) {
                    learn(y, definition, output((Op.Composite) op.composite().op(), op.index()));
                }
            }
            case Op.Custom op -> op.operands().forEach(x -> tie(x, y, a -> MIXED, a -> NONE));
        }
    }

    private void dot(Op.Dot op, Value y) {
        List<Integer> freeA = free(op.a().shape(), op.batchA(), op.contractA());
        List<Integer> freeB = free(op.b().shape(), op.batchB(), op.contractB());
        int batches = op.batchA().size();
        tie(
                op.a(),
                op.b(),
                a -> paired(op.contractA(), op.contractB(), a),
                b -> paired(op.contractB(), op.contractA(), b));
        tieFactor(op.a(), y, op.batchA(), freeA, 0, batches);
        tieFactor(op.b(), y, op.batchB(), freeB, freeA.size(), batches);
        if (op.start() != null) {
            tie(op.start(), y, axis -> axis, axis -> axis);
        }
    }

    /// Result axes are batch, free axes of a, free axes of b; the contracted ones are gone.
    private void tieFactor(Value x, Value y, List<Integer> batchAxes, List<Integer> free, int shift, int batches) {
        tie(
                x,
                y,
                a -> batchAxes.contains(a)
                        ? batchAxes.indexOf(a)
                        : free.contains(a) ? batches + shift + free.indexOf(a) : NONE,
                r -> r < batches
                        ? batchAxes.get(r)
                        : r >= batches + shift && r < batches + shift + free.size()
                                ? free.get(r - batches - shift)
                                : NONE);
    }

    /// Examples are axis 0 of the input; in the gradient of a kernel they are the input channels.
    private void convolution(Op.Convolution op, Value y) {
        tie(op.x(), op.kernel(), a -> a == 1 ? 1 : NONE, k -> k == 1 ? 1 : NONE);
        tie(
                op.x(),
                y,
                a -> a == 0 && op.batchGroups() == 1 ? 0 : a == 1 && op.groups() == 1 ? NONE : MIXED,
                r -> r == 0 && op.batchGroups() == 1 ? 0 : NONE);
        tie(op.kernel(), y, k -> k == 1 && op.groups() == 1 ? NONE : MIXED, r -> NONE);
    }

    private void composite(Op.Composite op, Value y) {
        Graph definition = op.function().definition();
        List<Value> inputs = definition.inputs();
        List<Integer> operandAxes = op.operands().stream().map(this::axis).toList();
        BatchAxes known = inside.get(y);
        for (int i = 0; i < inputs.size() && known != null; i++) {
            int axis = operandAxes.get(i);
            known = axis == NONE || known.axis(inputs.get(i)) == axis ? known : null;
        }
        if (known == null) {
            known = analyse(new Call(op.function(), operandAxes), y);
            inside.put(y, known);
            changed = true;
        }
        for (int i = 0; i < inputs.size(); i++) {
            learn(op.operands().get(i), known, inputs.get(i));
        }
        learn(y, known, output(op, 0));
    }

    private BatchAxes analyse(Call call, Value y) {
        BatchAxes known = analysed.get(call);
        if (known != null) {
            return known;
        }
        Graph definition = call.function().definition();
        Map<Value, Integer> seeds = new HashMap<>();
        for (int i = 0; i < call.operandAxes().size(); i++) {
            if (call.operandAxes().get(i) != NONE) {
                seeds.put(definition.inputs().get(i), call.operandAxes().get(i));
            }
        }
        try {
            BatchAxes found = of(definition, seeds, batch, analysed);
            analysed.put(call, found);
            return found;
        } catch (IngotException e) {
            throw new IngotException(
                    e.getMessage() + " inside " + call.function().name() + where(y), e);
        }
    }

    private void learn(Value value, BatchAxes definition, Value inner) {
        int axis = definition.axis(inner);
        if (axis >= 0) {
            mark(value, axis);
        } else if (axis == MIXED) {
            mix(value, value);
        }
    }

    /// Relates the axes of two values that meet in an op: what one of them carries, the other does.
    private void tie(Value x, Value y, IntUnaryOperator forward, IntUnaryOperator back) {
        int a = axis(x);
        if (a >= 0) {
            int to = forward.applyAsInt(a);
            if (to >= 0) {
                mark(y, to);
            } else if (to == MIXED) {
                mix(y, y);
            }
        } else if (a == MIXED) {
            mix(y, mixedBy[x.id()]);
        }
        int r = axis(y);
        if (r >= 0 && axis(x) == NONE) {
            int to = back.applyAsInt(r);
            if (to >= 0) {
                mark(x, to);
            }
        }
    }

    private void mark(Value value, int axis) {
        if (axis == MIXED) {
            mix(value, value);
            return;
        }
        // A weight belongs to every row alike, whatever its sizes.
        if (axis(value) == axis || value.op() instanceof Op.Weight) {
            return;
        }
        if (axis(value) >= 0) {
            throw new IngotException("shard: the batch is on axis " + axis(value) + " and on axis " + axis + " of "
                    + value + " : " + value.type() + where(value)
                    + "; rows of the batch may not meet each other outside of sums");
        }
        axes[value.id()] = axis;
        mixedBy[value.id()] = null;
        changed = true;
    }

    private void mix(Value value, @Nullable Value by) {
        if (axis(value) == NONE && !(value.op() instanceof Op.Weight)) {
            axes[value.id()] = MIXED;
            mixedBy[value.id()] = by;
            changed = true;
        }
    }

    private void rejectMixedSum(Value value) {
        boolean sums = switch (value.op()) {
            case Op.Reduce op -> op.kind() == Op.ReduceKind.SUM;
            case Op.Dot _, Op.ScatterAdd _, Op.AddAlong _, Op.Convolution _ -> true;
            case Op _ -> false;
        };
        for (Value operand : value.op().operands()) {
            Value by = mixedBy[operand.id()];
            if (sums && axis(operand) == MIXED && by != null) {
                throw new IngotException("shard: " + by.op().getClass().getSimpleName() + " at " + by + where(by)
                        + " mixes the rows of the batch, and " + value + where(value) + " sums over its result");
            }
        }
        if (value.op() instanceof Op.AddAlong op && axis(op.updates()) == op.axis()) {
            throw new IngotException("shard: AddAlong at " + value + where(value) + " sums over the batch axis "
                    + op.axis() + "; use ScatterAdd");
        }
        if (value.op() instanceof Op.ScatterAdd op && isSum(value) && axis(op.updates()) != op.axis()) {
            throw new IngotException("shard: ScatterAdd at " + value + where(value)
                    + " has the batch inside its positions, on axis " + axis(op.updates()) + "; it must be the first, "
                    + op.axis());
        }
    }

    private String where(Value value) {
        String scope = graph.scope(value);
        return scope.isEmpty() ? "" : " (" + scope + ")";
    }

    /// The axis of `to` that starts at the same place and has the batch as a factor.
    private int reshaped(Shape from, int axis, Shape to) {
        long before = 1;
        for (int i = 0; i < axis; i++) {
            before *= from.dim(i);
        }
        long product = 1;
        for (int i = 0; i < to.rank(); i++) {
            if (product == before && to.dim(i) > 0 && to.dim(i) % batch == 0) {
                return i;
            }
            product *= to.dim(i);
        }
        return MIXED;
    }

    private static IntUnaryOperator except(int mixed) {
        return a -> a == mixed ? MIXED : a;
    }

    private static int paired(List<Integer> from, List<Integer> to, int axis) {
        int at = from.indexOf(axis);
        return at < 0 ? NONE : to.get(at);
    }

    private static List<Integer> kept(Shape shape, List<Integer> gone) {
        return free(shape, gone, List.of());
    }

    private static List<Integer> free(Shape shape, List<Integer> batchAxes, List<Integer> contract) {
        return java.util.stream.IntStream.range(0, shape.rank())
                .filter(i -> !batchAxes.contains(i) && !contract.contains(i))
                .boxed()
                .toList();
    }

    private static boolean still(List<Integer> size, Op.Window window, int axis) {
        return size.get(axis) == 1
                && window.strides().get(axis) == 1
                && window.low().get(axis) == 0
                && window.high().get(axis) == 0
                && window.inputDilation().get(axis) == 1;
    }
}
