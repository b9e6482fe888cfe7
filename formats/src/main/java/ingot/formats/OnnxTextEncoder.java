package ingot.formats;

import ingot.formats.OnnxGraph.Port;
import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.Activations;
import ingot.nn.Head;
import ingot.nn.Parameter;
import ingot.nn.TextEncoder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;

/// A text encoder that is an ONNX file: ids and a mask go in, a hidden state per token comes out.
///
/// The file's graph is imported for every size that is asked for, under the names of the file. An inference export has
/// no dropout inside; a head adds pooling, dropout before it if that is wanted, and a linear layer `head.weight` and
/// `head.bias`.
public final class OnnxTextEncoder implements TextEncoder, AutoCloseable {
    /// Where the file does not say how many positions there are.
    private static final int MOST_TOKENS = 512;

    /// A size for looking at the graph.
    private static final int PROBE = 8;

    private final OnnxModel model;
    private final Ports ports;
    private final OnnxImport probe;
    private final Head head;
    private final Pooling pooling;
    private final double dropout;
    private final int width;

    /// What stands for the whole text.
    public enum Pooling {
        /// The mean over the tokens that are no padding.
        MEAN,
        /// The first token.
        FIRST
    }

    /// The names of what goes in and out; the mask and the types may be missing.
    private record Ports(
            String ids, @Nullable String mask, @Nullable String types, String hidden) {}

    private OnnxTextEncoder(
            OnnxModel model, Ports ports, OnnxImport probe, Head head, Pooling pooling, double dropout, int width) {
        this.model = model;
        this.ports = ports;
        this.probe = probe;
        this.head = head;
        this.pooling = pooling;
        this.dropout = dropout;
        this.width = width;
    }

    /// Opens a file; its weights are read when they are asked for.
    ///
    /// @param dropout before the head, in training
    public static OnnxTextEncoder open(Path file, Pooling pooling, double dropout) {
        OnnxModel model = OnnxModel.open(file);
        try {
            Ports ports = ports(model);
            OnnxImport probe = OnnxImport.of(model, binding(ports, 1, PROBE));
            Value hidden = Objects.requireNonNull(probe.graph().outputs().get(ports.hidden()));
            if (hidden.shape().rank() != 3
                    || hidden.shape().dim(0) != 1
                    || hidden.shape().dim(1) != PROBE
                    || hidden.dtype() != DType.F32) {
                throw new IngotException("onnx: output " + ports.hidden() + " of " + file + " is " + hidden.type()
                        + " for one text of " + PROBE + " tokens; expected a hidden state per token, f32[1, " + PROBE
                        + ", width]");
            }
            return new OnnxTextEncoder(
                    model,
                    ports,
                    probe,
                    Head.NONE,
                    pooling,
                    dropout,
                    hidden.shape().dim(2));
        } catch (RuntimeException e) {
            model.close();
            throw e;
        }
    }

    private static Ports ports(OnnxModel model) {
        String ids = null;
        String mask = null;
        String types = null;
        for (Port port : model.graph().freeInputs()) {
            String name = port.name().toLowerCase(Locale.ROOT);
            if (name.contains("mask")) {
                mask = port.name();
            } else if (name.contains("type") || name.contains("segment")) {
                types = port.name();
            } else if (ids == null && (name.contains("id") || name.contains("token"))) {
                ids = port.name();
            } else {
                throw new IngotException("onnx: input " + port.name() + " of " + model.path()
                        + " is not known; a text encoder has ids, a mask and types of tokens (input_ids,"
                        + " attention_mask, token_type_ids)");
            }
        }
        if (ids == null || model.graph().outputs().isEmpty()) {
            throw new IngotException("onnx: " + model.path() + " is no text encoder: its inputs are "
                    + Listing.of(
                            model.graph().freeInputs().stream().map(Port::name).toList())
                    + "; expected input_ids");
        }
        String hidden = model.graph().outputs().stream()
                .map(Port::name)
                .filter(name -> name.toLowerCase(Locale.ROOT).contains("hidden")
                        || name.toLowerCase(Locale.ROOT).contains("token_embeddings"))
                .findFirst()
                .orElse(model.graph().outputs().getFirst().name());
        return new Ports(ids, mask, types, hidden);
    }

    private static OnnxBinding binding(Ports ports, int batch, int time) {
        Shape shape = Shape.of(batch, time);
        OnnxBinding binding = OnnxBinding.NONE.shape(ports.ids(), shape);
        binding = ports.mask() == null ? binding : binding.shape(ports.mask(), shape);
        return ports.types() == null ? binding : binding.shape(ports.types(), shape);
    }

    /// The file.
    public Path path() {
        return model.path();
    }

    @Override
    public OnnxTextEncoder withHead(Head other) {
        return new OnnxTextEncoder(model, ports, probe, other, pooling, dropout, width);
    }

    @Override
    public Head head() {
        return head;
    }

    /// Rows of the largest table that ids look up.
    @Override
    public int vocabulary() {
        return Objects.requireNonNull(tables().get(ports.ids()), () -> path() + " has no table of tokens");
    }

    /// As many as the file has positions for, if it has a table of them.
    @Override
    public int context() {
        int positions = Integer.MAX_VALUE;
        for (Value value : probe.graph().values()) {
            if (value.op() instanceof Op.Weight(String name, Type type)
                    && name.toLowerCase(Locale.ROOT).contains("position")
                    && type.shape().rank() == 2) {
                positions = Math.min(positions, type.shape().dim(0));
            }
        }
        return positions == Integer.MAX_VALUE ? MOST_TOKENS : positions;
    }

    @Override
    public int width() {
        return width;
    }

    @Override
    public int tokenTypes() {
        String types = ports.types();
        return types == null ? 0 : tables().getOrDefault(types, 2);
    }

    /// Rows of the table that each input looks up.
    private Map<String, Integer> tables() {
        Map<Value, String> from = new HashMap<>();
        Map<String, Integer> rows = new HashMap<>();
        for (Value value : probe.graph().values()) {
            switch (value.op()) {
                case Op.Input input -> from.put(value, input.name());
                case Op.Gather gather
                when from.containsKey(gather.indices()) && gather.x().op() instanceof Op.Weight ->
                    rows.merge(from.get(gather.indices()), gather.x().shape().dim(gather.axis()), Math::max);
                // indices are converted, wrapped from the end and reshaped before they are used
                default ->
                    value.op().operands().stream()
                            .filter(operand ->
                                    from.containsKey(operand) && !value.dtype().isFloating())
                            .findFirst()
                            .ifPresent(operand -> from.put(value, from.get(operand)));
            }
        }
        return rows;
    }

    @Override
    public List<Parameter> parameters() {
        List<Parameter> all = new ArrayList<>();
        Map<String, Boolean> gains = gains();
        for (Value value : probe.graph().values()) {
            if (value.op() instanceof Op.Weight(String name, Type type)) {
                all.add(OnnxGrafts.parameter(path(), name, type, gains.getOrDefault(name, false) ? 1 : 0));
            }
        }
        if (head.kind() != Head.Kind.NONE) {
            all.addAll(OnnxGrafts.head(head.labels(), width));
        }
        return all;
    }

    /// Vectors that something is multiplied by, as the gains of norms are; the others are added.
    private Map<String, Boolean> gains() {
        Map<Value, String> from = new HashMap<>();
        Map<String, Boolean> gains = new HashMap<>();
        for (Value value : probe.graph().values()) {
            if (value.op() instanceof Op.Weight(String name, Type type)
                    && type.shape().rank() <= 1) {
                from.put(value, name);
                continue;
            }
            for (Value operand : value.op().operands()) {
                String name = from.get(operand);
                if (name == null) {
                    continue;
                }
                switch (value.op()) {
                    case Op.Broadcast _, Op.Reshape _ -> from.put(value, name);
                    case Op.Binary binary when binary.kind() == BinaryKind.MULTIPLY -> gains.put(name, true);
                    case Op.Composite composite
                    when composite.function().name().toLowerCase(Locale.ROOT).contains("norm")
                            && composite.operands().size() > 1
                            && composite.operands().get(1).equals(operand) -> gains.put(name, true);
                    default -> {}
                }
            }
        }
        return gains;
    }

    @Override
    public Value hidden(GraphBuilder b, Text text) {
        OnnxImport imported = OnnxImport.of(model, binding(ports, text.batch(), text.time()));
        Graph graph = imported.graph();
        Map<Value, Value> mapped = OnnxGrafts.copy(b, graph, value -> true, input -> input(b, input, text));
        return Objects.requireNonNull(mapped.get(graph.outputs().get(ports.hidden())));
    }

    private Value input(GraphBuilder b, Op.Input input, Text text) {
        Type type = input.type();
        if (input.name().equals(ports.ids())) {
            return b.convert(text.tokens(), type.dtype());
        }
        if (input.name().equals(ports.mask())) {
            return text.mask() == null
                    ? b.fullLike(b.convert(text.tokens(), type.dtype()), 1)
                    : b.convert(text.mask(), type.dtype());
        }
        return text.types() == null
                ? b.fullLike(b.convert(text.tokens(), type.dtype()), 0)
                : b.convert(text.types(), type.dtype());
    }

    @Override
    public Value pooled(GraphBuilder b, Value hidden) {
        return b.reshape(b.slice(hidden, 1, 0, 1), hidden.shape().dim(0), width);
    }

    /// [batch, width].
    private Value pooled(GraphBuilder b, Value hidden, Text text) {
        if (pooling == Pooling.FIRST) {
            return pooled(b, hidden);
        }
        if (text.mask() == null) {
            return b.multiply(b.sum(hidden, 1), 1.0 / text.time());
        }
        Value real = b.convert(text.mask(), DType.F32); // [batch, time]
        Value sum = b.sum(b.multiply(hidden, b.broadcast(real, hidden.shape(), List.of(0, 1))), 1);
        return b.divide(sum, b.reduceKeep(ReduceKind.SUM, real, 1));
    }

    @Override
    public Value logits(GraphBuilder b, Value hidden, Text text) {
        return b.scope(OnnxGrafts.HEAD, () -> {
            boolean each = head.kind() == Head.Kind.TOKEN_CLASS;
            if (head.kind() == Head.Kind.NONE) {
                throw new IngotException("onnx: " + path() + " has no head; give it one first");
            }
            Value x = each ? b.reshape(hidden, -1, width) : pooled(b, hidden, text);
            Value dropped = Activations.dropout(b, x, dropout, text.random(), text.batch());
            Value y = OnnxGrafts.head(b, dropped, head.labels());
            return each ? b.reshape(y, text.batch(), text.time(), head.labels()) : y;
        });
    }

    /// Where the weights of the file lie, if they do so without gaps.
    public SequencedMap<String, ingot.store.BaseWeights.Region> regions() {
        return probe.regions();
    }

    /// The weights of the file.
    public WeightSource file() {
        return probe;
    }

    @Override
    public void close() {
        model.close();
    }
}
