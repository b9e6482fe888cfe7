package ingot.train;

import ingot.ir.IngotException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import java.util.stream.Collectors;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;
import tools.jackson.dataformat.yaml.YAMLMapper;

/// The YAML of a configuration, whatever it configures.
final class ConfigText {
    private static final YAMLMapper YAML = YAMLMapper.builder()
            .enable(DeserializationFeature.FAIL_ON_READING_DUP_TREE_KEY)
            .build();

    /// Keys that never change a bit.
    private static final Set<String> FREE = Set.of(
            "run",
            "threads",
            "memory",
            "train.micro-batch",
            "train.recompute",
            "train.evaluate-every",
            "train.checkpoint-every",
            "train.log-every");

    private ConfigText() {}

    /// Reads YAML text; each override is `key.path=value` and wins over the text.
    static Section root(String yaml, List<String> overrides) {
        JsonNode root;
        try {
            root = YAML.readTree(yaml);
        } catch (JacksonException e) {
            throw new IngotException(
                    "configuration: no YAML, line " + e.getLocation().getLineNr() + ": " + oneLine(e), e);
        }
        if (root == null || root.isNull() || root.isMissingNode()) {
            root = YAML.createObjectNode();
        }
        for (String override : overrides) {
            if (!(root instanceof ObjectNode object)) {
                break;
            }
            override(object, override);
        }
        return new Section("", root);
    }

    private static void override(ObjectNode root, String text) {
        int equals = text.indexOf('=');
        if (equals <= 0) {
            throw new IngotException("override: expected key=value such as train.steps=200, got " + text);
        }
        String[] path = text.substring(0, equals).split("\\.", -1);
        ObjectNode node = root;
        for (int i = 0; i < path.length - 1; i++) {
            JsonNode next = node.get(path[i]);
            node = next instanceof ObjectNode object ? object : node.putObject(path[i]);
        }
        String last = path[path.length - 1];
        String value = text.substring(equals + 1);
        if (value.matches("[*!&%@`].*")) {
            node.put(last, value); // a glob, which YAML would take for an alias or a tag
            return;
        }
        try {
            node.set(last, YAML.readTree(value));
        } catch (JacksonException e) {
            throw new IngotException("override: the value of " + text + " is no YAML: " + oneLine(e), e);
        }
    }

    /// Without the indented lines, which show places and text.
    private static String oneLine(JacksonException failure) {
        return String.valueOf(failure.getOriginalMessage())
                .lines()
                .filter(line -> !line.isBlank() && !line.startsWith(" "))
                .collect(Collectors.joining("; "));
    }

    /// An empty mapping to be filled and written.
    static ObjectNode mapping() {
        return YAML.createObjectNode();
    }

    static String write(ObjectNode root) {
        return YAML.writeValueAsString(root);
    }

    /// The keys of a configuration that decide the bits of its run, `train.batch` → `16`.
    static SequencedMap<String, String> identity(String yaml) {
        SequencedMap<String, String> values = new LinkedHashMap<>();
        flatten("", YAML.readTree(yaml), values);
        values.keySet().removeAll(FREE);
        if (values.getOrDefault("train.freeze", "").equals("[]")) {
            values.remove("train.freeze"); // runs that are older than this key
        }
        return values;
    }

    private static void flatten(String path, JsonNode node, Map<String, String> into) {
        if (node.isObject()) {
            String prefix = path.isEmpty() ? "" : path + ".";
            node.properties().forEach(e -> flatten(prefix + e.getKey(), e.getValue(), into));
        } else {
            into.put(path, node.isArray() ? node.toString() : node.asString());
        }
    }

    /// Checks what every run has.
    static void requireRun(String run, int threads, String memory) {
        require(!run.isBlank(), "run expected a folder, got nothing");
        require(threads >= 0, "threads expected 0 (all cores) or more, got " + threads);
        if (!memory.isEmpty()) {
            MemoryBudget.parse(memory);
        }
    }

    static void require(boolean condition, String message) {
        if (!condition) {
            throw new IngotException("configuration: " + message);
        }
    }
}
