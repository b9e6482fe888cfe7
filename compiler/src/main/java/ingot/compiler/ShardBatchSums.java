package ingot.compiler;

import ingot.ir.Function;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Operands;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Gives every sum over the batch its segments, so that the sum of a batch is the fixed tree over its shards.
///
/// A batch of m shards then equals, bit for bit, the tree over m batches of one shard: how a batch is divided among
/// micro-batches or workers is no part of the result. That holds for the sums themselves; what is computed from several
/// of them (the two gradients of a tied matrix, added) must be computed once, after the last micro-batch: `split` cuts
/// a graph there.
public final class ShardBatchSums {
    private ShardBatchSums() {}

    /// A graph in two: `sums` runs on every part of the batch, its outputs that `finish` takes add up over the parts in
    /// the fixed tree, and
    /// `finish` computes the rest once from the totals.
    ///
    /// An output that is no function of batch sums stays an output of `sums` alone. An output that is one sum passes
    /// through
    /// `finish` under its name; the sums behind any other are named after it: `name.0`, `name.1`, ….
    public record Split(Graph sums, Graph finish) {
        /// Names of the outputs of `sums` that are to be added up.
        public List<String> partials() {
            return finish.inputs().stream()
                    .map(value -> ((Op.Input) value.op()).name())
                    .filter(sums.outputs()::containsKey)
                    .toList();
        }
    }

    /// Sets the segments of every sum over the batch, which enters on axis 0 of the inputs named.
    ///
    /// The batch comes first in what is summed: contraction lists are reordered, reductions get a transpose where
    /// needed. A function whose definition changes gets the attribute `segments`.
    public static Graph shard(Graph graph, Collection<String> batchInputs, int shards) {
        SequencedMap<Value, Integer> seeds = seeds(graph, batchInputs);
        int batch = batchSize(seeds, shards);
        return batch == 1 ? graph : rebuild(graph, BatchAxes.of(graph, seeds, batch), shards);
    }

    /// `shard`, then cut behind the sums.
    public static Split split(Graph graph, Collection<String> batchInputs, int shards) {
        SequencedMap<Value, Integer> seeds = seeds(graph, batchInputs);
        int batch = batchSize(seeds, shards);
        Graph sharded = rebuild(graph, BatchAxes.of(graph, seeds, batch), shards);
        return cut(sharded, BatchAxes.of(sharded, seeds(sharded, batchInputs), batch));
    }

    private static SequencedMap<Value, Integer> seeds(Graph graph, Collection<String> batchInputs) {
        SequencedMap<Value, Integer> seeds = new LinkedHashMap<>();
        for (String name : batchInputs) {
            Value input = graph.inputs().stream()
                    .filter(value -> ((Op.Input) value.op()).name().equals(name))
                    .findFirst()
                    .orElseThrow(() -> new IngotException("shard: graph " + graph.name() + " has no input " + name));
            seeds.put(input, 0);
        }
        return seeds;
    }

    private static int batchSize(SequencedMap<Value, Integer> seeds, int shards) {
        if (seeds.isEmpty()) {
            throw new IngotException("shard: name at least one input that carries the batch on axis 0");
        }
        int batch = -1;
        for (Value input : seeds.keySet()) {
            String name = ((Op.Input) input.op()).name();
            int size = input.shape().rank() == 0 ? -1 : input.shape().dim(0);
            if (size < 1 || (batch >= 0 && size != batch)) {
                throw new IngotException("shard: input " + name + " : " + input.type() + " has no batch of "
                        + (batch < 0 ? "at least 1" : batch) + " on axis 0");
            }
            batch = size;
        }
        if (shards < 1 || batch % shards != 0) {
            throw new IngotException("shard: a batch of " + batch + " does not divide into " + shards + " shards");
        }
        return batch;
    }

    private static Graph rebuild(Graph graph, BatchAxes axes, int shards) {
        GraphBuilder builder = new GraphBuilder(graph.name());
        Value[] mapped = new Value[graph.values().size()]; // by id
        Map<BatchAxes, Function> functions = new HashMap<>(); // equal calls share their facts
        for (Value value : graph.values()) {
            builder.enterScope(graph.scope(value));
            Op op = Operands.replace(value.op(), operand -> mapped[operand.id()]);
            Op sharded = value.op() instanceof Op.Composite composite
                    ? new Op.Composite(
                            functions.computeIfAbsent(
                                    axes.inside(value), facts -> segmented(composite.function(), facts, shards)),
                            op.operands())
                    : axes.isSum(value) ? segmented(builder, value.op(), op, axes, shards) : op;
            mapped[value.id()] = builder.add(sharded);
        }
        graph.outputs().forEach((name, value) -> builder.output(name, mapped[value.id()]));
        return builder.build();
    }

    private static Function segmented(Function function, BatchAxes axes, int shards) {
        Graph definition = rebuild(function.definition(), axes, shards);
        if (definition.equals(function.definition())) {
            return function;
        }
        TreeMap<String, Double> attributes = new TreeMap<>(function.attributes());
        attributes.put("segments", (double) shards);
        return new Function(function.name(), attributes, definition, null);
    }

    /// `op` is `old` with its operands in the new graph.
    private static Op segmented(GraphBuilder builder, Op old, Op op, BatchAxes axes, int shards) {
        return switch (op) {
            case Op.Reduce sum -> {
                int axis = axes.axis(((Op.Reduce) old).x());
                int rank = sum.x().shape().rank();
                if (sum.axes().getFirst() == axis) {
                    yield new Op.Reduce(sum.kind(), sum.x(), sum.axes(), shards);
                }
                List<Integer> order = new ArrayList<>(List.of(axis)); // the batch in front, the others as they were
                IntStream.range(0, rank).filter(i -> i != axis).forEach(order::add);
                List<Integer> moved =
                        sum.axes().stream().map(order::indexOf).sorted().toList();
                yield new Op.Reduce(sum.kind(), builder.transpose(sum.x(), order), moved, shards);
            }
            case Op.Dot dot ->
                new Op.Dot(
                        dot.a(),
                        dot.b(),
                        dot.batchA(),
                        dot.batchB(),
                        first(dot.contractA(), axes.contracted((Op.Dot) old)),
                        first(dot.contractB(), axes.contracted((Op.Dot) old)),
                        shards);
            case Op.ScatterAdd sum -> new Op.ScatterAdd(sum.indices(), sum.updates(), sum.axis(), sum.size(), shards);
            case Op.Convolution sum ->
                new Op.Convolution(sum.x(), sum.kernel(), sum.window(), sum.groups(), sum.batchGroups(), shards);
            case Op other -> other; // results of composites, whose definitions are rebuilt
        };
    }

    private static List<Integer> first(List<Integer> list, int index) {
        List<Integer> reordered = new ArrayList<>(list);
        reordered.addFirst(reordered.remove(index));
        return reordered;
    }

    private static Split cut(Graph graph, BatchAxes axes) {
        rejectFeedback(graph, axes);
        GraphBuilder finish = new GraphBuilder(graph.name() + ".finish");
        SequencedMap<String, Value> partials = new LinkedHashMap<>();
        Value[] mapped = new Value[graph.values().size()]; // by id
        graph.outputs().forEach((name, output) -> {
            Set<Value> cone = finishing(output, axes);
            if (cone == null) {
                if (axes.axis(output) == BatchAxes.NONE) {
                    throw new IngotException("shard: output " + name + " at " + output
                            + " mixes sums over the batch with its rows inside a function; inline it first");
                }
                partials.put(name, output);
                return;
            }
            int sums = (int) cone.stream().filter(axes::isSum).count();
            int index = 0;
            for (Value value : graph.values()) {
                if (!cone.contains(value) || mapped[value.id()] != null) {
                    continue;
                }
                finish.enterScope(graph.scope(value));
                if (axes.isSum(value)) {
                    String partial = value.equals(output) && sums == 1 ? name : name + "." + index++;
                    partials.put(partial, value);
                    mapped[value.id()] = finish.input(partial, value.type());
                } else {
                    mapped[value.id()] = finish.add(Operands.replace(value.op(), operand -> mapped[operand.id()]));
                }
            }
            finish.output(name, mapped[output.id()]);
        });
        return new Split(only(graph, partials), finish.build());
    }

    /// What computes `output` from sums over the batch and from values the batch has no part in; null if rows have a
    /// part in it.
    private static @Nullable Set<Value> finishing(Value output, BatchAxes axes) {
        Set<Value> cone = new HashSet<>();
        List<Value> open = new ArrayList<>(List.of(output));
        while (!open.isEmpty()) {
            Value value = open.removeLast();
            if (cone.add(value) && !axes.isSum(value)) {
                if (axes.axis(value) != BatchAxes.NONE) {
                    return null;
                }
                open.addAll(value.op().operands());
            }
        }
        return cone;
    }

    /// A part of the batch cannot be computed alone if its rows use a sum over all of them.
    private static void rejectFeedback(Graph graph, BatchAxes axes) {
        Map<Value, Value> after = new HashMap<>(); // value → a sum over the batch it depends on
        for (Value value : graph.values()) {
            for (Value operand : value.op().operands()) {
                boolean sum = axes.isSum(operand) && !(value.op() instanceof Op.Result);
                Value origin = sum ? operand : after.get(operand);
                if (origin != null) {
                    after.put(value, origin);
                    if (axes.isSum(value) || axes.axis(value) != BatchAxes.NONE) {
                        throw new IngotException("shard: " + value + " (" + graph.scope(value)
                                + ") needs the sum over the batch at " + origin + " (" + graph.scope(origin)
                                + "); such a batch cannot be divided");
                    }
                }
            }
        }
    }

    /// The graph of other outputs, with all inputs and without dead values.
    private static Graph only(Graph graph, SequencedMap<String, Value> outputs) {
        Set<Value> live = new HashSet<>(outputs.values());
        GraphBuilder builder = new GraphBuilder(graph.name());
        graph.values().reversed().stream().filter(live::contains).forEach(v -> live.addAll(v.op().operands()));
        Value[] mapped = new Value[graph.values().size()]; // by id
        for (Value value : graph.values()) {
            if (live.contains(value) || value.op() instanceof Op.Input) {
                builder.enterScope(graph.scope(value));
                mapped[value.id()] = builder.add(Operands.replace(value.op(), operand -> mapped[operand.id()]));
            }
        }
        outputs.forEach((name, value) -> builder.output(name, mapped[value.id()]));
        return builder.build();
    }
}
