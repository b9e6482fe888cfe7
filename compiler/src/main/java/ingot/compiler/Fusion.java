package ingot.compiler;

import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Which pointwise ops and reductions share a kernel.
///
/// Greedy in topological order: a value joins the groups of its operands when all members live in one index space (or
/// its rows), no path leaves the group and comes back, and the kernel stays small. Groups that a value brings together
/// become one.
final class Fusion {
    /// Limits that keep a kernel good for the just-in-time compiler.
    static final int MAX_WEIGHT = 260;

    static final int MAX_READS = 12;

    /// One kernel to be: members in topological order, each in the full space or (true) in the outer one.
    static final class Group {
        final int unit;
        final LinkedHashMap<Value, Boolean> members;
        final Space space;
        final long full;

        Group(int unit, LinkedHashMap<Value, Boolean> members, Space space, long full) {
            this.unit = unit;
            this.members = members;
            this.space = space;
            this.full = full;
        }

        Space.@Nullable Block block() {
            return space.block();
        }

        boolean isColumn() {
            return space.block() != null && space.block().isColumn();
        }
    }

    private final Places places;
    private final @Nullable Group[] groups; // by value id
    private final int[] units; // by value id; a group has the unit of its first member
    private final BitSet[] above; // by unit: all units it depends on

    private Fusion(Places places, List<Value> values) {
        this.places = places;
        groups = new Group[values.size()];
        units = new int[values.size()];
        above = new BitSet[values.size()];
        for (int i = 0; i < units.length; i++) {
            units[i] = i;
            above[i] = new BitSet();
        }
    }

    static Fusion of(Places places, List<Value> values) {
        Fusion fusion = new Fusion(places, values);
        for (Value value : values) {
            switch (places.role(value)) {
                case LEAF, CHEAP, VIEW, ABSORBED -> {}
                case ANCHOR -> fusion.depend(value.id(), places.reads(value));
                case FUSED -> fusion.place(value);
            }
        }
        return fusion;
    }

    @Nullable
    Group group(Value root) {
        return groups[root.id()];
    }

    /// Depends on how many: larger is later.
    int depth(Value root) {
        return above[units[root.id()]].cardinality();
    }

    private void depend(int unit, List<Value> operands) {
        for (Value operand : operands) {
            dependOn(above[unit], operand);
        }
    }

    private void dependOn(BitSet set, Value operand) {
        Value root = places.root(operand);
        switch (places.role(root)) {
            case FUSED, ANCHOR -> {
                set.set(units[root.id()]);
                set.or(above[units[root.id()]]);
            }
            case LEAF, CHEAP, VIEW, ABSORBED -> {}
        }
    }

    private void place(Value value) {
        LinkedHashSet<Group> found = new LinkedHashSet<>();
        for (Value operand : value.op().operands()) {
            Group group = groups[places.root(operand).id()];
            if (group != null) {
                found.add(group);
            }
        }
        List<Group> candidates = new ArrayList<>(found);
        candidates.sort(Comparator.<Group>comparingLong(group -> -group.full).thenComparing(group -> -group.unit));
        List<Group> chosen = List.of();
        Group best = null;
        for (Group candidate : candidates) {
            List<Group> more = new ArrayList<>(chosen);
            more.add(candidate);
            Optional<Group> joined = join(more, value);
            if (joined.isPresent()) {
                chosen = more;
                best = joined.get();
            }
        }
        commit(best != null ? best : join(List.of(), value).orElseThrow(), chosen, value);
    }

    /// Puts `group` in the stead of its parts; `value` is its new member.
    private void commit(Group group, List<Group> parts, @Nullable Value value) {
        BitSet dependencies = above[group.unit];
        int before = dependencies.cardinality();
        for (Group part : parts) {
            dependencies.or(above[part.unit]);
        }
        group.members.keySet().forEach(member -> groups[member.id()] = group);
        for (Group part : parts) {
            if (part.unit != group.unit) {
                part.members.keySet().forEach(member -> units[member.id()] = group.unit);
            }
        }
        if (value != null) {
            units[value.id()] = group.unit;
            depend(group.unit, value.op().operands());
        }
        for (Group part : parts) {
            dependencies.clear(part.unit);
        }
        dependencies.clear(group.unit);
        if (parts.isEmpty() || parts.size() == 1 && dependencies.cardinality() == before) {
            return;
        }
        // Whatever depended on a part depends on the whole, and so on all that the whole depends on.
        for (BitSet other : above) {
            for (Group part : parts) {
                if (other != dependencies && other.get(part.unit)) {
                    other.clear(part.unit);
                    other.set(group.unit);
                    other.or(dependencies);
                }
            }
        }
    }

    /// One group of all members and `value`, if that is a kernel.
    private Optional<Group> join(List<Group> parts, @Nullable Value value) {
        Space.Block block = value != null && value.op() instanceof Op.Reduce reduce ? Space.Block.of(reduce) : null;
        long full = value == null || block == null
                ? -1
                : value.op().operands().getFirst().shape().elements();
        for (Group part : parts) {
            if (part.block() != null) {
                if (block != null && !(block.equals(part.block()) && full == part.full)) {
                    return Optional.empty();
                }
                block = part.block();
                full = part.full;
            }
        }
        if (full < 0) {
            full = parts.isEmpty() && value != null ? value.shape().elements() : parts.getFirst().full;
        }
        LinkedHashMap<Value, Boolean> members = new LinkedHashMap<>();
        for (Group part : parts) {
            boolean rows = part.full != full;
            if (rows && (block == null || part.block() != null || part.full * block.length() != full)) {
                return Optional.empty();
            }
            part.members.forEach((member, outer) -> members.put(member, rows || outer));
        }
        if (cycles(parts, members, value)) {
            return Optional.empty();
        }
        if (value == null) {
            return group(parts.getFirst().unit, members, block, full);
        }
        int unit = parts.isEmpty() ? value.id() : parts.getFirst().unit;
        for (boolean outer : new boolean[] {false, true}) {
            long elements = outer && block != null ? full / block.length() : full;
            boolean possible = value.op() instanceof Op.Reduce ? outer : !outer || block != null;
            if (possible && value.shape().elements() == elements) {
                LinkedHashMap<Value, Boolean> all = new LinkedHashMap<>(members);
                all.put(value, outer);
                Optional<Group> group = group(unit, all, block, full);
                if (group.isPresent()) {
                    return group;
                }
            }
        }
        return Optional.empty();
    }

    /// True when something outside depends on a part and a part, or the new value, on it.
    private boolean cycles(List<Group> parts, Map<Value, Boolean> members, @Nullable Value value) {
        BitSet inside = new BitSet();
        BitSet outside = new BitSet();
        for (Group part : parts) {
            inside.set(part.unit);
            outside.or(above[part.unit]);
        }
        if (value != null) {
            for (Value operand : value.op().operands()) {
                if (!members.containsKey(places.root(operand))) {
                    dependOn(outside, operand);
                }
            }
        }
        outside.andNot(inside);
        for (int unit = outside.nextSetBit(0); unit >= 0; unit = outside.nextSetBit(unit + 1)) {
            if (above[unit].intersects(inside)) {
                return true;
            }
        }
        return false;
    }

    private Optional<Group> group(
            int unit, LinkedHashMap<Value, Boolean> members, Space.@Nullable Block block, long full) {
        List<Shape> fullShapes = new ArrayList<>();
        List<Shape> outerShapes = new ArrayList<>();
        int weight = 0;
        for (var member : members.entrySet()) {
            (member.getValue() ? outerShapes : fullShapes).add(member.getKey().shape());
            if (member.getKey().op() instanceof Op.Reduce reduce) {
                fullShapes.add(reduce.x().shape());
            }
            weight += Weights.of(member.getKey().op());
        }
        Optional<Space> space =
                weight > MAX_WEIGHT && members.size() > 1 ? Optional.empty() : Space.of(fullShapes, outerShapes, block);
        return space.map(s -> new Group(unit, members, s, full)).filter(this::isKernel);
    }

    /// Members see each other element by element or row by row, everything else by layouts over the space.
    private boolean isKernel(Group group) {
        Set<Value> reads = new HashSet<>();
        for (var member : group.members.entrySet()) {
            boolean outer = member.getValue() && !(member.getKey().op() instanceof Op.Reduce);
            for (Value operand : member.getKey().op().operands()) {
                Value root = places.root(operand);
                if (group.members.containsKey(root)) {
                    if (!sees(group, operand, outer)) {
                        return false;
                    }
                } else if (!readable(group.space, operand, outer)) {
                    return false;
                } else if (places.role(root) != Places.Role.CHEAP) {
                    reads.add(operand);
                }
            }
            if (group.space
                    .of(places.layout(member.getKey()), member.getValue())
                    .isEmpty()) {
                return false;
            }
            if (group.isColumn()
                    && !member.getValue()
                    && (places.isSeen(member.getKey())
                            || !group.members.keySet().containsAll(places.consumers(member.getKey())))) {
                return false;
            }
        }
        return reads.size() <= MAX_READS || group.members.size() == 1;
    }

    private boolean sees(Group group, Value operand, boolean outer) {
        Value root = places.root(operand);
        Layout map = places.map(operand);
        boolean from = Boolean.TRUE.equals(group.members.get(root));
        if (map == null) {
            return false;
        }
        return from == outer && isIdentity(map, root) || from && !outer && !group.isColumn() && group.space.isRow(map);
    }

    static boolean isIdentity(Layout map, Value root) {
        return map.offset() == 0
                && map.isRowMajor()
                && map.shape().elements() == root.shape().elements();
    }

    private boolean readable(Space space, Value operand, boolean outer) {
        if (places.role(operand) == Places.Role.CHEAP) {
            return places.leaves(operand).stream()
                    .allMatch(leaf -> space.of(leaf, outer).isPresent());
        }
        return space.of(places.layout(operand), outer).isPresent();
    }

    /// Kernels of one kind over one space become one when one of them reads no large values but such that the other
    /// reads too (column sums: when they have one in common, their results are small). To be done when it is known what
    /// is recomputed.
    void pairSiblings(List<Value> values, Set<Value> recomputed) {
        List<Group> done = new ArrayList<>();
        for (Value value : values) {
            Group group = groups[value.id()];
            if (group == null || done.contains(group)) {
                continue;
            }
            Group into = null;
            Group merged = null;
            Set<Read> reads = reads(group, recomputed);
            for (Group other : done) {
                if (other.full == group.full
                        && Objects.equals(other.block(), group.block())
                        && isShared(reads, reads(other, recomputed), group.isColumn())) {
                    Optional<Group> both = join(List.of(other, group), null).filter(g -> isWritable(g, recomputed));
                    if (both.isPresent()) {
                        into = other;
                        merged = both.get();
                        break;
                    }
                }
            }
            if (into != null && merged != null) {
                commit(merged, List.of(into, group), null);
                done.remove(into);
                done.add(merged);
            } else {
                done.add(group);
            }
        }
    }

    private boolean isWritable(Group group, Set<Value> recomputed) {
        List<Body.Store> stores = Recomputation.stores(places, group, List.copyOf(group.members.keySet()));
        return Body.of(places, group.space, group.members, recomputed, stores).isPresent();
    }

    /// Elements of a stored value.
    private record Read(Value root, Layout layout) {}

    private static boolean isShared(Set<Read> a, Set<Read> b, boolean column) {
        return column
                ? a.stream().anyMatch(b::contains)
                : !a.isEmpty() && !b.isEmpty() && (a.containsAll(b) || b.containsAll(a));
    }

    /// What a group reads in its full space.
    private Set<Read> reads(Group group, Set<Value> recomputed) {
        Set<Read> reads = new HashSet<>();
        group.members.keySet().forEach(member -> reads(group, member, recomputed, reads));
        return reads;
    }

    private void reads(Group group, Value reader, Set<Value> recomputed, Set<Read> reads) {
        for (Value operand : reader.op().operands()) {
            Value root = places.root(operand);
            if (group.members.containsKey(root) || places.role(root) == Places.Role.CHEAP) {
                continue;
            }
            if (recomputed.contains(root)) {
                reads(group, root, recomputed, reads);
            } else if (root.shape().elements() * 2 > group.full
                    && operand.shape().elements() == group.full) {
                Layout layout = places.layout(operand);
                Shape merged = Layout.collapse(layout.shape(), List.of(layout));
                reads.add(new Read(root, layout.reshape(merged).orElse(layout)));
            }
        }
    }
}
