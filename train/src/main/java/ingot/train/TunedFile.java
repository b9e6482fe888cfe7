package ingot.train;

import ingot.ir.IngotException;
import ingot.store.Durable;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/// `fine-tuning.json`: what a fine-tuned model in a folder needs beside its weights and its configuration.
///
/// @param labels of its head, in order; empty without one
/// @param length tokens of an example
record TunedFile(List<String> labels, int length) {
    static final String NAME = "fine-tuning.json";

    TunedFile {
        labels = List.copyOf(labels);
    }

    static TunedFile read(Path folder) {
        Path file = folder.resolve(NAME);
        try {
            JsonNode json = JsonMapper.shared().readTree(Files.readString(file));
            List<String> labels = new ArrayList<>();
            json.path("labels").forEach(label -> labels.add(label.asString()));
            return new TunedFile(labels, json.required("length").asInt());
        } catch (IOException | JacksonException e) {
            throw new IngotException(
                    file + ": cannot be read: " + e.getMessage()
                            + "; a run of ingot fine-tune writes it with its first checkpoint",
                    e);
        }
    }

    void write(Path folder) {
        ObjectNode json = JsonMapper.shared().createObjectNode();
        labels.forEach(json.putArray("labels")::add);
        json.put("length", length);
        try {
            Durable.write(
                    folder.resolve(NAME),
                    JsonMapper.shared().writerWithDefaultPrettyPrinter().writeValueAsString(json));
        } catch (IOException e) {
            throw new IngotException("run: cannot write " + folder.resolve(NAME) + ": " + e.getMessage(), e);
        }
    }
}
