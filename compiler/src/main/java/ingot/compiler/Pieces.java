package ingot.compiler;

import ingot.compiler.BatchFlow.Kind;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.MathExpansion;
import ingot.ir.Op;
import ingot.ir.Operands;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// A micro-batch graph taken apart into the pieces that run one after the other, each a graph of its own.
///
///     position    0    1    2    3    4         stages 0 1 2, n = 3
///     piece       F0   F1   FB2  B1   B0        FB: the last stage goes forward and back at once
///
/// A piece mentions no names: its inputs are `0`, `1`, … in the order of first use, its outputs `0`, `1`, … in the
/// order of the values, so equal layers give equal texts. What depends on no batch is not handed over but computed
/// again where it is used. With recompute, a backward piece contains the forward values it needs of its own stage.
final class Pieces {
    /// One piece: what its inputs are given, and the values of the whole graph that its outputs are.
    record Piece(Graph graph, List<Feed> inputs, List<Value> outputs) {}

    /// What an input of a piece is given.
    sealed interface Feed {
        /// A value of the whole graph: a source, or computed by an earlier piece.
        record Computed(Value value) implements Feed {}

        record Known(Tensor tensor) implements Feed {}
    }

    private final MicroGraph micro;
    private final int[] homes; // of forward values: their stage, or the first stage that uses them
    private final int[] positions;
    private final int stages;
    private final int count;
    private final boolean recompute;
    private final UnaryOperator<Graph> optimise;
    private final List<TreeMap<Integer, Value>> wantedMicro = new ArrayList<>();
    private final List<TreeMap<Integer, Value>> wantedOnce = new ArrayList<>();
    private final @Nullable Piece[] microPieces;
    private final @Nullable Piece[] oncePieces;

    private Pieces(MicroGraph micro, int[] stageOf, boolean recompute, UnaryOperator<Graph> optimise) {
        this.micro = micro;
        this.recompute = recompute;
        this.optimise = optimise;
        stages = 1 + Math.max(0, Arrays.stream(stageOf).max().orElse(0));
        count = micro.gradients().isEmpty() ? stages : 2 * stages - 1;
        homes = homes(stageOf);
        positions = place(stageOf);
        microPieces = new Piece[count];
        oncePieces = new Piece[count];
        for (int i = 0; i < count; i++) {
            wantedMicro.add(new TreeMap<>());
            wantedOnce.add(new TreeMap<>());
        }
    }

    /// `stageOf`: the stage of each forward value, −1 for what does not depend on the batch. `optimise` runs over each piece before the
    /// ones before it are cut: what it turns out not to need is not kept for it.
    static Pieces of(MicroGraph micro, int[] stageOf, boolean recompute, UnaryOperator<Graph> optimise) {
        Pieces pieces = new Pieces(micro, stageOf, recompute, optimise);
        micro.outputs().values().forEach(value -> pieces.want(value, pieces.count - 1));
        for (Value weight : micro.graph().weights()) {
            Value gradient = micro.gradients().get(((Op.Weight) weight.op()).name());
            if (gradient != null) {
                pieces.want(gradient, pieces.backward(pieces.homes[weight.id()]));
            }
        }
        for (int position = pieces.count - 1; position >= 0; position--) {
            pieces.cut(position);
        }
        return pieces;
    }

    int stages() {
        return stages;
    }

    /// Number of positions in the order of execution.
    int count() {
        return count;
    }

    /// The stage whose weights the pieces at a position read.
    int stage(int position) {
        return position < stages ? position : 2 * (stages - 1) - position;
    }

    /// What runs for every micro-batch.
    @Nullable
    Piece micro(int position) {
        return microPieces[position];
    }

    /// What runs once after all micro-batches.
    @Nullable
    Piece once(int position) {
        return oncePieces[position];
    }

    private Kind kind(Value value) {
        return micro.flows().get(value.id()).kind();
    }

    private int[] place(int[] stageOf) {
        int[] places = new int[micro.graph().values().size()];
        Arrays.fill(places, -1);
        for (Value value : micro.graph().values()) {
            int id = value.id();
            if (kind(value).compareTo(Kind.MICRO) < 0 || value.op() instanceof Op.Input) {
                continue;
            }
            if (value.op() instanceof Op.Result result) {
                places[id] = places[result.composite().id()];
                continue;
            }
            if (id < micro.forward()) {
                places[id] = Math.max(0, stageOf[id]);
            } else {
                places[id] = backward(homes[micro.owners().get(id)]);
            }
            int latest = -1;
            for (Value operand : value.op().operands()) {
                latest = Math.max(latest, places[operand.id()]);
            }
            places[id] = addsCotangents(value) ? latest : Math.max(places[id], latest);
        }
        return places;
    }

    /// Cotangents that come from later stages are added there, so that one of them crosses the cut and not two.
    private boolean addsCotangents(Value value) {
        return value.op() instanceof Op.Binary(Op.BinaryKind sum, Value a, Value b)
                && sum == Op.BinaryKind.ADD
                && a.id() >= micro.forward()
                && b.id() >= micro.forward()
                && kind(a).compareTo(Kind.MICRO) >= 0
                && kind(b).compareTo(Kind.MICRO) >= 0;
    }

    private int backward(int stage) {
        return 2 * (stages - 1) - stage;
    }

    private int[] homes(int[] stageOf) {
        int[] found = new int[micro.forward()];
        Arrays.fill(found, stages - 1);
        for (int id = micro.forward() - 1; id >= 0; id--) {
            found[id] = stageOf[id] >= 0 ? stageOf[id] : found[id];
            for (Value operand : micro.graph().values().get(id).op().operands()) {
                found[operand.id()] = Math.min(found[operand.id()], found[id]);
            }
        }
        return found;
    }

    /// Makes sure that somebody computes `value`; what depends on no batch is computed once, at position `otherwise`.
    private void want(Value value, int otherwise) {
        if (isSource(value)) {
            return;
        }
        switch (kind(value)) {
            case INVARIANT, STEADY -> wantedOnce.get(otherwise).put(value.id(), value);
            case MICRO, SUM -> wantedMicro.get(positions[value.id()]).put(value.id(), value);
            case ONCE -> wantedOnce.get(positions[value.id()]).put(value.id(), value);
        }
    }

    private void cut(int position) {
        if (!wantedOnce.get(position).isEmpty()) {
            oncePieces[position] = extract(
                    List.copyOf(wantedOnce.get(position).values()),
                    value -> kind(value) == Kind.ONCE && positions[value.id()] == position);
        }
        if (!wantedMicro.get(position).isEmpty()) {
            int forward = recompute && position >= stages ? stage(position) : position;
            microPieces[position] =
                    extract(List.copyOf(wantedMicro.get(position).values()), value -> {
                        int at = positions[value.id()];
                        boolean perMicroBatch = kind(value) == Kind.MICRO || kind(value) == Kind.SUM;
                        return perMicroBatch && (at == position || (at == forward && value.id() < micro.forward()));
                    });
        }
    }

    /// What only looks at another value in another way: it is looked at again where it is used, instead of being
    /// copied.
    private boolean isView(Value value) {
        if (kind(value) != Kind.MICRO) {
            return false;
        }
        return switch (value.op()) {
            case Op.Result result -> isView(result.composite());
            case Op.Composite composite ->
                composite.function().definition().values().stream()
                        .allMatch(inner -> inner.op() instanceof Op.Input || movesOnly(inner));
            case Op _ -> movesOnly(value);
        };
    }

    /// A slice counts if it shows a fair part of what would have to be kept for it.
    private static boolean movesOnly(Value value) {
        return switch (value.op()) {
            case Op.Reshape _, Op.Transpose _, Op.Broadcast _ -> true;
            case Op.Slice slice ->
                slice.x().shape().elements() <= 4 * value.shape().elements();
            case Op _ -> false;
        };
    }

    /// What a piece never computes: what the caller, the store or the program itself provides.
    private static boolean isSource(Value value) {
        return switch (value.op()) {
            case Op.Input _, Op.Weight _ -> true;
            case Op.Constant constant -> !constant.data().shape().equals(Shape.SCALAR);
            case Op _ -> false;
        };
    }

    private Piece extract(List<Value> wanted, Predicate<Value> member) {
        boolean[] needed = new boolean[micro.graph().values().size()];
        wanted.forEach(value -> needed[value.id()] = true);
        Extraction extraction = new Extraction(member);
        for (int id = needed.length - 1; id >= 0; id--) {
            Value value = micro.graph().values().get(id);
            if (needed[id] && extraction.inside(value)) {
                value.op().operands().forEach(operand -> needed[operand.id()] = true);
            }
        }
        for (Value value : micro.graph().values()) {
            if (needed[value.id()] && member.test(value)) {
                extraction.emit(value);
            }
        }
        for (int i = 0; i < wanted.size(); i++) {
            extraction.to.output(Integer.toString(i), extraction.emit(wanted.get(i)));
        }
        return slim(optimise.apply(extraction.to.build()), extraction.inputs, wanted);
    }

    /// Without the inputs that nobody reads; the others are numbered again, and what they stand for is wanted of
    /// earlier pieces.
    private Piece slim(Graph graph, List<Feed> feeds, List<Value> outputs) {
        boolean[] read = new boolean[graph.values().size()];
        graph.values().forEach(value -> value.op().operands().forEach(operand -> read[operand.id()] = true));
        graph.outputs().values().forEach(value -> read[value.id()] = true);
        GraphBuilder to = new GraphBuilder(graph.name());
        Map<Value, Value> mapped = new HashMap<>();
        List<Feed> kept = new ArrayList<>();
        for (Value value : graph.values()) {
            if (value.op() instanceof Op.Input input) {
                if (read[value.id()]) {
                    mapped.put(value, to.input(Integer.toString(kept.size()), value.type()));
                    kept.add(feeds.get(Integer.parseInt(input.name())));
                }
            } else {
                mapped.put(value, to.add(Operands.replace(value.op(), operand -> found(mapped.get(operand)))));
            }
        }
        graph.outputs().forEach((key, value) -> to.output(key, found(mapped.get(value))));
        for (Feed feed : kept) {
            if (feed instanceof Feed.Computed computed) {
                want(computed.value(), -1);
            }
        }
        return new Piece(to.build(), List.copyOf(kept), outputs);
    }

    /// Copies members and what can be computed anywhere; everything else becomes an input.
    private final class Extraction {
        private final Predicate<Value> member;
        private final GraphBuilder to = new GraphBuilder("piece");
        private final Map<Value, Value> mapped = new HashMap<>();
        private final Map<Value, List<Value>> results = new HashMap<>(); // of composites that draw random bits
        private final Map<Integer, Value> streams = new HashMap<>();
        private final List<Feed> inputs = new ArrayList<>();

        Extraction(Predicate<Value> member) {
            this.member = member;
        }

        boolean inside(Value value) {
            return !isSource(value) && (kind(value).compareTo(Kind.STEADY) <= 0 || member.test(value) || isView(value));
        }

        Value emit(Value value) {
            Value known = mapped.get(value);
            if (known != null) {
                return known;
            }
            Value made;
            if (inside(value)) {
                made = copy(value, this::emit, results);
            } else {
                made = input(new Feed.Computed(value), value.type());
            }
            mapped.put(value, made);
            return made;
        }

        private Value input(Feed feed, Type type) {
            inputs.add(feed);
            return to.input(Integer.toString(inputs.size() - 1), type);
        }

        private Value copy(Value value, UnaryOperator<Value> operands, Map<Value, List<Value>> inlined) {
            if (value.op() instanceof Op.Result result && draws(result.composite())) {
                var _ = operands.apply(result.composite()); // so that its results are there
                return found(inlined.get(result.composite())).get(result.index());
            }
            Op op = Operands.replace(value.op(), operands);
            if (op instanceof Op.RandomBits bits) {
                Value stream = streams.computeIfAbsent(
                        bits.stream(), number -> input(new Feed.Known(Tensor.scalar(number)), Type.i32()));
                return MathExpansion.randomBits(to, bits, stream);
            }
            if (op instanceof Op.Composite composite && draws(value)) {
                inlined.put(value, inline(composite.function().definition(), composite.operands()));
                return found(inlined.get(value)).getFirst();
            }
            return to.add(op);
        }

        private List<Value> inline(Graph definition, List<Value> operands) {
            Map<Value, Value> inner = new HashMap<>();
            Map<Value, List<Value>> inlined = new HashMap<>();
            List<Value> names = definition.inputs();
            for (int i = 0; i < names.size(); i++) {
                inner.put(names.get(i), operands.get(i));
            }
            for (Value value : definition.values()) {
                if (!inner.containsKey(value)) {
                    inner.put(value, copy(value, operand -> found(inner.get(operand)), inlined));
                }
            }
            return definition.outputs().values().stream()
                    .map(value -> found(inner.get(value)))
                    .toList();
        }
    }

    private static <T> T found(@Nullable T value) {
        if (value == null) {
            throw new IllegalStateException("a value is used before it is defined");
        }
        return value;
    }

    /// True for a composite that draws random bits somewhere inside.
    private static boolean draws(Value value) {
        return value.op() instanceof Op.Composite composite
                && composite.function().definition().values().stream()
                        .anyMatch(inner -> inner.op() instanceof Op.RandomBits || draws(inner));
    }
}
