package ingot.formats;

import ingot.ir.IngotException;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/// A `config.json`, or an object in it: its keys, read with their types. A key with `null` counts as absent.
record ModelConfig(Path file, String path, ObjectNode json) {
    /// Sizes beyond it are refused, whatever they are of.
    private static final int LARGEST = 1 << 26;

    private static final long MOST_BYTES = 64L << 20;

    static ModelConfig read(Path file) {
        return new ModelConfig(file, "", object(file));
    }

    /// The JSON object in a file.
    static ObjectNode object(Path file) {
        try {
            long bytes = Files.size(file);
            if (bytes > MOST_BYTES) {
                throw new IngotException(file + ": " + bytes + " bytes, expected a JSON file of at most " + MOST_BYTES);
            }
            JsonNode json = JsonMapper.shared().readTree(Files.readString(file));
            if (json instanceof ObjectNode object) {
                return object;
            }
            throw new IngotException(file + ": expected a JSON object, got " + brief(json));
        } catch (CharacterCodingException e) {
            throw new IngotException(file + ": not valid UTF-8, so no JSON", e);
        } catch (IOException e) {
            throw new IngotException(
                    file + ": cannot be read (" + e.getClass().getSimpleName()
                            + "); expected a Hugging Face folder with" + " config.json and model.safetensors",
                    e);
        } catch (JacksonException e) {
            throw new IngotException(file + ": not valid JSON: " + e.getOriginalMessage(), e);
        }
    }

    boolean has(String key) {
        return !json.path(key).isMissingNode() && !json.path(key).isNull();
    }

    /// True if the key is there, even with `null`.
    boolean mentions(String key) {
        return json.has(key);
    }

    /// A whole number from 1.
    int size(String key) {
        return whole(key, 1, LARGEST);
    }

    int size(String key, int fallback) {
        return has(key) ? size(key) : fallback;
    }

    int whole(String key, int least, int most) {
        JsonNode node = json.path(key);
        if (!node.isIntegralNumber() || !node.canConvertToInt() || node.asInt() < least || node.asInt() > most) {
            throw wrong(key, "a whole number from " + least + " to " + most);
        }
        return node.asInt();
    }

    double number(String key) {
        JsonNode node = json.path(key);
        if (!node.isNumber() || !Double.isFinite(node.asDouble())) {
            throw wrong(key, "a number");
        }
        return node.asDouble();
    }

    double number(String key, double fallback) {
        return has(key) ? number(key) : fallback;
    }

    boolean flag(String key, boolean fallback) {
        if (has(key) && !json.path(key).isBoolean()) {
            throw wrong(key, "true or false");
        }
        return has(key) ? json.path(key).asBoolean() : fallback;
    }

    String text(String key) {
        if (!json.path(key).isString()) {
            throw wrong(key, "a text");
        }
        return json.path(key).asString();
    }

    String text(String key, String fallback) {
        return has(key) ? text(key) : fallback;
    }

    /// The texts of a list, or none.
    List<String> texts(String key) {
        List<String> texts = new ArrayList<>();
        if (has(key)) {
            if (!json.path(key).isArray()) {
                throw wrong(key, "a list of texts");
            }
            for (JsonNode node : json.path(key)) {
                if (!node.isString()) {
                    throw wrong(key, "a list of texts");
                }
                texts.add(node.asString());
            }
        }
        return texts;
    }

    @Nullable
    ModelConfig section(String key) {
        if (!has(key)) {
            return null;
        }
        if (json.path(key) instanceof ObjectNode object) {
            return new ModelConfig(file, path + key + ".", object);
        }
        throw wrong(key, "an object");
    }

    IngotException wrong(String key, String expected) {
        return new IngotException(
                file + ": " + path + key + " expected " + expected + ", got " + brief(json.path(key)));
    }

    /// Something the file asks for that there is no code for.
    IngotException unsupported(String key, String supported) {
        return new IngotException(
                file + ": " + path + key + " is " + brief(json.path(key)) + "; supported: " + supported);
    }

    private static String brief(JsonNode node) {
        if (node.isMissingNode()) {
            return "nothing";
        }
        String text = node.isContainer() ? (node.isArray() ? "a list" : "an object") : node.toString();
        return text.length() > 80 ? text.substring(0, 80) + "…" : text;
    }
}
