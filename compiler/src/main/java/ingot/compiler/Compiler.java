package ingot.compiler;

import ingot.ir.Graph;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import java.util.function.Function;

/// From graphs to programs: differentiate → shard the batch sums → cut into stages → per distinct piece: passes,
/// kernels → schedule → plan memory.
///
/// Only distinct pieces are optimised and lowered, so twelve equal layers cost as much as one.
public final class Compiler {
    private final Options options;
    private final Debug debug;
    private final Function<Graph, Lowered> lowering;
    private final Map<String, Graph> optimised = new HashMap<>(); // by the text of the piece
    private final Map<String, Code> codes = new HashMap<>(); // by the text of the optimised piece

    Compiler(Options options, Debug debug, Function<Graph, Lowered> lowering) {
        this.options = options;
        this.debug = debug;
        this.lowering = lowering;
    }

    /// What the machine wants, none of which changes a bit.
    ///
    /// @param keptComposites names of composites that the backend has kernels for; all others are inlined
    /// @param logitBytes how much memory the logits of a linear cross entropy may take before it is tiled over rows
    /// @param spillBytes activations of at least so many bytes go to disk between forward and backward
    /// @param spillAhead they go and come while the neighbouring visits compute, which takes more memory
    /// @param tileBytes weights of more bytes are divided into tiles
    /// @param tileElements a tile has a multiple of so many elements, which the store reads at a time
    public record Options(
            Set<String> keptComposites,
            long logitBytes,
            long spillBytes,
            boolean spillAhead,
            long tileBytes,
            int tileElements) {
        public static final Options DEFAULT =
                new Options(Set.of(), 64L << 20, Long.MAX_VALUE, false, Long.MAX_VALUE, 1);

        public Options {
            keptComposites = Set.copyOf(keptComposites);
        }

        public Options withLogitBytes(long bytes) {
            return new Options(keptComposites, bytes, spillBytes, spillAhead, tileBytes, tileElements);
        }

        public Options withSpillBytes(long bytes) {
            return new Options(keptComposites, logitBytes, bytes, spillAhead, tileBytes, tileElements);
        }

        public Options withSpillAhead(boolean ahead) {
            return new Options(keptComposites, logitBytes, spillBytes, ahead, tileBytes, tileElements);
        }

        public Options withTiles(long bytes, int elements) {
            return new Options(keptComposites, logitBytes, spillBytes, spillAhead, bytes, elements);
        }
    }

    /// A training step: loss, gradients, and the places where updates happen.
    public static Program training(TrainingSpec spec) {
        return training(spec, Options.DEFAULT);
    }

    public static Program training(TrainingSpec spec, Options options) {
        return new Compiler(options, Debug.fromEnvironment(), Lowering::lower).trainingProgram(spec);
    }

    /// The outputs of a graph for its inputs.
    public static Program inference(Graph graph) {
        return inference(graph, Options.DEFAULT);
    }

    public static Program inference(Graph graph, Options options) {
        return new Compiler(options, Debug.fromEnvironment(), Lowering::lower).inferenceProgram(graph, Map.of());
    }

    /// A graph whose outputs may be written over inputs: an optimizer's step over w, m, v and g.
    ///
    /// @param inPlace output → input; the caller may pass the same memory for both, or different ones
    public static Program update(Graph graph, Map<String, String> inPlace) {
        return new Compiler(Options.DEFAULT, Debug.fromEnvironment(), Lowering::lower).inferenceProgram(graph, inPlace);
    }

    Program trainingProgram(TrainingSpec spec) {
        int count = spec.microBatches();
        List<Integer> sizes = new ArrayList<>(List.of(spec.microBatch()));
        if (spec.rows(count - 1) != spec.microBatch()) {
            sizes.add(spec.rows(count - 1));
        }
        List<Schedule.Variant> variants = new ArrayList<>();
        StageCut.Stages cut = null;
        Map<String, Program.Tile> tiles = Map.of();
        for (int rows : sizes) {
            MicroGraph.Tiled tiled = debug.timed(
                    "graph of " + rows,
                    () -> MicroGraph.training(spec, rows, count == 1, debug)
                            .tiled(
                                    options.tileBytes(),
                                    options.tileElements(),
                                    spec.batchedInputs(),
                                    spec.perMicroBatchInputs(),
                                    count == 1));
            MicroGraph micro = tiled.micro();
            tiles = tiled.tiles();
            // All sizes are cut at the same places.
            StageCut.Stages stages =
                    cut == null ? StageCut.of(micro.graph(), micro.forward(), micro.flows(), tiles.keySet()) : cut;
            cut = stages;
            variants.add(new Schedule.Variant(
                    micro, debug.timed("cut", () -> Pieces.of(micro, stages.of(), spec.recompute(), this::optimise))));
        }
        return program(
                variants,
                cut == null ? List.of() : cut.scopes(),
                tiles,
                new Schedule.Batch(spec.batch(), spec.microBatch(), spec.batchedInputs(), spec.perMicroBatchInputs()),
                Map.of());
    }

    Program inferenceProgram(Graph graph, Map<String, String> inPlace) {
        Set<String> inputs = new HashSet<>();
        graph.inputs().forEach(value -> inputs.add(((Op.Input) value.op()).name()));
        inPlace.forEach((output, input) -> {
            if (!graph.outputs().containsKey(output) || !inputs.contains(input)) {
                throw new IngotException("in place: " + output + " over " + input + ", but graph " + graph.name()
                        + " has the outputs " + graph.outputs().keySet() + " and the inputs " + inputs);
            }
        });
        // All inputs vary from run to run; the one micro-batch is the run.
        debug.graph("inference", graph);
        MicroGraph.Tiled tiled = MicroGraph.inference(graph, 1, Set.of(), inputs, true)
                .tiled(options.tileBytes(), options.tileElements(), Set.of(), inputs, true);
        MicroGraph micro = tiled.micro();
        StageCut.Stages stages = StageCut.of(
                micro.graph(), micro.forward(), micro.flows(), tiled.tiles().keySet());
        return program(
                List.of(new Schedule.Variant(micro, Pieces.of(micro, stages.of(), false, this::optimise))),
                stages.scopes(),
                tiled.tiles(),
                new Schedule.Batch(1, 1, Set.of(), Set.of()),
                inPlace);
    }

    private Program program(
            List<Schedule.Variant> variants,
            List<String> scopes,
            Map<String, Program.Tile> tiles,
            Schedule.Batch batch,
            Map<String, String> inPlace) {
        Schedule schedule = debug.timed("schedule", () -> new Schedule(variants, batch, this::compile).write());
        long spilled = options.spillBytes() == Long.MAX_VALUE
                ? 0
                : Spills.apply(schedule.drafts(), schedule.planned(), options.spillBytes(), options.spillAhead());
        InPlace.protect(schedule.drafts(), schedule.planned(), inPlace, outputTypes(schedule));
        Placement placement = debug.timed("place", () -> Placement.of(schedule.drafts(), schedule.planned()));
        Graph graph = variants.getFirst().micro().graph();
        SequencedMap<String, Type> inputs = new LinkedHashMap<>();
        for (Value value : graph.inputs()) {
            String name = ((Op.Input) value.op()).name();
            Type type = value.type();
            if (batch.batched().contains(name)) {
                type = type.with(type.shape().with(0, type.shape().dim(0) / batch.microRows() * batch.rows()));
            } else if (batch.perMicroBatch().contains(name)) {
                type = type.with(stacked(type, batch.count()));
            }
            inputs.put(name, type);
        }
        SequencedMap<String, Type> weights = new LinkedHashMap<>();
        graph.weights().forEach(value -> weights.put(((Op.Weight) value.op()).name(), value.type()));
        SequencedMap<String, Type> outputs = outputTypes(schedule);
        Set<String> trained = variants.getFirst().micro().gradients().keySet();
        Program program = new Program(
                graph.name(),
                inputs,
                outputs,
                weights,
                tiles,
                schedule.constants(),
                stages(schedule, scopes, weights, trained),
                placement.steps(),
                new Program.MemoryPlan(
                        placement.plan().peak(),
                        placement.plan().lowerBound(),
                        trained.stream().mapToLong(name -> bytes(weights, name)).sum(),
                        weights.values().stream().mapToLong(Type::bytes).sum(),
                        schedule.constants().stream()
                                .mapToLong(tensor -> tensor.type().bytes())
                                .sum(),
                        inputs.values().stream().mapToLong(Type::bytes).sum()
                                + outputs.values().stream()
                                        .mapToLong(Type::bytes)
                                        .sum(),
                        spilled));
        debug.print("program", "program " + program.name(), () -> Explain.program(program));
        return program;
    }

    private static ingot.ir.Shape stacked(Type type, int count) {
        List<Integer> dims = new ArrayList<>(List.of(count));
        for (int dim : type.shape().dims()) {
            dims.add(dim);
        }
        return ingot.ir.Shape.of(dims);
    }

    private static SequencedMap<String, Type> outputTypes(Schedule schedule) {
        SequencedMap<String, Type> types = new LinkedHashMap<>();
        schedule.variants()
                .getFirst()
                .micro()
                .outputs()
                .forEach((key, value) -> types.put(key, schedule.wholeType(value)));
        return types;
    }

    private static long bytes(Map<String, Type> types, String name) {
        Type type = types.get(name);
        return type == null ? 0 : type.bytes();
    }

    /// A weight is owned by the first stage that reads it; what no stage reads belongs to stage 0.
    private static List<Program.Stage> stages(
            Schedule schedule, List<String> scopes, SequencedMap<String, Type> weights, Set<String> trained) {
        int count = scopes.size();
        List<Program.Stage> stages = new ArrayList<>();
        Set<String> unread = new java.util.LinkedHashSet<>(weights.sequencedKeySet());
        for (int i = 0; i < count; i++) {
            unread.removeAll(schedule.weights(i));
        }
        Set<String> owned = new HashSet<>();
        for (int i = 0; i < count; i++) {
            Set<String> mine = new HashSet<>(schedule.weights(i));
            if (i == 0) {
                mine.addAll(unread);
            }
            List<String> reads =
                    weights.sequencedKeySet().stream().filter(mine::contains).toList();
            List<String> owns = reads.stream()
                    .filter(name -> trained.contains(name) && owned.add(name))
                    .toList();
            List<String> matrices = reads.stream()
                    .filter(name -> {
                        Type type = weights.get(name);
                        return type != null && type.shape().rank() >= 2;
                    })
                    .toList();
            stages.add(new Program.Stage(
                    i, StageCut.name(scopes.get(i), matrices, i), schedule.signature(i), reads, owns));
        }
        return stages;
    }

    private Graph optimise(Graph piece) {
        return optimised.computeIfAbsent(piece.toString(), text -> {
            debug.print("graph", "piece", () -> text);
            return Passes.run(piece, Passes.pipeline(options), debug);
        });
    }

    private Code compile(Pieces.Piece piece) {
        return codes.computeIfAbsent(piece.graph().toString(), text -> {
            String signature = Code.signature(text);
            Lowered lowered = debug.timed("lower " + signature, () -> lowering.apply(piece.graph()));
            debug.print("kernels", "kernels of " + signature, () -> Explain.kernels(lowered));
            return new Code(signature, piece.graph(), lowered);
        });
    }
}
