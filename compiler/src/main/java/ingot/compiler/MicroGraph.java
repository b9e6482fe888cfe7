package ingot.compiler;

import ingot.autodiff.Gradients;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Operands;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;

/// The graph of one micro-batch: forward values, then what differentiation added, and the way of the batch through
/// both.
///
/// @param owners for each value the forward value it was made for: itself for a forward value, for a gradient the op it
/// is the gradient of @param forward how many values are forward
/// @param outputs what the caller of the program gets
/// @param gradients what the store gets, by weight
record MicroGraph(
        int rows,
        Graph graph,
        int forward,
        List<Integer> owners,
        List<BatchFlow.Flow> flows,
        SequencedMap<String, Value> outputs,
        SequencedMap<String, Value> gradients) {

    /// Before the name of a weight: its gradient among the outputs of the graph.
    static final String GRADIENT = "∂";

    /// The loss for `rows` sequences with its gradients. `single`: this is the whole batch, so rows may mix.
    static MicroGraph training(TrainingSpec spec, int rows, boolean single, Debug debug) {
        Graph loss = debug.timed("build", () -> spec.lossGraph().apply(rows));
        debug.graph("loss for a batch of " + rows, loss);
        MicroGraph plain = inference(loss, rows, spec.batchedInputs(), spec.perMicroBatchInputs(), single);
        MicroGraph whole =
                debug.timed("differentiate", () -> differentiate(plain.graph(), plain.forward(), spec, rows, single));
        if (!single) {
            checkRows(whole.graph(), rows, spec);
        }
        if (spec.shard() == spec.batch()) {
            // one shard: its sums are those of the graph, and rows may mix, as in a loss that compares them
            debug.graph("differentiated", whole.graph());
            return whole;
        }
        Graph sharded = debug.timed(
                "shard", () -> ShardBatchSums.shard(whole.graph(), spec.batchedInputs(), rows / spec.shard()));
        debug.graph("differentiated", sharded);
        return whole.moved(
                sharded, origins(whole.graph(), sharded), spec.batchedInputs(), spec.perMicroBatchInputs(), single);
    }

    /// Forward only.
    static MicroGraph inference(Graph graph, int rows, Set<String> batched, Set<String> perMicroBatch, boolean single) {
        List<Integer> owners = new ArrayList<>();
        graph.values().forEach(value -> owners.add(value.id()));
        MicroGraph plain = of(rows, graph, owners.size(), owners, batched, perMicroBatch, single);
        return plain.withSumsVisible(batched, perMicroBatch, single);
    }

    private static MicroGraph of(
            int rows,
            Graph graph,
            int forward,
            List<Integer> owners,
            Set<String> batched,
            Set<String> perMicroBatch,
            boolean single) {
        List<BatchFlow.Flow> flows = single
                ? BatchFlow.single(graph, batched, perMicroBatch)
                : BatchFlow.of(graph, rows, batched, perMicroBatch);
        SequencedMap<String, Value> outputs = new LinkedHashMap<>();
        SequencedMap<String, Value> gradients = new LinkedHashMap<>();
        graph.outputs().forEach((key, value) -> {
            if (key.startsWith(GRADIENT)) {
                gradients.put(key.substring(GRADIENT.length()), value);
            } else {
                outputs.put(key, value);
            }
        });
        return new MicroGraph(rows, graph, forward, owners, flows, outputs, gradients);
    }

    private static MicroGraph differentiate(Graph forward, int count, TrainingSpec spec, int rows, boolean single) {
        Copy copy = new Copy(forward);
        List<Integer> owners = new ArrayList<>();
        forward.values().forEach(value -> owners.add(value.id()));
        List<Value> wanted = new ArrayList<>();
        for (Value weight : forward.weights()) {
            String name = ((Op.Weight) weight.op()).name();
            if (weight.dtype().isFloating() && !spec.frozen().contains(name)) {
                wanted.add(copy.at(weight));
            }
        }
        Set<String> known = new HashSet<>();
        forward.weights().forEach(weight -> known.add(((Op.Weight) weight.op()).name()));
        for (String name : spec.frozen()) {
            if (!known.contains(name)) {
                throw new IngotException("training: the frozen weight " + name + " is not in graph " + forward.name()
                        + ", it has " + known.stream().sorted().toList());
            }
        }
        if (wanted.isEmpty()) {
            throw new IngotException("training: nothing to train, graph " + forward.name() + " has the weights "
                    + known.stream().sorted().toList() + " and all of them are frozen");
        }
        Value loss = copy.at(forward.output(spec.loss()));
        List<Value> found = Gradients.of(copy.to, loss, wanted, value -> {
            while (owners.size() < copy.to.values().size()) {
                owners.add(value.id());
            }
        });
        while (owners.size() < copy.to.values().size()) {
            owners.add(loss.id());
        }
        for (int i = 0; i < wanted.size(); i++) {
            copy.to.output(GRADIENT + ((Op.Weight) wanted.get(i).op()).name(), found.get(i));
        }
        return of(rows, copy.build(), count, owners, spec.batchedInputs(), spec.perMicroBatchInputs(), single)
                .withSumsVisible(spec.batchedInputs(), spec.perMicroBatchInputs(), single);
    }

    /// Inlines the composites that hide a sum over the batch, until there is none.
    private MicroGraph withSumsVisible(Set<String> batched, Set<String> perMicroBatch, boolean single) {
        MicroGraph next = this;
        while (true) {
            Set<Value> hidden = Set.copyOf(BatchFlow.hiddenSums(next.graph(), next.flows()));
            if (single || hidden.isEmpty()) {
                return next;
            }
            next = next.inlined(hidden, batched, perMicroBatch, single);
        }
    }

    private MicroGraph inlined(Set<Value> composites, Set<String> batched, Set<String> perMicroBatch, boolean single) {
        // Values keep their order, so forward ones stay in front.
        List<Integer> origins = new ArrayList<>();
        Graph inlined = Rewrite.composites(
                graph,
                (to, value, op) ->
                        composites.contains(value) ? to.inline(op.function().definition(), op.operands()) : null,
                origins);
        return moved(inlined, origins, batched, perMicroBatch, single);
    }

    /// With weights of more than `bytes` divided into tiles of whole chunks.
    Tiled tiled(long bytes, int chunkElements, Set<String> batched, Set<String> perMicroBatch, boolean single) {
        MicroGraph next = this;
        while (true) {
            Set<Value> hidden = TileWeights.hidden(next.graph(), TileWeights.large(next.graph(), bytes, chunkElements));
            if (hidden.isEmpty()) {
                break;
            }
            next = next.inlined(hidden, batched, perMicroBatch, single);
        }
        TileWeights.Tiled tiled = TileWeights.apply(next, bytes, chunkElements);
        return tiled == null
                ? new Tiled(this, new LinkedHashMap<>())
                : new Tiled(
                        of(rows, tiled.graph(), tiled.forward(), tiled.owners(), batched, perMicroBatch, single),
                        tiled.tiles());
    }

    /// @param tiles what the weights are that are parts of others
    record Tiled(MicroGraph micro, SequencedMap<String, Program.Tile> tiles) {}

    /// The same computation as another graph; `origins` has the old value of each new one, in ascending order.
    private MicroGraph moved(
            Graph other, List<Integer> origins, Set<String> batched, Set<String> perMicroBatch, boolean single) {
        int[] newest = new int[graph.values().size()];
        int forwardValues = 0;
        for (int i = 0; i < origins.size(); i++) {
            newest[origins.get(i)] = i;
            forwardValues = origins.get(i) < forward ? i + 1 : forwardValues;
        }
        for (int i = 1; i < newest.length; i++) {
            newest[i] = Math.max(newest[i], newest[i - 1]); // a value that was there already has no new id
        }
        List<Integer> moved = new ArrayList<>();
        for (int i = 0; i < origins.size(); i++) {
            moved.add(i < forwardValues ? i : newest[owners.get(origins.get(i))]);
        }
        return of(rows, other, forwardValues, moved, batched, perMicroBatch, single);
    }

    /// Refuses what would be the same for every micro-batch though it belongs to certain rows of the batch.
    private static void checkRows(Graph graph, int rows, TrainingSpec spec) {
        if (spec.perMicroBatchInputs().isEmpty() && graph.values().stream().anyMatch(MicroGraph::draws)) {
            throw new IngotException("training: graph " + graph.name()
                    + " draws random bits, so each micro-batch needs a key with its first row: name the key as an input"
                    + " per micro-batch");
        }
        if (rows == 1) {
            return; // one row shows nothing by its size
        }
        Map<Value, Integer> seeds = new java.util.HashMap<>();
        for (Value value : graph.inputs()) {
            if (spec.batchedInputs().contains(((Op.Input) value.op()).name())) {
                seeds.put(value, 0);
            }
        }
        BatchAxes axes = BatchAxes.of(graph, seeds, rows);
        for (Value value : graph.values()) {
            int axis = axes.axis(value);
            boolean differs = switch (value.op()) {
                case Op.Input input -> axis >= 0 && !spec.batchedInputs().contains(input.name());
                case Op.Iota iota -> axis >= 0 && axis == iota.axis();
                case Op.Constant constant ->
                    axis >= 0 && constant.data().shape().rank() > 0;
                case Op _ -> false;
            };
            if (differs) {
                String scope = graph.scope(value);
                throw new IngotException("training: " + value + " : " + value.type()
                        + (scope.isEmpty() ? "" : " (" + scope + ")") + " = " + value.op()
                        + " meets the rows of the batch on axis " + axis
                        + ", but is the same for every micro-batch; make it a batched input, or use"
                        + " train.micro-batch = batch");
            }
        }
    }

    private static boolean draws(Value value) {
        return value.op() instanceof Op.RandomBits
                || (value.op() instanceof Op.Composite composite
                        && composite.function().definition().values().stream().anyMatch(MicroGraph::draws));
    }

    /// Sharding changes values one by one, except that it may transpose what a `Reduce` reads.
    private static List<Integer> origins(Graph from, Graph to) {
        List<Integer> origins = new ArrayList<>();
        int old = 0;
        for (Value value : to.values()) {
            origins.add(old);
            if (value.op().getClass() == from.values().get(old).op().getClass()) {
                old++;
            }
        }
        if (old != from.values().size()) {
            throw new IllegalStateException("segments changed the structure of graph " + from.name());
        }
        return origins;
    }

    /// A graph in a new builder, ready to be continued: values keep their ids.
    private static final class Copy {
        private final GraphBuilder to;
        private final Map<Value, Value> mapped = new java.util.HashMap<>();

        Copy(Graph graph) {
            to = new GraphBuilder(graph.name());
            for (Value value : graph.values()) {
                to.enterScope(graph.scope(value));
                mapped.put(value, to.add(Operands.replace(value.op(), this::at)));
            }
            to.enterScope("");
            graph.outputs().forEach((key, value) -> to.output(key, at(value)));
        }

        Value at(Value value) {
            Value found = mapped.get(value);
            if (found == null) {
                throw new IllegalStateException("unknown " + value);
            }
            return found;
        }

        Graph build() {
            return to.build();
        }
    }
}
