package ingot.compiler;

import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.CompareKind;
import ingot.ir.Operands;
import ingot.ir.Shape;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Divides weights that are too large for the memory into tiles of rows, each a weight of its own.
///
///     gather:  x = W[ids]         x₀ = W₀[ids],  xₜ = ids ≥ startₜ ? Wₜ[ids − startₜ] : xₜ₋₁
///     dot over the columns of W   y = [y₀ | y₁ | …],  yₜ = x·Wₜᵀ
///     dot over the rows of W      y₀ = x₀·W₀,  yₜ = the chains of yₜ₋₁ taken up with xₜ·Wₜ
///     gradient of W               that of every tile, with what it is made of cut to the tile's rows
///
/// The chains are those of the whole weight in the same order, so no bit changes. A chain over the rows goes from the
/// first tile to the last. The backward visits the stages of the forward in reverse, so the forward takes tiles whose
/// rows it keeps from the last to the first, and those whose rows it sums from the first to the last.
final class TileWeights {
    /// A graph with tiles: what each value was made for, and what each tile is a part of.
    record Tiled(Graph graph, int forward, List<Integer> owners, SequencedMap<String, Program.Tile> tiles) {}

    private final MicroGraph micro;
    private final Map<String, List<Range>> ranges; // of the tiled weights
    private final GraphBuilder to;
    private final @Nullable Value[] mapped;
    private final Map<Value, List<Value>> tiles = new HashMap<>(); // of tiled weights, by their old value
    private final Map<Value, TreeMap<Integer, Value[]>> uses = new HashMap<>(); // forward, by old id: tile → new value
    private final List<Integer> owners = new ArrayList<>();

    /// Rows of a weight.
    private record Range(int from, int to) {
        int rows() {
            return to - from;
        }
    }

    private TileWeights(MicroGraph micro, Map<String, List<Range>> ranges) {
        this.micro = micro;
        this.ranges = ranges;
        to = new GraphBuilder(micro.graph().name());
        mapped = new Value[micro.graph().values().size()];
    }

    /// Weights of more than `bytes` that can be divided into tiles of whole chunks of `chunkElements`; composites that
    /// take them must be inlined first (`hidden`).
    static Set<Value> large(Graph graph, long bytes, int chunkElements) {
        return graph.weights().stream()
                .filter(weight -> weight.type().bytes() > bytes
                        && ranges(weight.shape(), bytes, chunkElements).size() > 1)
                .collect(Collectors.toSet());
    }

    /// Composites over weights that are to be divided.
    static Set<Value> hidden(Graph graph, Set<Value> large) {
        return graph.values().stream()
                .filter(value -> value.op() instanceof Op.Composite
                        && value.op().operands().stream().anyMatch(large::contains))
                .collect(Collectors.toSet());
    }

    /// Divides what is large and used only in ways that can be divided.
    static @Nullable Tiled apply(MicroGraph micro, long bytes, int chunkElements) {
        Map<String, List<Range>> ranges = new HashMap<>();
        for (Value weight : large(micro.graph(), bytes, chunkElements)) {
            boolean divides = micro.graph().values().stream()
                    .filter(value -> value.op().operands().contains(weight))
                    .allMatch(value -> divides(value.op(), weight));
            if (divides && !micro.graph().outputs().containsValue(weight)) {
                ranges.put(name(weight), ranges(weight.shape(), bytes, chunkElements));
            }
        }
        return ranges.isEmpty() ? null : new TileWeights(micro, ranges).run();
    }

    private static String name(Value weight) {
        return ((Op.Weight) weight.op()).name();
    }

    /// Tiles of about `bytes`, in whole chunks: a chunk is what is read and updated at a time.
    private static List<Range> ranges(Shape shape, long bytes, int chunkElements) {
        if (shape.rank() < 2) {
            return List.of();
        }
        long row = shape.elements() / shape.dim(0);
        long granule = chunkElements / gcd(chunkElements, row); // rows
        long rows = Math.max(1, bytes / 4 / row / granule) * granule;
        List<Range> ranges = new ArrayList<>();
        for (long from = 0; from < shape.dim(0); from += rows) {
            ranges.add(new Range((int) from, (int) Math.min(shape.dim(0), from + rows)));
        }
        return ranges;
    }

    private static long gcd(long a, long b) {
        return b == 0 ? a : gcd(b, a % b);
    }

    private static boolean divides(Op op, Value weight) {
        return switch (op) {
            case Op.Gather gather -> gather.axis() == 0 && !gather.indices().equals(weight);
            case Op.Dot dot -> {
                boolean isA = dot.a().equals(weight);
                List<Integer> contracted = isA ? dot.contractA() : dot.contractB();
                boolean once = !(isA && dot.b().equals(weight)) && !weight.equals(dot.start());
                yield once && dot.batchA().isEmpty() && contracted.indexOf(0) <= 0;
            }
            case Op _ -> false;
        };
    }

    private Tiled run() {
        int forward = 0;
        for (Value value : micro.graph().values()) {
            to.enterScope(micro.graph().scope(value));
            mapped[value.id()] = emit(value);
            own(value);
            forward = value.id() < micro.forward() ? to.values().size() : forward;
        }
        SequencedMap<String, Program.Tile> parts = new LinkedHashMap<>();
        for (Value weight : micro.graph().weights()) {
            List<Range> all = ranges.getOrDefault(name(weight), List.of());
            long row = weight.shape().elements() / Math.max(1, weight.shape().dim(0));
            for (Range range : all) {
                parts.put(name(weight, range), new Program.Tile(name(weight), range.from() * row, range.rows() * row));
            }
        }
        micro.outputs().forEach((key, value) -> to.output(key, at(value)));
        micro.gradients().forEach((key, value) -> {
            List<Range> all = ranges.get(key);
            if (all == null) {
                to.output(MicroGraph.GRADIENT + key, at(value));
            } else {
                Value weight = weight(key);
                for (int t = 0; t < all.size(); t++) {
                    to.output(
                            MicroGraph.GRADIENT + name(weight, all.get(t)),
                            cut(value, 0, all.get(t), new Use(weight, t)));
                }
            }
        });
        return new Tiled(to.build(), forward, owners, parts);
    }

    private Value weight(String name) {
        return micro.graph().weights().stream()
                .filter(value -> name(value).equals(name))
                .findFirst()
                .orElseThrow();
    }

    private static String name(Value weight, Range range) {
        return name(weight) + "[" + range.from() + ":" + range.to() + "]";
    }

    private Value at(Value old) {
        Value found = mapped[old.id()];
        if (found == null) {
            throw new IllegalStateException(old + " = " + old.op() + " is divided, or used before it is defined");
        }
        return found;
    }

    private @Nullable Value emit(Value value) {
        if (value.op() instanceof Op.Weight weight && ranges.containsKey(weight.name())) {
            tiles.put(
                    value,
                    ranges(value).stream()
                            .map(range -> to.weight(
                                    name(value, range),
                                    value.type().with(value.shape().with(0, range.rows()))))
                            .toList());
            return null;
        }
        if (value.op() instanceof Op.Gather gather && tiles.containsKey(gather.x())) {
            return gather(value, gather);
        }
        if (value.op() instanceof Op.Dot dot) {
            if (tiles.containsKey(dot.a())) {
                return dot(value, dot, dot.a());
            }
            if (tiles.containsKey(dot.b())) {
                return dot(value, dot, dot.b());
            }
        }
        return to.add(Operands.replace(value.op(), this::at));
    }

    private List<Range> ranges(Value weight) {
        return ranges.getOrDefault(name(weight), List.of());
    }

    private Value tile(Value weight, int index) {
        return Objects.requireNonNull(tiles.get(weight), weight::toString).get(index);
    }

    // ---- what a value was made for

    /// Use of tile `tile` of a weight.
    private record Use(Value weight, int tile) {}

    /// The new values were made for `value`; those that are gradients, for what became of its owner.
    private void own(Value value) {
        while (owners.size() < to.values().size()) {
            owners.add(
                    value.id() < micro.forward()
                            ? owners.size()
                            : newest(micro.owners().get(value.id())));
        }
    }

    /// Gradients of a tile belong to the forward value that used the tile.
    private void own(Value value, Use use) {
        TreeMap<Integer, Value[]> known = uses.get(use.weight());
        if (value.id() < micro.forward() || known == null) {
            own(value);
            return;
        }
        var nearest = known.floorEntry(micro.owners().get(value.id()));
        Value user = (nearest == null ? known.firstEntry() : nearest).getValue()[use.tile()];
        while (owners.size() < to.values().size()) {
            owners.add(user.id());
        }
    }

    private int newest(int old) {
        for (int id = old; id >= 0; id--) {
            Value value = mapped[id];
            if (value != null) {
                return value.id();
            }
        }
        return 0;
    }

    private void used(Value value, Value weight, int tile, Value by) {
        if (value.id() < micro.forward()) {
            uses.computeIfAbsent(weight, k -> new TreeMap<>())
                    .computeIfAbsent(value.id(), k -> new Value[ranges(weight).size()])[tile] = by;
        }
        own(value, new Use(weight, tile));
    }

    // ---- uses of a weight

    private Value gather(Value value, Op.Gather gather) {
        Value ids = at(gather.indices());
        Value result = null;
        for (int t = 0; t < ranges(gather.x()).size(); t++) {
            int start = ranges(gather.x()).get(t).from();
            Value rows = to.gather(tile(gather.x(), t), start == 0 ? ids : to.subtract(ids, to.constant(start)), 0);
            used(value, gather.x(), t, rows);
            if (result == null) {
                result = rows;
            } else {
                Value mine = to.compare(CompareKind.GREATER_EQUAL, ids, to.constant(start));
                result = to.select(over(mine, rows.shape()), rows, result);
            }
            own(value, new Use(gather.x(), t));
        }
        return given(result);
    }

    /// A mask over the leading axes of a shape.
    private Value over(Value mask, Shape shape) {
        return to.broadcast(
                mask, shape, IntStream.range(0, mask.shape().rank()).boxed().toList());
    }

    private Value dot(Value value, Op.Dot dot, Value weight) {
        boolean isA = dot.a().equals(weight);
        Value other = isA ? dot.b() : dot.a();
        boolean sums = (isA ? dot.contractA() : dot.contractB()).contains(0);
        List<Range> all = ranges(weight);
        if (sums) {
            int axis = (isA ? dot.contractB() : dot.contractA()).getFirst();
            Value result = dot.start() == null ? null : at(dot.start());
            for (int t = 0; t < all.size(); t++) {
                Value part = slice(at(other), axis, all.get(t));
                result = product(dot, isA, tile(weight, t), part, result);
                used(value, weight, t, result);
            }
            return given(result);
        }
        int axis = isA ? 0 : dot.a().shape().rank() - dot.contractA().size();
        boolean forward = value.id() < micro.forward();
        Value[] parts = new Value[all.size()];
        for (int i = 0; i < parts.length; i++) {
            int t = forward ? parts.length - 1 - i : i;
            Value start = dot.start() == null ? null : slice(at(dot.start()), axis, all.get(t));
            parts[t] = product(dot, isA, tile(weight, t), at(other), start);
            used(value, weight, t, parts[t]);
        }
        return to.concatenate(List.of(parts), axis);
    }

    private Value product(Op.Dot dot, boolean isA, Value tile, Value other, @Nullable Value start) {
        return to.add(new Op.Dot(
                isA ? tile : other,
                isA ? other : tile,
                List.of(),
                List.of(),
                dot.contractA(),
                dot.contractB(),
                1,
                start));
    }

    // ---- parts of a value

    /// The elements of a gradient in a range along an axis: what it is a sum of is cut, and nothing else computed.
    private Value cut(Value value, int axis, Range range, Use use) {
        Value made = switch (value.op()) {
            case Op.Binary(BinaryKind kind, Value a, Value b)
            when kind == BinaryKind.ADD -> to.add(cut(a, axis, range, use), cut(b, axis, range, use));
            case Op.Transpose(Value x, List<Integer> permutation) ->
                to.transpose(cut(x, permutation.get(axis), range, use), permutation);
            case Op.ScatterAdd add when add.axis() == axis -> scatter(add, range);
            case Op.Dot dot when dot.batchA().isEmpty() && dot.start() == null && isWhole(dot) -> cut(dot, axis, range);
            case Op _ -> slice(at(value), axis, range);
        };
        own(value, use);
        return made;
    }

    private boolean isWhole(Op.Dot dot) {
        return !tiles.containsKey(dot.a()) && !tiles.containsKey(dot.b());
    }

    private Value cut(Op.Dot dot, int axis, Range range) {
        List<Integer> freeA = free(dot.a().shape().rank(), dot.contractA());
        List<Integer> freeB = free(dot.b().shape().rank(), dot.contractB());
        boolean inA = axis < freeA.size();
        Value a = inA ? slice(at(dot.a()), freeA.get(axis), range) : at(dot.a());
        Value b = inA ? at(dot.b()) : slice(at(dot.b()), freeB.get(axis - freeA.size()), range);
        return to.add(new Op.Dot(a, b, List.of(), List.of(), dot.contractA(), dot.contractB(), dot.segments()));
    }

    private static List<Integer> free(int rank, List<Integer> contracted) {
        return IntStream.range(0, rank)
                .filter(i -> !contracted.contains(i))
                .boxed()
                .toList();
    }

    /// What falls outside of the range adds +0 somewhere, which changes no sum.
    private Value scatter(Op.ScatterAdd add, Range range) {
        Value ids = at(add.indices());
        Value mine = null; // all of them: indices beyond the table belong to its first and its last row
        if (range.from() > 0) {
            mine = to.compare(CompareKind.GREATER_EQUAL, ids, to.constant(range.from()));
        }
        if (range.to() < add.size()) {
            Value below = to.compare(CompareKind.LESS, ids, to.constant(range.to()));
            mine = mine == null ? below : to.binary(BinaryKind.AND, mine, below);
        }
        Value updates = at(add.updates());
        if (mine != null) {
            Value wide = to.broadcast(
                    mine,
                    updates.shape(),
                    IntStream.range(add.axis(), add.axis() + mine.shape().rank())
                            .boxed()
                            .toList());
            updates = to.select(wide, updates, to.scalarLike(updates, 0));
        }
        Value moved = range.from() == 0 ? ids : to.subtract(ids, to.constant(range.from()));
        return to.add(new Op.ScatterAdd(moved, updates, add.axis(), range.rows(), add.segments()));
    }

    /// A part of what was put together of such parts is found again.
    private Value slice(Value value, int axis, Range range) {
        if (value.op() instanceof Op.Concatenate(List<Value> operands, int joined) && joined == axis) {
            int at = 0;
            for (Value operand : operands) {
                if (at == range.from() && operand.shape().dim(axis) == range.rows()) {
                    return operand;
                }
                at += operand.shape().dim(axis);
            }
        }
        return to.slice(value, axis, range.from(), range.to());
    }

    private static Value given(@Nullable Value value) {
        if (value == null) {
            throw new IllegalStateException("a weight of no tiles");
        }
        return value;
    }
}
