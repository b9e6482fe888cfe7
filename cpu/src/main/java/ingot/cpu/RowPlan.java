package ingot.cpu;

import ingot.compiler.Kernel;
import ingot.ir.DType;
import ingot.ir.Op;
import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// A row kernel cut into passes at its reductions.
///
/// The depth of a value is the number of reductions on the longest way to it. Stage d first computes the numbers of
/// depth d (one per row, for a block of rows at a time), then runs along each row: it writes the elements of depth d
/// and reduces them to numbers of depth d + 1. What a later stage needs of an earlier one is computed again, or stashed
/// if that is expensive.
final class RowPlan {
    /// From this many additions' worth of work on a value is stashed rather than computed again.
    private static final int EXPENSIVE = 10;

    /// One of the two passes of a stage. `writes` tells where its outputs go: an argument, a slot or a stash each.
    record Step(boolean alongRow, PassBuilder builder, List<Source> writes, List<Source.Slot> reduced) {}

    private final Kernel.Row kernel;
    private final int rank;
    private final Map<Value, Integer> depths = new HashMap<>();
    private final Map<Value, Integer> costs = new HashMap<>();
    private final Map<Value, Source.Slot> slots = new HashMap<>();
    private final Map<Value, Source.Stash> stashes = new HashMap<>();
    private final List<List<Value>> slotted = new ArrayList<>();
    private final List<List<Value>> stashed = new ArrayList<>();
    private final List<List<Value>> reduced = new ArrayList<>();
    private final List<Step> steps = new ArrayList<>();

    private RowPlan(Kernel.Row kernel) {
        this.kernel = kernel;
        rank = kernel.space().rank();
    }

    static RowPlan of(Kernel.Row kernel) {
        RowPlan plan = new RowPlan(kernel);
        plan.cut();
        return plan;
    }

    /// In the order of execution.
    List<Step> steps() {
        return steps;
    }

    int slots() {
        return slots.size();
    }

    int stashes() {
        return stashes.size();
    }

    private void cut() {
        List<Value> outputs = new ArrayList<>();
        int deepest = 0;
        for (int w = 0; w < kernel.writes().size(); w++) {
            Value output = kernel.body().output(Integer.toString(w));
            outputs.add(output);
            deepest = Math.max(deepest, depth(output));
        }
        for (int d = 0; d <= deepest; d++) {
            slotted.add(new ArrayList<>());
            stashed.add(new ArrayList<>());
            reduced.add(new ArrayList<>());
        }
        // Last first: what a stage asks of earlier stages is known before they are built.
        for (int d = deepest; d >= 0; d--) {
            Step along = alongRow(d, outputs);
            if (!along.builder().isEmpty()) {
                steps.addFirst(along);
            }
            Step numbers = numbers(d, outputs);
            if (!numbers.builder().isEmpty()) {
                steps.addFirst(numbers);
            }
        }
    }

    private Step alongRow(int depth, List<Value> outputs) {
        var builder = new PassBuilder(value -> isElement(value) ? stash(value, depth) : slot(value));
        List<Source> writes = new ArrayList<>();
        for (int w = 0; w < outputs.size(); w++) {
            Value output = outputs.get(w);
            if (isElement(output) && depth(output) == depth) {
                builder.write(builder.scalar(output));
                writes.add(new Source.Argument(kernel.reads().size() + w, output.dtype()));
            }
        }
        for (Value value : stashed.get(depth)) {
            builder.write(builder.scalar(value));
            writes.add(source(stashes, value));
        }
        List<Source.Slot> results = new ArrayList<>();
        for (Value value : reduced.get(depth)) {
            Op.Reduce reduce = (Op.Reduce) value.op();
            Value x = builder.scalar(reduce.x());
            builder.reduce(
                    reduce.kind(), x.dtype() == DType.BOOL ? builder.graph().convert(x, DType.I32) : x);
            results.add(source(slots, value));
        }
        return new Step(true, builder, writes, results);
    }

    private Step numbers(int depth, List<Value> outputs) {
        var builder =
                new PassBuilder(value -> value.op() instanceof Op.Reduce || depth(value) < depth ? slot(value) : null);
        List<Source> writes = new ArrayList<>();
        for (int w = 0; w < outputs.size(); w++) {
            Value output = outputs.get(w);
            if (!isElement(output) && depth(output) == depth) {
                builder.write(builder.scalar(output));
                writes.add(new Source.Argument(kernel.reads().size() + w, output.dtype()));
            }
        }
        for (Value value : slotted.get(depth)) {
            Value x = builder.scalar(value);
            builder.write(x.dtype() == DType.BOOL ? builder.graph().convert(x, DType.I32) : x);
            writes.add(source(slots, value));
        }
        return new Step(false, builder, writes, List.of());
    }

    private static <S extends Source> S source(Map<Value, S> known, Value value) {
        S source = known.get(value);
        if (source == null) {
            throw new IllegalStateException("row: " + value + " was not asked for");
        }
        return source;
    }

    /// The slot of a number, asked for on the way; null for what is read or known anyway.
    private @Nullable Source slot(Value value) {
        if (value.op() instanceof Op.Input || value.op() instanceof Op.Iota || isConstant(value)) {
            return null;
        }
        Source.Slot slot = slots.get(value);
        if (slot == null) {
            slot = new Source.Slot(slots.size(), value.dtype() == DType.BOOL ? DType.I32 : value.dtype());
            slots.put(value, slot);
            if (value.op() instanceof Op.Reduce reduce) {
                if (reduce.segments() != 1 || !isElement(reduce.x())) {
                    throw new UnsupportedPassException(
                            "a row reduction of " + reduce.x().type());
                }
                reduced.get(depth(reduce.x())).add(value);
            } else {
                slotted.get(depth(value)).add(value);
            }
        }
        return slot;
    }

    private @Nullable Source stash(Value value, int depth) {
        if (depth(value) >= depth || value.dtype() == DType.BOOL || cost(value) < EXPENSIVE) {
            return null;
        }
        Source.Stash stash = stashes.get(value);
        if (stash == null) {
            stash = new Source.Stash(stashes.size(), value.dtype());
            stashes.put(value, stash);
            stashed.get(depth(value)).add(value);
        }
        return stash;
    }

    private boolean isElement(Value value) {
        return value.shape().rank() == rank;
    }

    private static boolean isConstant(Value value) {
        return value.op() instanceof Op.Constant
                || value.op() instanceof Op.Broadcast broadcast && isConstant(broadcast.x());
    }

    private int depth(Value value) {
        Integer known = depths.get(value);
        if (known == null) {
            int depth = 0;
            for (Value operand : value.op().operands()) {
                depth = Math.max(depth, depth(operand));
            }
            known = value.op() instanceof Op.Reduce ? depth + 1 : depth;
            depths.put(value, known);
        }
        return known;
    }

    /// Additions' worth of work to compute an element from what is in memory.
    private int cost(Value value) {
        if (!isElement(value)) {
            return 0;
        }
        Integer known = costs.get(value);
        if (known == null) {
            int cost = switch (value.op()) {
                case Op.Input _, Op.Iota _, Op.Broadcast _, Op.Constant _ -> 0;
                case Op.Unary op when op.kind() == UnaryKind.SQRT -> 6;
                case Op.Unary op -> op.kind().compareTo(UnaryKind.EXP) >= 0 && op.kind() != UnaryKind.NOT ? 20 : 1;
                case Op.Binary op when op.kind() == BinaryKind.POWER -> 60;
                case Op.Binary op -> op.kind() == BinaryKind.DIVIDE || op.kind() == BinaryKind.REMAINDER ? 6 : 1;
                default -> 1;
            };
            for (Value operand : value.op().operands()) {
                cost = Math.min(1000, cost + cost(operand));
            }
            known = cost;
            costs.put(value, known);
        }
        return known;
    }
}
