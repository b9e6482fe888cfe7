package ingot.formats;

import ingot.ir.IngotException;
import java.util.ArrayList;
import java.util.List;
import tools.jackson.databind.JsonNode;

/// A layer as the configuration of a model describes it: its class, its name and its settings.
///
/// @param node the whole entry, with the calls of a functional model in `inbound_nodes`
record KerasLayer(String kind, String name, JsonNode config, JsonNode node) {
    static KerasLayer of(JsonNode node) {
        String kind = node.path("class_name").asString("");
        if (kind.isEmpty()) {
            throw new IngotException("a layer without class_name: " + brief(node));
        }
        JsonNode config = node.path("config");
        String name = node.path("name").asString(config.path("name").asString(""));
        return new KerasLayer(kind, name.isEmpty() ? kind.toLowerCase(java.util.Locale.ROOT) : name, config, node);
    }

    /// The layers of a model; Keras 1 has a list in place of a sequential model's settings.
    List<KerasLayer> layers() {
        JsonNode list = config.isArray() ? config : config.path("layers");
        if (!list.isArray()) {
            throw new IngotException(this + ": a model without a list of layers");
        }
        List<KerasLayer> layers = new ArrayList<>();
        list.forEach(each -> layers.add(of(each)));
        return layers;
    }

    boolean isModel() {
        return isSequential() || kind.equals("Functional") || kind.equals("Model");
    }

    boolean isSequential() {
        return kind.equals("Sequential");
    }

    /// An operation on values outside of layers, such as x + 1 in a functional model.
    boolean isOperation() {
        return node.path("module").asString("").contains(".ops");
    }

    boolean trainable() {
        return config.path("trainable").asBoolean(true);
    }

    boolean has(String key) {
        return !config.path(key).isMissingNode() && !config.path(key).isNull();
    }

    boolean flag(String key, boolean otherwise) {
        return has(key) ? config.path(key).asBoolean(otherwise) : otherwise;
    }

    String text(String key, String otherwise) {
        return has(key) ? config.path(key).asString(otherwise) : otherwise;
    }

    double number(String key, double otherwise) {
        JsonNode value = config.path(key);
        if (!has(key)) {
            return otherwise;
        }
        if (!value.isNumber()) {
            throw new IngotException(key + " is " + brief(value) + ", expected a number");
        }
        return value.asDouble();
    }

    int integer(String key) {
        return integer(key, config.path(key));
    }

    int integer(String key, int otherwise) {
        return has(key) ? integer(key) : otherwise;
    }

    /// `count` numbers; one number stands for all.
    List<Integer> integers(String key, int count, int otherwise) {
        JsonNode value = config.path(key);
        if (!has(key)) {
            return java.util.Collections.nCopies(count, otherwise);
        }
        if (value.isNumber()) {
            return java.util.Collections.nCopies(count, integer(key, value));
        }
        List<Integer> list = integers(key);
        if (list.size() == 1) {
            return java.util.Collections.nCopies(count, list.getFirst());
        }
        if (list.size() != count) {
            throw new IngotException(key + " is " + brief(value) + ", expected " + count + " numbers");
        }
        return list;
    }

    /// A list of numbers, or one of them.
    List<Integer> integers(String key) {
        JsonNode value = config.path(key);
        if (value.isNumber()) {
            return List.of(integer(key, value));
        }
        if (!value.isArray()) {
            throw new IngotException(key + " is " + brief(value) + ", expected numbers");
        }
        List<Integer> list = new ArrayList<>();
        value.forEach(each -> list.add(integer(key, each)));
        return list;
    }

    private static int integer(String key, JsonNode value) {
        if (!value.isNumber()
                || value.asDouble() != Math.rint(value.asDouble())
                || Math.abs(value.asDouble()) > Integer.MAX_VALUE) {
            throw new IngotException(key + " is " + brief(value) + ", expected a whole number below 2³¹");
        }
        return value.asInt();
    }

    static String brief(JsonNode node) {
        String text = node.isMissingNode() ? "missing" : node.toString();
        return text.length() > 80 ? text.substring(0, 80) + "…" : text;
    }

    @Override
    public String toString() {
        return name + " (" + kind + ")";
    }
}
