package ingot.train;

import ingot.data.Nearest;
import ingot.ir.IngotException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SequencedMap;
import tools.jackson.databind.JsonNode;

/// One mapping of a configuration file, read key by key; keys nobody asked for are errors.
final class Section {
    private final String path;
    private final Map<String, JsonNode> values = new LinkedHashMap<>();
    private final List<String> known = new ArrayList<>();

    Section(String path, JsonNode node) {
        this.path = path;
        if (node.isObject()) {
            node.properties().forEach(e -> values.put(e.getKey(), e.getValue()));
        } else if (!node.isNull() && !node.isMissingNode()) {
            throw new IngotException("configuration: " + (path.isEmpty() ? "the file" : path)
                    + " expected keys and values, got " + show(node));
        }
    }

    Section section(String key) {
        JsonNode node = take(key);
        return new Section(name(key), node);
    }

    boolean has(String key) {
        JsonNode node = values.get(key);
        return node != null && !node.isNull();
    }

    String text(String key, String otherwise) {
        JsonNode node = take(key);
        if (node.isNull()) {
            return otherwise;
        }
        if (node.isContainer()) {
            throw wrong(key, "a text", node);
        }
        return node.asString();
    }

    int integer(String key, int otherwise) {
        JsonNode node = take(key);
        if (node.isNull()) {
            return otherwise;
        }
        Double number = number(node);
        if (number == null || number != Math.rint(number) || Math.abs(number) > Integer.MAX_VALUE) {
            throw wrong(key, "a whole number", node);
        }
        return number.intValue();
    }

    long whole(String key, long otherwise) {
        JsonNode node = take(key);
        if (node.isNull()) {
            return otherwise;
        }
        Double number = number(node);
        if (number == null || number != Math.rint(number)) {
            throw wrong(key, "a whole number", node);
        }
        return node.isIntegralNumber() ? node.asLong() : number.longValue();
    }

    double real(String key, double otherwise) {
        JsonNode node = take(key);
        if (node.isNull()) {
            return otherwise;
        }
        Double number = number(node);
        if (number == null) {
            throw wrong(key, "a number", node);
        }
        return number;
    }

    boolean flag(String key, boolean otherwise) {
        JsonNode node = take(key);
        if (node.isNull()) {
            return otherwise;
        }
        String text = node.asString("");
        if (!text.equals("true") && !text.equals("false")) {
            throw wrong(key, "true or false", node);
        }
        return text.equals("true");
    }

    List<String> texts(String key, List<String> otherwise) {
        JsonNode node = take(key);
        if (node.isNull()) {
            return otherwise;
        }
        if (!node.isArray()) {
            return List.of(text(key, ""));
        }
        List<String> texts = new ArrayList<>();
        for (JsonNode item : node) {
            if (item.isContainer()) {
                throw wrong(key, "a list of texts", node);
            }
            texts.add(item.asString());
        }
        return texts;
    }

    /// Names with a list of texts each; a plain list is names with nothing.
    SequencedMap<String, List<String>> named(String key) {
        JsonNode node = take(key);
        SequencedMap<String, List<String>> named = new LinkedHashMap<>();
        if (node.isObject()) {
            Section inner = new Section(name(key), node);
            node.properties().forEach(entry -> named.put(entry.getKey(), inner.texts(entry.getKey(), List.of())));
        } else if (!node.isNull()) {
            texts(key, List.of()).forEach(name -> named.put(name, List.of()));
        }
        return named;
    }

    /// One of an enum's constants, written in kebab case.
    <E extends Enum<E>> E choice(String key, E otherwise) {
        String text = text(key, kebab(otherwise));
        List<String> names = new ArrayList<>();
        for (E constant : otherwise.getDeclaringClass().getEnumConstants()) {
            if (kebab(constant).equals(text)) {
                return constant;
            }
            names.add(kebab(constant));
        }
        throw new IngotException(
                "configuration: " + name(key) + " expected one of " + String.join(", ", names) + ", got " + text);
    }

    /// Call last: whatever is left is an error that names the nearest key.
    void end() {
        for (String key : values.keySet()) {
            if (!known.contains(key)) {
                String hint = Nearest.close(key.replace('_', '-'), known)
                        .map(nearest -> ", did you mean " + name(nearest) + "?")
                        .orElse(".");
                throw new IngotException("configuration: unknown key " + name(key) + hint + " Known keys"
                        + (path.isEmpty() ? "" : " of " + path) + ": " + String.join(", ", known));
            }
        }
    }

    static String kebab(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    private JsonNode take(String key) {
        if (!known.contains(key)) {
            known.add(key);
        }
        JsonNode node = values.get(key);
        return node == null ? tools.jackson.databind.node.NullNode.getInstance() : node;
    }

    private static @org.jspecify.annotations.Nullable Double number(JsonNode node) {
        if (node.isNumber()) {
            return node.asDouble();
        }
        // YAML reads 1e-3 as text
        String text = node.isString() ? node.asString() : "";
        try {
            return text.matches("[-+]?[0-9_.]+([eE][-+]?[0-9]+)?") ? Double.valueOf(text.replace("_", "")) : null;
        } catch (NumberFormatException e) {
            return null;
        }
    }

    private IngotException wrong(String key, String expected, JsonNode node) {
        return new IngotException("configuration: " + name(key) + " expected " + expected + ", got " + show(node));
    }

    private static String show(JsonNode node) {
        return node.isContainer() ? node.toString() : "'" + node.asString() + "'";
    }

    private String name(String key) {
        return path.isEmpty() ? key : path + "." + key;
    }
}
