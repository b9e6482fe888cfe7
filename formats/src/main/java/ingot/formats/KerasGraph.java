package ingot.formats;

import ingot.ir.IngotException;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.JsonNodeFactory;

/// The layers of a sequential or functional model, called in the order that their inputs ask for.
final class KerasGraph {
    /// Layers that leave out masked places, which is not done here.
    private static final Set<String> MASKED = Set.of(
            "LSTM",
            "GRU",
            "SimpleRNN",
            "Bidirectional",
            "TimeDistributed",
            "MultiHeadAttention",
            "GlobalAveragePooling1D",
            "Softmax");

    private KerasGraph() {}

    /// One output of one call of a layer.
    private record Port(String layer, int call, int index) {
        static Port of(JsonNode node) {
            if (!node.isArray() || node.size() < 3 || !node.get(0).isString()) {
                throw new IngotException("keras: " + KerasLayer.brief(node) + " names no output of a layer");
            }
            return new Port(
                    node.get(0).asString(""), node.get(1).asInt(0), node.get(2).asInt(0));
        }

        @Override
        public String toString() {
            return layer + (index > 0 ? ":" + index : "");
        }
    }

    /// A call of a layer with what it gets.
    private record Node(KerasLayer layer, String counted, int call, List<Port> inputs, JsonNode arguments) {}

    /// Classes of layers without a meaning here, with the layers' names.
    static SequencedMap<String, List<String>> unsupported(KerasLayer model) {
        SequencedMap<String, List<String>> wrong = new LinkedHashMap<>();
        List<KerasLayer> all = all(model);
        for (KerasLayer layer : all) {
            String kind = layer.isOperation() ? "operation " + layer.kind() : layer.kind();
            if (layer.isOperation() || (!layer.isModel() && !KerasLayers.knows(layer.kind()))) {
                wrong.computeIfAbsent(kind, k -> new ArrayList<>()).add(layer.name());
            }
        }
        List<String> masked = all.stream()
                .filter(layer -> MASKED.contains(layer.kind()))
                .map(KerasLayer::name)
                .toList();
        for (KerasLayer layer : all) {
            if (layer.kind().equals("Embedding") && layer.flag("mask_zero", false) && !masked.isEmpty()) {
                wrong.computeIfAbsent("mask_zero, which " + Listing.of(masked) + " would obey,", k -> new ArrayList<>())
                        .add(layer.name());
            }
        }
        return wrong;
    }

    /// The layers of a model, those of models and wrappers inside of it too.
    static List<KerasLayer> all(KerasLayer model) {
        List<KerasLayer> all = new ArrayList<>();
        for (KerasLayer layer : model.layers()) {
            all.add(layer);
            if (layer.isModel()) {
                all.addAll(all(layer));
            } else if (layer.config().path("layer").isObject()) {
                KerasLayer inner = KerasLayer.of(layer.config().path("layer"));
                all.add(inner);
                all.addAll(inner.isModel() ? all(inner) : List.of());
            }
        }
        return all;
    }

    /// The input layers of a model, in the order of its inputs.
    static List<KerasLayer> inputs(KerasLayer model) {
        List<KerasLayer> layers = model.layers();
        if (model.isSequential()) {
            if (layers.isEmpty()) {
                throw new IngotException("keras: " + model + " has no layers");
            }
            return List.of(layers.getFirst());
        }
        List<KerasLayer> inputs = new ArrayList<>();
        for (Outlet input : outlets(model.config().path("input_layers"))) {
            String name = input.port().layer();
            inputs.add(layers.stream()
                    .filter(layer -> layer.name().equals(name))
                    .findFirst()
                    .orElseThrow(() -> new IngotException("keras: " + model + " has no input layer " + name)));
        }
        return inputs;
    }

    /// What a model gives for its inputs.
    static List<Value> call(KerasCall c) {
        return new ArrayList<>(named(c).values());
    }

    /// The same under the names of the layers, or of the keys where outputs are a dictionary.
    static SequencedMap<String, Value> named(KerasCall c) {
        return c.layer().isSequential() ? sequential(c) : functional(c);
    }

    private static SequencedMap<String, Value> sequential(KerasCall c) {
        List<Value> values = c.inputs();
        Counter counter = new Counter();
        String last = c.layer().name();
        for (KerasLayer layer : c.layer().layers()) {
            KerasCall.Place place = c.place().layer(layer, counter.next(layer));
            if (!layer.kind().equals("InputLayer")) {
                values = KerasLayers.build(new KerasCall(c.b(), called(layer), values, place, c.slots(), c.pass()));
                last = layer.name();
            }
        }
        SequencedMap<String, Value> result = new LinkedHashMap<>();
        result.put(last, values.getFirst());
        return result;
    }

    private static KerasLayer called(KerasLayer layer) {
        return new KerasLayer(layer.kind(), layer.name(), layer.config(), JsonNodeFactory.instance.objectNode());
    }

    private static SequencedMap<String, Value> functional(KerasCall c) {
        KerasLayer model = c.layer();
        Map<Port, Value> known = new HashMap<>();
        List<Outlet> given = outlets(model.config().path("input_layers"));
        if (given.size() != c.inputs().size()) {
            throw new IngotException("keras: " + model + " has " + given.size() + " inputs, got "
                    + c.inputs().size());
        }
        for (int i = 0; i < given.size(); i++) {
            known.put(given.get(i).port(), c.inputs().get(i));
        }
        List<Node> waiting = nodes(model);
        Map<String, Integer> before = before(model, waiting);
        while (!waiting.isEmpty()) {
            List<Node> later = new ArrayList<>();
            for (Node node : waiting) {
                if (!known.keySet().containsAll(node.inputs())) {
                    later.add(node);
                    continue;
                }
                List<Value> operands = node.inputs().stream().map(known::get).toList();
                KerasLayer layer = node.layer();
                KerasLayer called = new KerasLayer(layer.kind(), layer.name(), layer.config(), node.arguments());
                KerasCall.Place place = c.place().layer(layer, node.counted());
                List<Value> results =
                        KerasLayers.build(new KerasCall(c.b(), called, operands, place, c.slots(), c.pass()));
                int number = node.call() + before.getOrDefault(layer.name(), 0);
                for (int i = 0; i < results.size(); i++) {
                    known.put(new Port(layer.name(), number, i), results.get(i));
                }
            }
            if (later.size() == waiting.size()) {
                throw new IngotException("keras: " + model + ": a cyclic graph, or a layer that is missing: "
                        + Listing.of(later.stream()
                                .map(node -> node.layer().name() + " for " + node.inputs())
                                .toList()));
            }
            waiting = later;
        }
        SequencedMap<String, Value> results = new LinkedHashMap<>();
        for (Outlet output : outlets(model.config().path("output_layers"))) {
            Value value = known.get(output.port());
            if (value == null) {
                throw new IngotException(
                        "keras: " + model + " has the output " + output.port() + ", which no layer gives");
            }
            String plain = output.key().isEmpty() ? output.port().layer() : output.key();
            String name = plain;
            for (int i = 1; results.containsKey(name); i++) {
                name = plain + "_" + i;
            }
            results.put(name, value);
        }
        if (results.isEmpty()) {
            throw new IngotException("keras: " + model + " has no outputs");
        }
        return results;
    }

    /// Keras 2 counts the calls of a model inside of the model from 1 where it was called once when it was made, and
    /// writes no entry for that call: how many there are, by layer.
    private static Map<String, Integer> before(KerasLayer model, List<Node> nodes) {
        List<Port> ports = new ArrayList<>();
        outlets(model.config().path("output_layers")).forEach(outlet -> ports.add(outlet.port()));
        nodes.forEach(node -> ports.addAll(node.inputs()));
        Map<String, Integer> last = new HashMap<>();
        ports.forEach(port -> last.merge(port.layer(), port.call(), Math::max));
        Map<String, Integer> calls = new HashMap<>();
        nodes.stream()
                .filter(node -> node.layer().isModel())
                .forEach(node -> calls.merge(node.layer().name(), 1, Integer::sum));
        calls.replaceAll((name, count) -> Math.max(0, last.getOrDefault(name, 0) + 1 - count));
        return calls;
    }

    /// An input or output of a model; `key` is empty where it has no name of its own.
    private record Outlet(String key, Port port) {}

    /// `input_layers` and `output_layers`: one output of a layer, a list of them, or a dictionary.
    private static List<Outlet> outlets(JsonNode node) {
        List<Outlet> outlets = new ArrayList<>();
        if (node.isObject()) {
            node.properties().forEach(entry -> outlets.add(new Outlet(entry.getKey(), Port.of(entry.getValue()))));
        } else if (node.isArray() && !node.isEmpty() && node.get(0).isString()) {
            outlets.add(new Outlet("", Port.of(node)));
        } else {
            node.forEach(each -> outlets.add(new Outlet("", Port.of(each))));
        }
        return outlets;
    }

    private static List<Node> nodes(KerasLayer model) {
        List<Node> nodes = new ArrayList<>();
        Counter counter = new Counter();
        Set<String> names = new HashSet<>();
        for (KerasLayer layer : model.layers()) {
            if (!names.add(layer.name())) {
                throw new IngotException("keras: " + model + " has two layers called " + layer.name());
            }
            String counted = counter.next(layer);
            JsonNode calls = layer.node().path("inbound_nodes");
            for (int i = 0; i < calls.size(); i++) {
                nodes.add(node(layer, counted, i, calls.get(i)));
            }
        }
        // an input layer is not called: what it gives is what the model gets
        nodes.removeIf(node -> node.layer().kind().equals("InputLayer"));
        return nodes;
    }

    /// Keras 3 writes the arguments of a call, with tensors marked by their class; Keras 2 a list of `[layer, call,
    /// output, arguments by name]`.
    private static Node node(KerasLayer layer, String counted, int call, JsonNode node) {
        List<Port> inputs = new ArrayList<>();
        JsonNode arguments = JsonNodeFactory.instance.objectNode();
        if (node.isObject()) {
            collect(node.path("args"), inputs);
            arguments = node.path("kwargs");
        } else {
            for (JsonNode each : node) {
                inputs.add(Port.of(each));
                arguments = each.path(3).isObject() ? each.path(3) : arguments;
            }
        }
        for (String name : List.of("inputs", "query", "value", "key", "initial_state")) {
            collect(arguments.path(name), inputs);
        }
        for (String name : List.of("mask", "attention_mask", "query_mask", "value_mask", "key_mask")) {
            if (!arguments.path(name).isMissingNode() && !arguments.path(name).isNull()) {
                throw new IngotException(
                        "keras: layer " + layer + " is called with " + name + ", which is not supported");
            }
        }
        return new Node(layer, counted, call, inputs, arguments);
    }

    private static void collect(JsonNode node, List<Port> ports) {
        if (node.path("class_name").asString("").equals("__keras_tensor__")) {
            ports.add(Port.of(node.path("config").path("keras_history")));
        } else if (node.isArray()
                && node.size() >= 3
                && node.get(0).isString()
                && node.get(1).isNumber()) {
            ports.add(Port.of(node));
        } else if (node.isArray()) {
            node.forEach(each -> collect(each, ports));
        }
    }

    /// The names that `.keras` files give to layers: the class in snake case, from the second one on with a number.
    private static final class Counter {
        private final Map<String, Integer> counts = new HashMap<>();

        String next(KerasLayer layer) {
            String[] words = layer.kind().split("(?<=.)(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])");
            String name = String.join("_", words).toLowerCase(Locale.ROOT);
            int count = counts.merge(name, 1, Integer::sum) - 1;
            return count == 0 ? name : name + "_" + count;
        }
    }
}
