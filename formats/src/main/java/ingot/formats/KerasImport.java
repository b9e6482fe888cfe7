package ingot.formats;

import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
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
import java.util.SequencedMap;
import java.util.Set;
import tools.jackson.databind.JsonNode;

/// A Keras model as a graph: inputs and outputs have the names of their layers, weights those of layer and weight, such
/// as `block1/conv1/kernel`.
///
/// Layouts are Keras': images are [batch, height, width, channels].
public final class KerasImport implements WeightSource {
    static final int TRIAL = 32;
    private static final long LARGEST = 1L << 40;

    private final KerasModel model;
    private final Graph graph;
    private final SequencedMap<String, KerasSlot> slots;
    private final Map<String, String> stored;

    private KerasImport(
            KerasModel model, Graph graph, SequencedMap<String, KerasSlot> slots, Map<String, String> stored) {
        this.model = model;
        this.graph = graph;
        this.slots = slots;
        this.stored = stored;
    }

    /// Opens a model of any kind of file and builds its graph for so many rows.
    public static KerasImport open(Path path, int batch) {
        KerasModel model = KerasModel.open(path);
        try {
            return of(model, KerasBinding.batch(batch));
        } catch (RuntimeException e) {
            model.close();
            throw e;
        }
    }

    /// The sizes that a model leaves open, with the largest that each may have: `batch`, and `INPUT.AXIS`.
    static SequencedMap<String, Integer> open(KerasModel model) {
        SequencedMap<String, Integer> open = new LinkedHashMap<>();
        open.put("batch", 1 << 20);
        for (KerasLayer input : KerasGraph.inputs(model.layer())) {
            JsonNode dims = dims(model, input);
            for (int i = 1; i < dims.size(); i++) {
                if (dims.get(i).isNull()) {
                    open.put(input.name() + "." + i, 1 << 20);
                }
            }
        }
        return open;
    }

    /// A binding that gives every open size some number: weights have the same shapes for all.
    static KerasBinding trial(KerasModel model) {
        SequencedMap<String, Integer> open = open(model);
        open.replaceAll((name, most) -> TRIAL);
        open.remove("batch");
        return KerasBinding.batch(1).sizes(open);
    }

    /// The graph for any sizes.
    static SizedGraph sized(KerasModel model) {
        return new SizedGraph(
                open(model),
                sizes -> of(
                                model,
                                KerasBinding.batch(sizes.getOrDefault("batch", 1))
                                        .sizes(sizes))
                        .graph());
    }

    static String name(Value input) {
        return ((Op.Input) input.op()).name();
    }

    /// Builds the graph and finds its weights. All layers without a meaning here are named in one error, and so are all
    /// weights that are missing or of another shape. The model stays the caller's until this is closed.
    public static KerasImport of(KerasModel model, KerasBinding binding) {
        SequencedMap<String, List<String>> unsupported = model.unsupported();
        if (!unsupported.isEmpty()) {
            List<String> wrong = new ArrayList<>();
            unsupported.forEach((kind, names) -> wrong.add(kind + " at " + Listing.of(names)));
            throw new IngotException("keras: " + model.path() + " has layers that are not supported: "
                    + String.join("; ", wrong)
                    + (unsupported.containsKey("Lambda") ? " (Lambda holds code, which is never executed)" : ""));
        }
        GraphBuilder b = new GraphBuilder(model.layer().name());
        List<Value> inputs = new ArrayList<>();
        for (KerasLayer input : KerasGraph.inputs(model.layer())) {
            inputs.add(b.input(input.name(), KerasLayers.input(input, shape(model, input, binding))));
        }
        Randomness random = binding.training() ? Randomness.input(b) : null;
        KerasCall.Pass pass = new KerasCall.Pass(
                model.version(), binding.batch(), random, binding.training() ? binding.tracked() : name -> false);
        SequencedMap<String, KerasSlot> slots = new LinkedHashMap<>();
        KerasCall root = new KerasCall(b, model.layer(), inputs, KerasCall.Place.ROOT, slots, pass);
        KerasGraph.named(root).forEach(b::output);
        Map<String, String> stored = model.tensors().match(slots.values());
        check(model, slots, stored);
        return new KerasImport(model, b.build(), slots, stored);
    }

    private static JsonNode dims(KerasModel model, KerasLayer input) {
        JsonNode dims = input.config().path("batch_shape");
        if (!dims.isArray()) {
            dims = input.config().path("batch_input_shape");
        }
        if (!dims.isArray()) {
            dims = model.layer().config().path("build_input_shape");
        }
        if (!dims.isArray() || dims.isEmpty()) {
            throw new IngotException("keras: " + model.path() + ": the shape of input " + input.name()
                    + " is not in the file; build the model before it is saved");
        }
        return dims;
    }

    private static Shape shape(KerasModel model, KerasLayer input, KerasBinding binding) {
        JsonNode dims = dims(model, input);
        int[] shape = new int[dims.size()];
        shape[0] = binding.batch();
        long elements = shape[0];
        List<String> open = new ArrayList<>();
        for (int i = 1; i < shape.length; i++) {
            String name = input.name() + "." + i;
            Integer given = binding.sizes().get(name);
            if (dims.get(i).isNull() && given == null) {
                open.add(name);
                continue;
            }
            shape[i] =
                    given != null && dims.get(i).isNull() ? given : dims.get(i).asInt(-1);
            if (shape[i] < 1) {
                throw new IngotException(
                        "keras: " + model.path() + ": input " + input.name() + " has the shape " + dims);
            }
            elements = Math.multiplyExact(elements, shape[i]);
            if (elements > LARGEST) {
                throw new IngotException("keras: " + model.path() + ": input " + input.name() + " has the shape " + dims
                        + ", too large");
            }
        }
        if (!open.isEmpty()) {
            throw new IngotException("keras: " + model.path() + " leaves sizes open: " + String.join(", ", open)
                    + "; give each a number");
        }
        return Shape.of(shape);
    }

    private static void check(KerasModel model, SequencedMap<String, KerasSlot> slots, Map<String, String> stored) {
        List<String> missing = new ArrayList<>();
        List<String> misshaped = new ArrayList<>();
        Set<String> taken = new HashSet<>();
        for (KerasSlot slot : slots.values()) {
            String name = stored.get(slot.name());
            if (!slot.used()) {
                continue;
            }
            if (name == null) {
                missing.add(slot.name() + " " + slot.type());
            } else if (!slot.type().equals(model.stored().get(name))) {
                misshaped.add(slot.name() + " is " + model.stored().get(name) + " in the file, " + slot.type()
                        + " by the configuration");
            } else if (!taken.add(name)) {
                missing.add(slot.name() + " (" + name + " belongs to another weight)");
            }
        }
        if (!missing.isEmpty() || !misshaped.isEmpty()) {
            throw new IngotException("keras: the weights of " + model.path() + " do not fit its configuration: "
                    + (missing.isEmpty() ? "" : missing.size() + " missing: " + Listing.of(missing) + "; ")
                    + (misshaped.isEmpty()
                            ? ""
                            : misshaped.size() + " of another shape: " + Listing.of(misshaped) + "; ")
                    + "the file has "
                    + Listing.of(new ArrayList<>(model.stored().keySet())));
        }
    }

    public Graph graph() {
        return graph;
    }

    /// What a gradient changes, in the order in which the graph meets it; layers that are frozen in the file too.
    public List<Parameter> parameters() {
        List<Parameter> all = new ArrayList<>();
        for (KerasSlot slot : slots.values()) {
            if (slot.used() && slot.learned()) {
                boolean matrix = slot.type().shape().rank() > 1;
                all.add(new Parameter(
                        slot.name(),
                        slot.type(),
                        matrix ? new Initializer.Normal(0.02) : new Initializer.Constant(0),
                        matrix));
            }
        }
        return all;
    }

    /// Moving means and variances, which follow the batches of training.
    public List<Parameter> statistics() {
        List<Parameter> all = new ArrayList<>();
        for (KerasSlot slot : slots.values()) {
            if (slot.used() && !slot.learned()) {
                all.add(new Parameter(slot.name(), slot.type(), new Initializer.Constant(0), Parameter.Rule.RUNNING));
            }
        }
        return all;
    }

    /// Names of the weights of layers that the file has as not trainable.
    public Set<String> frozen() {
        Set<String> names = new HashSet<>();
        for (KerasSlot slot : slots.values()) {
            if (slot.used() && slot.learned() && !slot.trainable()) {
                names.add(slot.name());
            }
        }
        return names;
    }

    @Override
    public SequencedMap<String, Type> types() {
        SequencedMap<String, Type> types = new LinkedHashMap<>();
        for (Value weight : graph.weights()) {
            types.put(((Op.Weight) weight.op()).name(), weight.type());
        }
        return types;
    }

    @Override
    public void read(String name, MemorySegment target) {
        String in = stored.get(name);
        if (in == null) {
            throw new IngotException("keras: " + model.path() + " has no weight " + name + "; it has " + slots.size());
        }
        model.tensors().read(in, target);
    }

    /// Closes the model.
    @Override
    public void close() {
        model.close();
    }
}
