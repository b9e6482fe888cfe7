package ingot.compiler;

import ingot.compiler.BatchFlow.Kind;
import ingot.compiler.Draft.Place;
import ingot.ir.DType;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import java.util.function.Function;

/// Writes down the steps of a program, layer-major, over buffers that have no address yet.
///
///     stage 0: Load Update  F0·µ0 F0·µ1 …             Free
///     stage 1: Load Update  F1·µ0 F1·µ1 …             Free
///     last:    Load Update  FB·µ0 FB·µ1 Reduce … once Store Free
///     stage 1: Load         B1·µ0 B1·µ1 Reduce … once Store Free
///     stage 0: Load         B0·µ0 B0·µ1 Reduce … once Store Free    Commit
///
/// So a weight is read twice per step, however many micro-batches (µ) there are. Sums over the batch grow as a binary
/// counter: the result of a micro-batch is pushed, equal subtrees are merged, and what is left at the end is merged
/// from the top down. That is the fixed tree over all shards, whatever the micro-batch.
final class Schedule {
    /// One size of micro-batch.
    record Variant(MicroGraph micro, Pieces pieces) {}

    /// How the batch is divided and which inputs follow it.
    record Batch(int rows, int microRows, Set<String> batched, Set<String> perMicroBatch) {
        int count() {
            return (rows + microRows - 1) / microRows;
        }
    }

    /// A value of one micro-batch, or (−1) of the whole step.
    private record Instance(int value, int microBatch) {}

    private static final int WHOLE_STEP = -1;

    private final List<Variant> variants;
    private final Batch batch;
    private final Function<Pieces.Piece, Code> compile;
    private final boolean training;

    private final List<Draft> drafts = new ArrayList<>();
    private final List<Long> planned = new ArrayList<>(); // bytes by id
    private final Map<Instance, Place> places = new HashMap<>();
    private final Map<Integer, List<Place>> stacks = new HashMap<>(); // of a sum: its subtrees so far
    private final LinkedHashMap<Tensor, Integer> constants = new LinkedHashMap<>();
    private final List<Set<String>> weights = new ArrayList<>(); // by stage
    private final List<StringBuilder> signatures = new ArrayList<>(); // by stage
    private final List<Map<Integer, List<Buffer>>> destinations = new ArrayList<>(); // by variant and value

    /// `variants`: the full micro-batch, then the smaller last one if there is one.
    Schedule(List<Variant> variants, Batch batch, Function<Pieces.Piece, Code> compile) {
        this.variants = variants;
        this.batch = batch;
        this.compile = compile;
        MicroGraph micro = variants.getFirst().micro();
        training = !micro.gradients().isEmpty();
        for (int i = 0; i < variants.getFirst().pieces().stages(); i++) {
            weights.add(new LinkedHashSet<>());
            signatures.add(new StringBuilder());
        }
        for (Variant variant : variants) {
            Map<Integer, List<Buffer>> to = new HashMap<>();
            variant.micro()
                    .outputs()
                    .forEach((key, value) -> to.computeIfAbsent(value.id(), k -> new ArrayList<>())
                            .add(new Buffer.Output(key)));
            variant.micro()
                    .gradients()
                    .forEach((key, value) -> to.computeIfAbsent(value.id(), k -> new ArrayList<>())
                            .add(new Buffer.Gradient(key)));
            destinations.add(to);
        }
        check();
    }

    List<Draft> drafts() {
        return drafts;
    }

    /// Bytes of the buffers to plan, by id.
    List<Long> planned() {
        return planned;
    }

    List<Tensor> constants() {
        return List.copyOf(constants.sequencedKeySet());
    }

    /// Weights that a stage reads.
    Set<String> weights(int stage) {
        return weights.get(stage);
    }

    String signature(int stage) {
        return Code.signature(signatures.get(stage).toString());
    }

    Schedule write() {
        Pieces pieces = variants.getFirst().pieces();
        for (int position = 0; position < pieces.count(); position++) {
            int stage = pieces.stage(position);
            boolean forward = position < pieces.stages();
            boolean backward = training && position >= pieces.stages() - 1;
            ready(new Step.Load(stage));
            if (forward && training) {
                ready(new Step.Update(stage));
            }
            for (int i = 0; i < batch.count(); i++) {
                micro(position, i);
            }
            finishSums(position);
            Pieces.Piece once = pieces.once(position);
            if (once != null) {
                once(position, once);
            }
            if (position == pieces.count() - 1) {
                copySources(stage);
            }
            if (backward) {
                ready(new Step.Store(stage));
            }
            ready(new Step.Free(stage));
        }
        if (training) {
            ready(new Step.Commit());
        }
        return this;
    }

    private void ready(Step step) {
        drafts.add(new Draft.Ready(step));
    }

    private Place plan(long bytes) {
        planned.add(bytes);
        return new Place.Planned(planned.size() - 1, 0);
    }

    private int variantOf(int microBatch) {
        return (microBatch + 1) * batch.microRows() <= batch.rows() ? 0 : variants.size() - 1;
    }

    /// Runs the piece at a position for one micro-batch.
    private void micro(int position, int microBatch) {
        int which = variantOf(microBatch);
        Variant variant = variants.get(which);
        Pieces.Piece piece = variant.pieces().micro(position);
        Pieces.Piece model = variants.getFirst().pieces().micro(position);
        if (piece == null || model == null) {
            return;
        }
        List<Place> targets = new ArrayList<>();
        for (int i = 0; i < piece.outputs().size(); i++) {
            Value value = piece.outputs().get(i);
            targets.add(
                    kind(variant, value) == Kind.SUM ? push(model.outputs().get(i)) : target(which, value, microBatch));
        }
        List<Place> found = run(variant, position, piece, microBatch, targets);
        for (int i = 0; i < piece.outputs().size(); i++) {
            Value value = piece.outputs().get(i);
            if (kind(variant, value) == Kind.SUM) {
                copy(value.type(), found.get(i), targets.get(i));
                Value sum = model.outputs().get(i);
                for (int n = microBatch + 1; n % 2 == 0; n /= 2) {
                    merge(sum);
                }
            } else {
                settle(which, value, microBatch, found.get(i));
            }
        }
    }

    private void once(int position, Pieces.Piece piece) {
        List<Place> targets = piece.outputs().stream()
                .map(value -> target(0, value, WHOLE_STEP))
                .toList();
        List<Place> found = run(variants.getFirst(), position, piece, WHOLE_STEP, targets);
        for (int i = 0; i < piece.outputs().size(); i++) {
            settle(0, piece.outputs().get(i), WHOLE_STEP, found.get(i));
        }
    }

    /// Emits the calls of a piece; returns where its results lie.
    private List<Place> run(Variant variant, int position, Pieces.Piece piece, int microBatch, List<Place> targets) {
        Code code = compile.apply(piece);
        Lowered lowered = code.lowered();
        int stage = variant.pieces().stage(position);
        if (microBatch <= 0) {
            signatures.get(stage).append(code.signature()).append(' ');
        }
        List<Place> inputs = piece.inputs().stream()
                .map(feed -> switch (feed) {
                    case Pieces.Feed.Computed computed -> source(variant, stage, computed.value(), microBatch);
                    case Pieces.Feed.Known known -> constant(known.tensor());
                })
                .toList();
        List<Place> temporaries =
                lowered.temporaryBytes().stream().map(this::plan).toList();
        List<Place> constantPlaces =
                lowered.constants().stream().map(this::constant).toList();
        Function<Lowered.Operand, Place> resolve = operand -> switch (operand.slot()) {
            case INPUT -> inputs.get(operand.index()).plus(operand.byteOffset());
            case OUTPUT -> targets.get(operand.index()).plus(operand.byteOffset());
            case TEMPORARY -> temporaries.get(operand.index()).plus(operand.byteOffset());
            case CONSTANT -> constantPlaces.get(operand.index()).plus(operand.byteOffset());
        };
        for (Lowered.Call call : lowered.calls()) {
            drafts.add(new Draft.Run(
                    call.kernel(), call.operands().stream().map(resolve).toList()));
        }
        return lowered.results().stream().map(resolve).toList();
    }

    private Place constant(Tensor tensor) {
        return new Place.Fixed(new Buffer.Constant(constants.computeIfAbsent(tensor, t -> constants.size())), 0);
    }

    /// Where a piece finds an input.
    private Place source(Variant variant, int stage, Value value, int microBatch) {
        return switch (value.op()) {
            case Op.Weight weight -> {
                weights.get(stage).add(weight.name());
                yield new Place.Fixed(new Buffer.Weight(weight.name()), 0);
            }
            case Op.Input input -> {
                long offset = 0;
                if (batch.perMicroBatch().contains(input.name())) {
                    offset = Math.max(0, microBatch) * value.type().bytes();
                } else if (batch.batched().contains(input.name())) {
                    offset = rowOffset(variant, value.type(), microBatch);
                }
                yield new Place.Fixed(new Buffer.Input(input.name()), offset);
            }
            case Op.Constant constant -> constant(constant.data());
            case Op _ -> {
                boolean micro = kind(variant, value) == Kind.MICRO;
                Place place = places.get(new Instance(value.id(), micro ? microBatch : WHOLE_STEP));
                if (place == null) {
                    throw new IllegalStateException(value + " = " + value.op() + " is needed at stage " + stage
                            + ", micro-batch " + microBatch + ", before it is computed");
                }
                yield place;
            }
        };
    }

    private long rowOffset(Variant variant, Type type, int microBatch) {
        return Math.max(0, microBatch)
                * batch.microRows()
                * (type.bytes() / variant.micro().rows());
    }

    /// Where a value of a micro-batch or of the step is to be written: its first destination, or a buffer of its own.
    private Place target(int which, Value value, int microBatch) {
        List<Place> to = fixed(which, value, microBatch);
        return to.isEmpty() ? plan(value.type().bytes()) : to.getFirst();
    }

    private List<Place> fixed(int which, Value value, int microBatch) {
        Variant variant = variants.get(which);
        long offset = kind(variant, value) == Kind.MICRO ? rowOffset(variant, value.type(), microBatch) : 0;
        return destinations.get(which).getOrDefault(value.id(), List.of()).stream()
                .map(buffer -> (Place) new Place.Fixed(buffer, offset))
                .toList();
    }

    /// A result lies at `found`: remember it, and copy it to where it still has to be.
    private void settle(int which, Value value, int microBatch, Place found) {
        places.put(new Instance(value.id(), microBatch), found);
        fixed(which, value, microBatch).forEach(to -> copy(value.type(), found, to));
    }

    private void copy(Type type, Place from, Place to) {
        if (!from.equals(to)) {
            drafts.add(new Draft.Run(Copies.copy(type), List.of(from, to)));
        }
    }

    /// Memory for the next subtree of a sum; the first one becomes the whole.
    private Place push(Value sum) {
        List<Place> stack = stacks.computeIfAbsent(sum.id(), k -> new ArrayList<>());
        Place place =
                stack.isEmpty() ? target(0, sum, WHOLE_STEP) : plan(sum.type().bytes());
        stack.add(place);
        return place;
    }

    /// Adds the topmost subtree to the one below it.
    private void merge(Value sum) {
        List<Place> stack = stacks.getOrDefault(sum.id(), List.of());
        Place right = stack.removeLast();
        Place left = stack.getLast();
        if (sum.dtype() == DType.F32) {
            drafts.add(new Draft.Reduce(left, right, sum.shape().elements()));
        } else {
            drafts.add(new Draft.Run(Copies.add(sum.type()), List.of(left, right, left)));
        }
    }

    private void finishSums(int position) {
        Pieces.Piece piece = variants.getFirst().pieces().micro(position);
        if (piece == null) {
            return;
        }
        for (Value value : piece.outputs()) {
            if (kind(variants.getFirst(), value) == Kind.SUM) {
                List<Place> stack = stacks.getOrDefault(value.id(), List.of());
                while (stack.size() > 1) {
                    merge(value);
                }
                settle(0, value, WHOLE_STEP, stack.getFirst());
            }
        }
    }

    /// Outputs that nobody computes: inputs, weights and constants themselves.
    private void copySources(int stage) {
        Variant variant = variants.getFirst();
        MicroGraph micro = variant.micro();
        for (SequencedMap<String, Value> all : List.of(micro.outputs(), micro.gradients())) {
            for (Value value : new LinkedHashSet<>(all.values())) {
                if (value.op() instanceof Op.Input
                        || value.op() instanceof Op.Weight
                        || (value.op() instanceof Op.Constant constant
                                && !constant.data().shape().equals(Shape.SCALAR))) {
                    Place from = source(variant, stage, value, 0);
                    fixed(0, value, 0).forEach(to -> copy(wholeType(value), from, to));
                }
            }
        }
    }

    private static Kind kind(Variant variant, Value value) {
        return variant.micro().flows().get(value.id()).kind();
    }

    /// The type of an output for the whole batch.
    Type wholeType(Value value) {
        Type type = value.type();
        return kind(variants.getFirst(), value) == Kind.MICRO && batch.count() > 1
                ? type.with(type.shape().with(0, type.shape().dim(0) / batch.microRows() * batch.rows()))
                : type;
    }

    /// What is delivered must carry the batch on axis 0 or not at all, and all sizes of micro-batch must agree on the
    /// rest.
    private void check() {
        MicroGraph micro = variants.getFirst().micro();
        if (batch.count() > 1) {
            micro.outputs().forEach((key, value) -> {
                BatchFlow.Flow flow = micro.flows().get(value.id());
                if (flow.micro() && flow.axis() != 0) {
                    throw new IngotException("output " + key + " : " + value.type()
                            + " does not carry the batch on axis 0, so it cannot be put together from micro-batches;"
                            + " use train.micro-batch = batch");
                }
            });
            micro.gradients().forEach((key, value) -> {
                if (micro.flows().get(value.id()).micro()) {
                    throw new IngotException("gradient of " + key + " : " + value.type()
                            + " is not a sum over the batch; use train.micro-batch = batch");
                }
            });
        }
        for (Variant variant : variants) {
            for (int i = 0;
                    i < micro.flows().size() || i < variant.micro().flows().size();
                    i++) {
                boolean same = micro.flows().size() == variant.micro().flows().size()
                        && micro.flows().get(i).kind()
                                == variant.micro().flows().get(i).kind();
                if (!same) {
                    throw new IngotException("the graph for a batch of "
                            + variant.micro().rows() + " has another structure than the one for " + micro.rows()
                            + " (at %"
                            + i + "); choose a micro-batch that divides the batch");
                }
            }
        }
    }

    /// All graphs of this program, for the checks of others.
    List<Variant> variants() {
        return variants;
    }
}
