package ingot.compiler;

import ingot.ir.Graph;
import ingot.ir.Op;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Turns a graph into kernels: views become layouts, contractions matrix products, the rest fused maps, rows and
/// columns.
///
/// The order: canonical form → places (where each value lies) → fusion (who shares a kernel) → recomputation (what is
/// not stored after all) → kernels, from the results back to what they need → calls in order.
public final class Lowering {
    private final Graph graph;
    private final Buffers buffers = new Buffers();
    private final Places places;
    private final Fusion fusion;
    private final Set<Value> recomputed;
    private final Anchors anchors;
    private final BitSet demanded = new BitSet();
    private final List<Unit> units = new ArrayList<>();

    /// The calls for one group or anchor, the roots they define and the roots they read.
    private record Unit(List<Draft> calls, List<Value> defines, Set<Value> reads) {}

    /// A call over buffers.
    record Draft(Kernel kernel, List<Part> operands) {}

    /// A byte of a buffer.
    record Part(int buffer, long byteOffset) {}

    private Lowering(Graph graph) {
        this.graph = graph;
        places = new Places(graph, buffers);
        fusion = Fusion.of(places, graph.values());
        recomputed = Recomputation.of(places, fusion, graph.values());
        fusion.pairSiblings(graph.values(), recomputed);
        anchors = new Anchors(places, buffers, this::copy);
    }

    public static Lowered lower(Graph graph) {
        return new Lowering(Canonical.of(graph)).run(inputs(graph));
    }

    /// Types of the inputs and weights in graph order.
    private static List<Type> inputs(Graph graph) {
        return graph.values().stream()
                .filter(value -> value.op() instanceof Op.Input || value.op() instanceof Op.Weight)
                .map(Value::type)
                .toList();
    }

    private Lowered run(List<Type> inputs) {
        List<Value> outputs = List.copyOf(graph.outputs().values());
        outputs.forEach(output -> demand(places.root(output)));
        List<Value> work = new ArrayList<>();
        Set<Fusion.Group> seen = new LinkedHashSet<>();
        for (Value value : graph.values()) {
            Fusion.Group group = fusion.group(value);
            boolean leads = group != null && seen.add(group);
            if (leads || places.role(value) == Places.Role.ANCHOR) {
                work.add(value);
            }
        }
        work.sort(Comparator.comparingInt(value -> -fusion.depth(value)));
        for (Value value : work) {
            Fusion.Group group = fusion.group(value);
            if (group != null) {
                lower(group);
            } else if (demanded.get(value.id())) {
                anchor(value);
            }
        }
        List<@Nullable Part> results = new ArrayList<>();
        for (int i = 0; i < outputs.size(); i++) {
            results.add(result(outputs.get(i), i));
        }
        List<Draft> drafts = ordered();
        for (int i = 0; i < outputs.size(); i++) {
            if (results.get(i) == null) {
                int buffer = buffers.add(outputs.get(i).type().bytes());
                buffers.bindOutput(buffer, i);
                drafts.addAll(copy(
                        outputs.get(i), buffer, Layout.rowMajor(outputs.get(i).type())));
                results.set(i, new Part(buffer, 0));
            }
        }
        List<Lowered.Call> calls = new ArrayList<>();
        for (Draft draft : drafts) {
            calls.add(new Lowered.Call(
                    draft.kernel(), draft.operands().stream().map(this::operand).toList()));
        }
        List<Type> types = outputs.stream().map(Value::type).toList();
        List<Lowered.Operand> operands = results.stream().map(this::operand).toList();
        return new Lowered(inputs, types, buffers.constants(), buffers.temporaries(), calls, operands);
    }

    private Lowered.Operand operand(@Nullable Part part) {
        if (part == null) {
            throw new IllegalStateException("lower: a result without a place");
        }
        return buffers.operand(part.buffer(), part.byteOffset());
    }

    // ---- units, users first

    private void demand(Value root) {
        demanded.set(root.id());
    }

    private void lower(Fusion.Group group) {
        List<Value> stored = group.members.keySet().stream()
                .filter(member -> demanded.get(member.id()))
                .toList();
        if (stored.isEmpty()) {
            return;
        }
        Body.Code code = Body.of(
                        places, group.space, group.members, recomputed, Recomputation.stores(places, group, stored))
                .orElseThrow(() -> new IllegalStateException("lower: no layouts for the kernel of " + stored));
        code.reads().forEach(this::demand);
        units.add(new Unit(List.of(draft(code)), stored, code.reads()));
    }

    private void anchor(Value value) {
        Set<Value> reads = new LinkedHashSet<>();
        for (Value operand : places.reads(value)) {
            Value root = places.root(operand);
            if (places.role(root) != Places.Role.CHEAP) {
                reads.add(root);
            }
        }
        reads.forEach(this::demand);
        List<Draft> calls = value.shape().elements() == 0 ? List.of() : anchors.lower(value);
        units.add(new Unit(calls, List.of(value), reads));
    }

    private static Draft draft(Body.Code code) {
        return new Draft(
                code.kernel(),
                code.operands().stream()
                        .map(access -> new Part(access.buffer(), access.layout().byteOffset()))
                        .toList());
    }

    private List<Draft> copy(Value value, int buffer, Layout to) {
        return copy(value, null, buffer, to);
    }

    /// A kernel that stores any value, or a view of it, somewhere.
    private List<Draft> copy(Value value, @Nullable Op view, int buffer, Layout to) {
        if (to.shape().elements() == 0) {
            return List.of();
        }
        Space space = Space.of(List.of(to.shape()), List.of(), null).orElseThrow();
        List<Body.Store> store = List.of(new Body.Store(value, view, false, buffer, to));
        return List.of(draft(Body.of(places, space, Map.of(), Set.of(), store)
                .orElseThrow(() -> new IllegalStateException("lower: no copy of " + value + " to " + to))));
    }

    // ---- results and order

    /// Where a result lies without a copy, or null.
    private @Nullable Part result(Value output, int index) {
        Value root = places.root(output);
        if (places.role(root) == Places.Role.CHEAP || !places.layout(output).isRowMajor()) {
            return null;
        }
        int buffer = places.buffer(root);
        Layout layout = places.layout(output);
        if (!buffers.isBound(buffer)) {
            if (layout.offset() != 0 || buffers.bytes(buffer) != output.type().bytes()) {
                return null;
            }
            buffers.bindOutput(buffer, index);
        }
        return new Part(buffer, layout.byteOffset());
    }

    /// All calls, every value before its readers, otherwise in the order of the graph.
    private List<Draft> ordered() {
        Map<Value, Integer> definedBy = new HashMap<>();
        for (int i = 0; i < units.size(); i++) {
            for (Value value : units.get(i).defines()) {
                definedBy.put(value, i);
            }
        }
        int[] waiting = new int[units.size()];
        List<List<Integer>> next = new ArrayList<>();
        int[] rank = new int[units.size()];
        for (int i = 0; i < units.size(); i++) {
            next.add(new ArrayList<>());
            rank[i] = units.get(i).defines().stream().mapToInt(Value::id).max().orElse(0);
        }
        for (int i = 0; i < units.size(); i++) {
            for (Value read : units.get(i).reads()) {
                Integer source = definedBy.get(read);
                if (source != null) {
                    waiting[i]++;
                    next.get(source).add(i);
                }
            }
        }
        PriorityQueue<Integer> ready = new PriorityQueue<>(Comparator.comparingInt(i -> rank[i]));
        for (int i = 0; i < waiting.length; i++) {
            if (waiting[i] == 0) {
                ready.add(i);
            }
        }
        List<Draft> drafts = new ArrayList<>();
        int done = 0;
        while (!ready.isEmpty()) {
            int unit = ready.remove();
            done++;
            drafts.addAll(units.get(unit).calls());
            for (int user : next.get(unit)) {
                if (--waiting[user] == 0) {
                    ready.add(user);
                }
            }
        }
        if (done != units.size()) {
            throw new IllegalStateException("lower: kernels of " + graph.name() + " depend on each other in a circle, "
                    + Arrays.toString(waiting));
        }
        return drafts;
    }
}
