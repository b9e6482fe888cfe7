package ingot.compiler;

import ingot.ir.Graph;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/// How the batch runs through a graph: which values exist once per micro-batch, and along which axis they carry its
/// rows.
///
///     ids [B, T] ── gather ── x [B, T, C] ── dot ── y [B·T, D] ── Σ over 0 ── loss ── × 1/n
///     MICRO 0                 MICRO 0          MICRO 0          SUM            ONCE
///
/// The batch is the major part of one axis: [B, T, C] may become [B·T, C], [C, B·T] or [B, H, T, D], never [T,
/// B]-merged into [T·B]. An op that mixes rows in any other way than a sum would give other bits for other
/// micro-batches: it is refused by name.
final class BatchFlow {
    enum Kind {
        /// Depends on no input: recomputed wherever it is used.
        INVARIANT,
        /// Depends on weights and inputs without a batch only: the same for every micro-batch.
        STEADY,
        /// One value per micro-batch.
        MICRO,
        /// Sums the batch away: the results of the micro-batches are added up.
        SUM,
        /// Depends on such a sum: computed once per step.
        ONCE
    }

    /// What is known of one value; `axis` ≥ 0 carries the batch (MICRO), −1: the value differs between micro-batches as
    /// a whole.
    record Flow(Kind kind, int axis) {
        static final Flow INVARIANT = new Flow(Kind.INVARIANT, -1);
        static final Flow STEADY = new Flow(Kind.STEADY, -1);
        static final Flow SUM = new Flow(Kind.SUM, -1);
        static final Flow ONCE = new Flow(Kind.ONCE, -1);
        static final Flow WHOLE = new Flow(Kind.MICRO, -1);

        static Flow along(int axis) {
            return new Flow(Kind.MICRO, axis);
        }

        boolean micro() {
            return kind == Kind.MICRO;
        }
    }

    private final Graph graph;
    private final int batch;
    private final List<Flow> flows = new ArrayList<>();

    private BatchFlow(Graph graph, int batch) {
        this.graph = graph;
        this.batch = batch;
    }

    /// The flow of a graph whose inputs `batched` carry `batch` rows on axis 0 and `perMicroBatch` differ between
    /// micro-batches.
    static List<Flow> of(Graph graph, int batch, Set<String> batched, Set<String> perMicroBatch) {
        BatchFlow flow = new BatchFlow(graph, batch);
        for (Value value : graph.values()) {
            flow.flows.add(
                    value.op() instanceof Op.Input input
                            ? source(batched.contains(input.name()), perMicroBatch.contains(input.name()))
                            : flow.infer(value));
        }
        return flow.flows;
    }

    /// The flow when the whole batch is one micro-batch: rows may mix freely, and what follows a sum is like any other
    /// value.
    static List<Flow> single(Graph graph, Set<String> batched, Set<String> perMicroBatch) {
        List<Flow> flows = new ArrayList<>();
        for (Value value : graph.values()) {
            if (value.op() instanceof Op.Input input) {
                flows.add(source(batched.contains(input.name()), perMicroBatch.contains(input.name())));
            } else {
                Kind kind = value.op() instanceof Op.Weight ? Kind.STEADY : Kind.INVARIANT;
                for (Value operand : value.op().operands()) {
                    Kind other = flows.get(operand.id()).kind();
                    kind = other.compareTo(kind) > 0 ? other : kind;
                }
                flows.add(new Flow(kind, -1));
            }
        }
        return flows;
    }

    /// Composites that sum the batch away and go on computing: what they sum must be visible, so they are inlined
    /// first.
    static List<Value> hiddenSums(Graph graph, List<Flow> flows) {
        return graph.values().stream()
                .filter(value -> flows.get(value.id()).kind() == Kind.ONCE)
                .map(value -> value.op() instanceof Op.Result result ? result.composite() : value)
                .filter(value -> value.op() instanceof Op.Composite composite
                        && composite.operands().stream()
                                .anyMatch(operand -> flows.get(operand.id()).micro()))
                .distinct()
                .toList();
    }

    private static Flow source(boolean batched, boolean perMicroBatch) {
        return batched ? Flow.along(0) : perMicroBatch ? Flow.WHOLE : Flow.STEADY;
    }

    private Flow flow(Value value) {
        return flows.get(value.id());
    }

    private Flow infer(Value value) {
        Op op = value.op();
        boolean micro = op.operands().stream().anyMatch(v -> flow(v).micro());
        if (op instanceof Op.Result result) {
            return composite(value, (Op.Composite) result.composite().op(), result.index());
        }
        if (op instanceof Op.Composite composite) {
            return composite(value, composite, 0);
        }
        if (!micro) {
            if (op instanceof Op.Weight) {
                return Flow.STEADY;
            }
            Flow highest = Flow.INVARIANT;
            for (Value operand : op.operands()) {
                Kind kind = flow(operand).kind();
                Flow next = kind == Kind.SUM ? Flow.ONCE : flow(operand);
                highest = next.kind().compareTo(highest.kind()) > 0 ? next : highest;
            }
            return highest;
        }
        for (Value operand : op.operands()) {
            if (flow(operand).kind() == Kind.SUM || flow(operand).kind() == Kind.ONCE) {
                throw couples(value, "uses a sum over the batch, " + operand + ", for each of its rows and");
            }
        }
        return switch (op) {
            case Op.Input _, Op.Weight _, Op.Constant _, Op.Iota _ -> throw new IllegalStateException("a source");
            // Row r of axis 0 is drawn for row (first row + r) of the batch.
            case Op.RandomBits x -> x.shape().rank() == 0 ? Flow.WHOLE : Flow.along(0);
            case Op.Unary _, Op.Binary _, Op.Fma _, Op.Compare _, Op.Select _, Op.Convert _, Op.Bitcast _ ->
                pointwise(value);
            case Op.Broadcast x -> moved(x.x(), axis -> x.axes().get(axis));
            case Op.Reshape x -> moved(x.x(), axis -> reshaped(value, x.x().shape(), x.shape(), axis));
            case Op.Transpose x -> moved(x.x(), axis -> x.permutation().indexOf(axis));
            case Op.Slice x ->
                moved(x.x(), axis -> {
                    expect(value.shape().dim(axis) == x.x().shape().dim(axis), value, "takes a part of the rows and");
                    return axis;
                });
            case Op.Pad x ->
                moved(x.x(), axis -> {
                    expect(value.shape().dim(axis) == x.x().shape().dim(axis), value, "pads the batch and");
                    return axis;
                });
            case Op.Concatenate x -> {
                Flow common = pointwise(value);
                expect(common.axis() != x.axis(), value, "joins batches and");
                yield common;
            }
            case Op.Reverse x ->
                moved(x.x(), axis -> {
                    expect(!x.axes().contains(axis), value, "reverses the batch and");
                    return axis;
                });
            case Op.Gather x -> gather(value, x);
            case Op.ScatterAdd x -> scatterAdd(value, x);
            case Op.TakeAlong x -> along(value, x.axis());
            case Op.AddAlong x -> along(value, x.axis());
            case Op.ArgSort x -> along(value, x.axis());
            case Op.Cumulative x -> along(value, x.axis());
            case Op.Reduce x -> reduce(value, x);
            case Op.Dot x -> dot(value, x);
            case Op.Convolution x -> convolution(value, x);
            case Op.ReduceWindow x -> window(value, x.size(), x.window());
            case Op.ScatterWindowMax x -> window(value, x.size(), x.window());
            case Op.Custom x -> custom(value, x);
            case Op.Composite _, Op.Result _ -> throw new IllegalStateException("handled above");
        };
    }

    /// All operands that carry the batch do so on the same axis, which the result keeps.
    private Flow pointwise(Value value) {
        int axis = -1;
        for (Value operand : value.op().operands()) {
            int other = flow(operand).axis();
            expect(other < 0 || axis < 0 || other == axis, value, "meets the batch on two axes and");
            axis = Math.max(axis, other);
        }
        return Flow.along(axis);
    }

    private Flow moved(Value operand, java.util.function.IntUnaryOperator move) {
        int axis = flow(operand).axis();
        return axis < 0 ? Flow.WHOLE : Flow.along(move.applyAsInt(axis));
    }

    /// [P…, B·i, …] → the first axis that starts at the same row-major place and holds whole rows.
    private int reshaped(Value value, Shape from, Shape to, int axis) {
        long before = product(from, axis);
        long outer = 1;
        for (int i = 0; i < to.rank(); i++) {
            if (outer == before && to.dim(i) % batch == 0) {
                return i;
            }
            outer *= to.dim(i);
        }
        throw couples(value, "tears the rows of the batch apart and");
    }

    private Flow gather(Value value, Op.Gather x) {
        int axis = flow(x.x()).axis();
        int index = flow(x.indices()).axis();
        expect(axis < 0 || index < 0, value, "looks rows up by other rows and");
        if (index >= 0) {
            return Flow.along(x.axis() + index);
        }
        expect(axis < 0 || axis != x.axis(), value, "picks rows of the batch and");
        return axis < 0
                ? Flow.WHOLE
                : Flow.along(axis < x.axis() ? axis : axis + x.indices().shape().rank() - 1);
    }

    private Flow scatterAdd(Value value, Op.ScatterAdd x) {
        int rank = x.indices().shape().rank();
        int index = flow(x.indices()).axis();
        int update = flow(x.updates()).axis();
        boolean onIndex = update >= x.axis() && update < x.axis() + rank;
        if (index >= 0 || onIndex) {
            expect(
                    update < 0 || index < 0 || update == x.axis() + index,
                    value,
                    "scatters rows by the indices of other rows and");
            int place = index >= 0 ? index : update - x.axis();
            expect(product(x.indices().shape(), place) == 1, value, "sums the batch inside of another axis and");
            return Flow.SUM;
        }
        return update < 0 ? Flow.WHOLE : Flow.along(update < x.axis() ? update : update - rank + 1);
    }

    private Flow along(Value value, int axis) {
        Flow common = pointwise(value);
        expect(common.axis() != axis, value, "runs along the batch and");
        return common;
    }

    private Flow reduce(Value value, Op.Reduce x) {
        int axis = flow(x.x()).axis();
        if (axis < 0) {
            return Flow.WHOLE;
        }
        if (!x.axes().contains(axis)) {
            return Flow.along(
                    axis - (int) x.axes().stream().filter(a -> a < axis).count());
        }
        String kind = x.kind().name().toLowerCase(Locale.ROOT);
        expect(x.kind() == Op.ReduceKind.SUM, value, "takes the " + kind + " over the batch and");
        return Flow.SUM;
    }

    private Flow dot(Value value, Op.Dot x) {
        int a = flow(x.a()).axis();
        int b = flow(x.b()).axis();
        int contracted = a >= 0 ? x.contractA().indexOf(a) : -1;
        contracted = contracted < 0 && b >= 0 ? x.contractB().indexOf(b) : contracted;
        if (contracted >= 0) {
            expect(x.start() == null, value, "starts a sum over the batch from another value and");
            expect(
                    (a < 0 || x.contractA().indexOf(a) == contracted)
                            && (b < 0 || x.contractB().indexOf(b) == contracted),
                    value,
                    "contracts the batch of one operand only and");
            return Flow.SUM;
        }
        int fromA = a < 0
                ? -1
                : place(
                        a,
                        x.a().shape().rank(),
                        x.batchA(),
                        x.contractA(),
                        x.batchA().size());
        int freeA = x.a().shape().rank() - x.batchA().size() - x.contractA().size();
        int fromB = b < 0
                ? -1
                : place(
                        b,
                        x.b().shape().rank(),
                        x.batchB(),
                        x.contractB(),
                        x.batchB().size() + freeA);
        expect(fromA < 0 || fromB < 0 || fromA == fromB, value, "multiplies all rows with all rows and");
        int common = Math.max(fromA, fromB);
        int start = x.start() == null ? -1 : flow(x.start()).axis();
        expect(start < 0 || common < 0 || start == common, value, "meets the batch on two axes and");
        return Flow.along(Math.max(common, start));
    }

    /// Where operand axis `axis` of a dot lies in the result; free axes start at `free`.
    private static int place(int axis, int rank, List<Integer> batch, List<Integer> contract, int free) {
        if (batch.contains(axis)) {
            return batch.indexOf(axis);
        }
        int place = free;
        for (int i = 0; i < axis && i < rank; i++) {
            if (!batch.contains(i) && !contract.contains(i)) {
                place++;
            }
        }
        return place;
    }

    private Flow convolution(Value value, Op.Convolution x) {
        int in = flow(x.x()).axis();
        int kernel = flow(x.kernel()).axis();
        if (in == 1 && (kernel == 1 || kernel < 0) && x.groups() == 1) {
            return Flow.SUM;
        }
        if (kernel < 0 && in == 0 && x.batchGroups() == 1) {
            return Flow.along(0);
        }
        if (in < 0 && kernel == 0) {
            return Flow.along(1);
        }
        expect(in < 0 && kernel < 0, value, "convolves along the batch and");
        return Flow.WHOLE;
    }

    private Flow window(Value value, List<Integer> size, Op.Window window) {
        Flow common = pointwise(value);
        int axis = common.axis();
        if (axis >= 0) {
            boolean still = size.get(axis) == 1
                    && window.strides().get(axis) == 1
                    && window.low().get(axis) == 0
                    && window.high().get(axis) == 0
                    && window.inputDilation().get(axis) == 1;
            expect(still, value, "moves a window along the batch and");
        }
        return common;
    }

    /// A user's op works on rows: it keeps the batch on axis 0.
    private Flow custom(Value value, Op.Custom x) {
        for (Value operand : x.operands()) {
            boolean rows = flow(operand).axis() <= 0
                    && (flow(operand).axis() < 0
                            || (value.shape().rank() > 0
                                    && value.shape().dim(0) == operand.shape().dim(0)));
            expect(rows, value, "does not keep the batch on axis 0 and");
        }
        return pointwise(value);
    }

    /// The flow through the definition, given that of the operands.
    private Flow composite(Value value, Op.Composite composite, int index) {
        Graph definition = composite.function().definition();
        BatchFlow inside = new BatchFlow(definition, batch);
        List<Value> inputs = definition.inputs();
        int next = 0;
        for (Value inner : definition.values()) {
            if (inner.op() instanceof Op.Input) {
                inside.flows.add(flow(composite.operands().get(next++)));
            } else {
                try {
                    inside.flows.add(inside.infer(inner));
                } catch (IngotException e) {
                    throw new IngotException(
                            e.getMessage() + ", in " + composite.function().name() + " at " + value + where(value), e);
                }
            }
        }
        if (next != inputs.size()) {
            throw new IllegalStateException(composite.function().name() + ": inputs and operands differ");
        }
        Value result = List.copyOf(definition.outputs().values()).get(index);
        return inside.flow(result);
    }

    private void expect(boolean condition, Value value, String what) {
        if (!condition) {
            throw couples(value, what);
        }
    }

    private IngotException couples(Value value, String what) {
        String op = value.op().getClass().getSimpleName().toLowerCase(Locale.ROOT);
        return new IngotException(op + " at " + value + where(value) + " " + what
                + " couples the rows of a batch (batch normalisation?); use train.micro-batch = batch");
    }

    private String where(Value value) {
        String scope = graph.scope(value);
        return scope.isEmpty() ? "" : " (" + scope + ")";
    }

    private static long product(Shape shape, int axes) {
        long n = 1;
        for (int i = 0; i < axes; i++) {
            n *= shape.dim(i);
        }
        return n;
    }
}
