package ingot.train;

import ingot.ir.IngotException;
import ingot.store.Durable;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.json.JsonMapper;

/// The numbers of a run over its steps: `metrics.jsonl`, one object per line, and a TensorBoard event file beside it.
final class Metrics implements AutoCloseable {
    private static final JsonMapper JSON = JsonMapper.builder().build();

    private final Path lines;
    private final EventFile events;

    /// Continues a run at `step`: lines of later steps, which will be done again, are dropped.
    Metrics(Path folder, long step) {
        lines = folder.resolve("metrics.jsonl");
        try {
            if (Files.exists(lines)) {
                List<String> kept = new ArrayList<>();
                for (String line : Files.readAllLines(lines)) {
                    if (upTo(line, step)) {
                        kept.add(line);
                    }
                }
                Durable.write(lines, kept.isEmpty() ? "" : String.join("\n", kept) + "\n");
            }
            events = new EventFile(
                    folder.resolve("events.out.tfevents." + System.currentTimeMillis() / 1000 + ".ingot"));
        } catch (IOException e) {
            throw new IngotException("metrics: cannot write to " + folder + ": " + e.getMessage(), e);
        }
    }

    /// Appends what was measured at a step.
    void write(long step, Map<String, Double> values) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("step", step);
        line.putAll(values);
        try {
            Files.writeString(
                    lines, JSON.writeValueAsString(line) + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            events.write(step, values);
        } catch (IOException e) {
            throw new IngotException(
                    "metrics: cannot write " + lines + ": " + e.getMessage()
                            + "; the last checkpoint stands, the same command resumes",
                    e);
        }
    }

    /// A half-written last line (after a kill) is dropped too.
    private static boolean upTo(String line, long step) {
        try {
            return JSON.readTree(line).path("step").asLong(Long.MAX_VALUE) <= step;
        } catch (JacksonException e) {
            return false;
        }
    }

    @Override
    public void close() {
        try {
            events.close();
        } catch (IOException e) {
            throw new IngotException("metrics: cannot close the event file: " + e.getMessage(), e);
        }
    }
}
