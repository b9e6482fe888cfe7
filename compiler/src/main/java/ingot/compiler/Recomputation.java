package ingot.compiler;

import ingot.ir.Value;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/// Pointwise values that several kernels need and that are computed again in each of them instead of being stored.
///
/// The rule: memory traffic. Storing v costs its bytes twice (a write also fetches the line) and once per kernel that
/// reads it; computing it again costs the bytes that those kernels would have to read in addition. Recompute what is
/// cheaper that way, when it is at most
/// `MAX_WEIGHT` simple ops, and when it keeps at most one value of v's size alive in v's stead; two for a single column sum, which
/// reads them while they are in use anyway.
final class Recomputation {
    static final int MAX_WEIGHT = 24;

    private final Places places;
    private final Fusion fusion;
    private final Set<Value> recomputed = new HashSet<>();

    private Recomputation(Places places, Fusion fusion) {
        this.places = places;
        this.fusion = fusion;
    }

    static Set<Value> of(Places places, Fusion fusion, List<Value> values) {
        Recomputation recomputation = new Recomputation(places, fusion);
        for (Value value : values) {
            if (places.role(value) == Places.Role.FUSED && Places.isPointwise(value.op())) {
                recomputation.consider(value);
            }
        }
        return recomputation.recomputed;
    }

    private void consider(Value value) {
        Fusion.Group own = fusion.group(value);
        Set<Fusion.Group> readers = new LinkedHashSet<>();
        for (Value consumer : places.consumers(value)) {
            Fusion.Group group = fusion.group(consumer);
            if (group == null) {
                return; // stored for a kernel that is not fused
            }
            if (group != own) {
                readers.add(group);
            }
        }
        if (readers.isEmpty() || places.isSeen(value)) {
            return;
        }
        Set<Value> through = new LinkedHashSet<>();
        Set<Value> sources = new LinkedHashSet<>();
        explore(value, through, sources);
        int weight = through.stream().mapToInt(v -> Weights.of(v.op())).sum();
        long large = sources.stream().filter(s -> isLarge(s, value)).count();
        boolean column = readers.size() == 1 && readers.iterator().next().isColumn();
        if (weight > MAX_WEIGHT || large > (column ? 2 : 1)) {
            return;
        }
        long cost = 0;
        for (Fusion.Group reader : readers) {
            if (reader.full != value.shape().elements()) {
                return;
            }
            for (Value source : sources) {
                if (isLarge(source, value) && !reads(reader, source)) {
                    cost += source.type().bytes();
                }
            }
        }
        // A source that is not stored yet has to be.
        for (Value source : sources) {
            if (!isStored(source)) {
                cost += source.type().bytes() * (2 + readers.size());
            }
        }
        if (cost >= value.type().bytes() * (2 + readers.size())) {
            return;
        }
        Set<Value> with = new HashSet<>(recomputed);
        with.addAll(through);
        for (Fusion.Group reader : readers) {
            if (Body.of(
                            places,
                            reader.space,
                            reader.members,
                            with,
                            stores(places, reader, List.copyOf(reader.members.keySet())))
                    .isEmpty()) {
                return;
            }
        }
        recomputed.addAll(through);
    }

    /// What `value` is computed from: values that are stored, or reductions.
    private void explore(Value value, Set<Value> through, Set<Value> sources) {
        if (!through.add(value)) {
            return;
        }
        for (Value operand : value.op().operands()) {
            Value root = places.root(operand);
            switch (places.role(root)) {
                case CHEAP -> {}
                case FUSED -> {
                    boolean passes = Places.isPointwise(root.op())
                            && root.shape().elements() == value.shape().elements()
                            && (recomputed.contains(root) || !isStored(root));
                    if (passes) {
                        explore(root, through, sources);
                    } else {
                        sources.add(root);
                    }
                }
                case LEAF, ANCHOR, VIEW, ABSORBED -> sources.add(root);
            }
        }
    }

    private static boolean isLarge(Value source, Value value) {
        return source.shape().elements() * 4 > value.shape().elements();
    }

    /// True when a value is in memory anyway.
    private boolean isStored(Value root) {
        if (places.role(root) != Places.Role.FUSED) {
            return true;
        }
        if (recomputed.contains(root)) {
            return false;
        }
        Fusion.Group own = fusion.group(root);
        return places.isSeen(root)
                || places.consumers(root).stream().anyMatch(consumer -> fusion.group(consumer) != own);
    }

    private boolean reads(Fusion.Group group, Value source) {
        return group.members.keySet().stream()
                .flatMap(member -> member.op().operands().stream())
                .anyMatch(operand -> places.root(operand).equals(source));
    }

    /// How a group's kernel stores some of its members.
    static List<Body.Store> stores(Places places, Fusion.Group group, List<Value> values) {
        List<Body.Store> stores = new ArrayList<>();
        for (Value value : values) {
            stores.add(new Body.Store(
                    value,
                    null,
                    Boolean.TRUE.equals(group.members.get(value)),
                    places.buffer(value),
                    places.layout(value)));
        }
        return stores;
    }
}
