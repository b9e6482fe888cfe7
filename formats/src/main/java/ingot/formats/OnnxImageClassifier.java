package ingot.formats;

import ingot.formats.OnnxGraph.Port;
import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.ImageClassifier;
import ingot.nn.Initializer;
import ingot.nn.Parameter;
import ingot.nn.Randomness;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedMap;
import java.util.Set;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// A classifier of images that is an ONNX file: pixels [batch, channels, size, size] go in, numbers per class come out.
///
/// With a head of its own it is the file up to what its last linear layer reads, and `head.weight` and `head.bias` in
/// place of that layer. The statistics of batch norms are those of the file and stay.
public final class OnnxImageClassifier implements ImageClassifier, WeightSource {
    private final OnnxModel model;
    private final String input;
    private final OnnxImport probe;
    private final int channels;
    private final int size;
    private final int labels; // of the head; 0: as the file is

    private OnnxImageClassifier(OnnxModel model, String input, OnnxImport probe, int channels, int size, int labels) {
        this.model = model;
        this.input = input;
        this.probe = probe;
        this.channels = channels;
        this.size = size;
        this.labels = labels;
    }

    /// Opens a file; its weights are read when they are asked for.
    ///
    /// @param otherwise height and width of an image where the file leaves them open
    public static OnnxImageClassifier open(Path file, int otherwise) {
        OnnxModel model = OnnxModel.open(file);
        try {
            List<Port> inputs = model.graph().freeInputs();
            Port pixels = inputs.size() == 1 ? inputs.getFirst() : null;
            List<OnnxGraph.Dim> dims = pixels == null ? null : pixels.dims();
            int channels = dims == null || dims.size() != 4 || !dims.get(1).isKnown()
                    ? 0
                    : (int) dims.get(1).size();
            if (pixels == null || dims == null || (channels != 1 && channels != 3)) {
                throw new IngotException("onnx: " + file + " is no classifier of images that can be tuned: expected one"
                        + " input [batch, channels, height, width] with 1 or 3 channels, got "
                        + Listing.of(inputs.stream().map(Port::name).toList()));
            }
            int size = dims.get(2).isKnown() ? (int) dims.get(2).size() : otherwise;
            if (dims.get(3).isKnown() && dims.get(3).size() != size) {
                throw new IngotException("onnx: input " + pixels.name() + " of " + file + " is " + size + " × "
                        + dims.get(3).size() + "; expected squares");
            }
            OnnxImport probe = OnnxImport.of(model, binding(pixels.name(), 1, channels, size));
            Value out = output(probe.graph());
            if (out.shape().rank() != 2 || out.shape().dim(0) != 1 || out.dtype() != DType.F32) {
                throw new IngotException("onnx: the first output of " + file + " is " + out.type()
                        + " for one image; expected f32[1, classes]");
            }
            return new OnnxImageClassifier(model, pixels.name(), probe, channels, size, 0);
        } catch (RuntimeException e) {
            model.close();
            throw e;
        }
    }

    private static OnnxBinding binding(String input, int batch, int channels, int size) {
        return OnnxBinding.NONE.shape(input, Shape.of(batch, channels, size, size));
    }

    private static Value output(Graph graph) {
        return graph.outputs().firstEntry().getValue();
    }

    /// The file.
    public Path path() {
        return model.path();
    }

    @Override
    public int imageSize() {
        return size;
    }

    @Override
    public int channels() {
        return channels;
    }

    @Override
    public int labels() {
        return labels > 0 ? labels : output(probe.graph()).shape().dim(1);
    }

    @Override
    public OnnxImageClassifier withLabels(int other) {
        return new OnnxImageClassifier(model, input, probe, channels, size, other);
    }

    @Override
    public boolean tracks() {
        return false;
    }

    /// What the head reads, or what the file gives.
    private Value wanted(Graph graph) {
        return labels > 0 ? features(graph) : output(graph);
    }

    /// What the last linear layer of a graph reads: [batch, width].
    private Value features(Graph graph) {
        Set<Value> fixed = new HashSet<>(); // follow from weights alone
        @Nullable Value found = null;
        Set<Value> needed = needed(graph, output(graph));
        for (Value value : graph.values()) {
            List<Value> operands = value.op().operands();
            if (!(value.op() instanceof Op.Input) && fixed.containsAll(operands)) {
                fixed.add(value);
            } else if (value.op() instanceof Op.Dot dot && needed.contains(value)) {
                Value x = fixed.contains(dot.b()) ? dot.a() : fixed.contains(dot.a()) ? dot.b() : null;
                found = x != null && x.shape().rank() == 2 ? x : found;
            }
        }
        if (found == null) {
            throw new IngotException("onnx: " + path() + " has no linear layer at its end that a head for other classes"
                    + " could take the place of");
        }
        return found;
    }

    /// What a value is computed from, itself included.
    private static Set<Value> needed(Graph graph, Value wanted) {
        Set<Value> needed = new HashSet<>(Set.of(wanted));
        for (Value value : graph.values().reversed()) {
            if (needed.contains(value)) {
                needed.addAll(value.op().operands());
            }
        }
        return needed;
    }

    /// Weights that the graph up to the head reads, in its order.
    private List<Value> read() {
        Graph graph = probe.graph();
        Set<Value> needed = needed(graph, wanted(graph));
        return graph.weights().stream().filter(needed::contains).toList();
    }

    /// Names of means and variances of batch norms.
    private Set<String> fixed() {
        Set<String> names = new HashSet<>();
        for (OnnxNode node : model.graph().nodes()) {
            if (node.operator().equals("BatchNormalization")) {
                names.addAll(node.inputs().subList(3, 5));
            }
        }
        return names;
    }

    @Override
    public List<Parameter> parameters() {
        Set<String> fixed = fixed();
        List<Parameter> all = new ArrayList<>();
        for (Value weight : read()) {
            if (weight.op() instanceof Op.Weight(String name, Type type) && !fixed.contains(name)) {
                all.add(OnnxGrafts.parameter(path(), name, type, 0));
            }
        }
        if (labels > 0) {
            all.addAll(OnnxGrafts.head(labels, features(probe.graph()).shape().dim(1)));
        }
        return all;
    }

    @Override
    public List<Parameter> statistics() {
        Set<String> fixed = fixed();
        List<Parameter> all = new ArrayList<>();
        for (Value weight : read()) {
            if (weight.op() instanceof Op.Weight(String name, Type type) && fixed.contains(name)) {
                all.add(new Parameter(name, type, new Initializer.Constant(0), Parameter.Rule.RUNNING));
            }
        }
        return all;
    }

    @Override
    public Value logits(GraphBuilder b, Value pixels, @Nullable Randomness random, Predicate<String> tracked) {
        Graph graph = OnnxImport.of(model, binding(input, pixels.shape().dim(0), channels, size))
                .graph();
        Value wanted = wanted(graph);
        Set<Value> needed = needed(graph, wanted);
        Map<Value, Value> mapped = OnnxGrafts.copy(b, graph, needed::contains, _ -> pixels);
        Value found = Objects.requireNonNull(mapped.get(wanted));
        if (labels == 0) {
            return found;
        }
        return b.scope(OnnxGrafts.HEAD, () -> OnnxGrafts.head(b, found, labels));
    }

    @Override
    public SequencedMap<String, Type> types() {
        return new LinkedHashMap<>(probe.types());
    }

    @Override
    public void read(String name, MemorySegment target) {
        probe.read(name, target);
    }

    @Override
    public void close() {
        model.close();
    }
}
