package ingot.autodiff;

import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Value;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// What has reached each value so far in one reverse sweep; a value that nothing reached has no entry, never a zero
/// tensor.
final class Cotangents {
    private record Contribution(Value operand, Value cotangent) {}

    private final GraphBuilder builder;
    private final BitSet varying = new BitSet();
    private final Map<Value, Deque<Value>> pending = new HashMap<>();
    private final Map<Value, SortedMap<Integer, Value>> results = new HashMap<>();
    private final Map<Value, Value> totals = new HashMap<>();
    private final List<Contribution> ofUser = new ArrayList<>();

    Cotangents(GraphBuilder builder, List<Value> forward, List<Value> wrt, Set<Value> leaves) {
        this.builder = builder;
        wrt.forEach(value -> varying.set(value.id()));
        for (Value value : forward) {
            boolean carries = value.dtype().isFloating() || value.op() instanceof Op.Composite;
            if (carries
                    && !leaves.contains(value)
                    && value.op().operands().stream().anyMatch(v -> varying.get(v.id()))) {
                varying.set(value.id());
            }
        }
    }

    /// True when `value` depends on what is differentiated against and can carry a cotangent.
    boolean wants(Value value) {
        return varying.get(value.id()) && value.dtype().isFloating();
    }

    void seed(Value output, Value cotangent) {
        pending.computeIfAbsent(output, v -> new ArrayDeque<>()).addLast(cotangent);
    }

    /// Records what the current user hands to `operand`, if that is wanted at all.
    void add(Value operand, Supplier<Value> cotangent) {
        if (wants(operand)) {
            add(operand, cotangent.get());
        }
    }

    void add(Value operand, Value cotangent) {
        if (!operand.type().equals(cotangent.type())) {
            throw new IllegalStateException("cotangent " + cotangent.type() + " for " + operand + " : " + operand.type()
                    + " of " + operand.op().getClass().getSimpleName());
        }
        ofUser.add(new Contribution(operand, cotangent));
    }

    /// Users come in descending order, so each one's contributions go in front of those recorded before.
    void endOfUser() {
        for (Contribution contribution : ofUser.reversed()) {
            pending.computeIfAbsent(contribution.operand(), v -> new ArrayDeque<>())
                    .addFirst(contribution.cotangent());
        }
        ofUser.clear();
    }

    /// Result `index` ≥ 1 of a composite has its cotangent; it waits until the composite itself is visited.
    void addResult(Value composite, int index, Value cotangent) {
        results.computeIfAbsent(composite, v -> new TreeMap<>()).put(index, cotangent);
    }

    @Nullable
    Value result(Value composite, int index) {
        SortedMap<Integer, Value> found = results.get(composite);
        return found == null ? null : found.get(index);
    }

    boolean reached(Value value) {
        return pending.containsKey(value) || results.containsKey(value);
    }

    /// The sum of all contributions in their fixed order.
    @Nullable
    Value total(Value value) {
        Deque<Value> contributions = pending.remove(value);
        if (contributions == null) {
            return null;
        }
        Value sum = contributions.removeFirst();
        for (Value next : contributions) {
            sum = builder.add(new Op.Binary(Op.BinaryKind.ADD, sum, next));
        }
        totals.put(value, sum);
        return sum;
    }

    @Nullable
    Value ofTotal(Value value) {
        return totals.get(value);
    }
}
