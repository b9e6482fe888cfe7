package ingot.bench;

import ingot.ir.IngotException;
import ingot.runtime.Profile;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.stream.LongStream;
import tools.jackson.core.JsonGenerator;
import tools.jackson.databind.json.JsonMapper;

/// A profile in the Trace Event Format, which chrome://tracing and Perfetto draw: a track of kernels and one of work
/// per thread.
final class ChromeTrace {
    private ChromeTrace() {}

    /// Creates the file, so that one that cannot be written is refused before the run.
    static void create(Path file) {
        try {
            Files.write(file, new byte[0]);
        } catch (IOException e) {
            throw new IngotException(
                    "bench: cannot write the trace to " + file + " ("
                            + e.getClass().getSimpleName() + "); name a file in a folder that exists with --trace",
                    e);
        }
    }

    static void write(Path file, List<Profile.Span> runs, List<String> names, WorkTimes work) {
        long zero = LongStream.concat(
                        runs.stream().limit(1).mapToLong(Profile.Span::start),
                        work.workers().stream()
                                .flatMap(spans -> spans.stream().limit(1))
                                .mapToLong(WorkTimes.Span::start))
                .min()
                .orElse(0);
        try (OutputStream out = Files.newOutputStream(file);
                JsonGenerator json = JsonMapper.builder().build().createGenerator(out)) {
            json.writeStartObject();
            json.writeStringProperty("displayTimeUnit", "ms");
            json.writeArrayPropertyStart("traceEvents");
            track(json, 0, "kernels");
            for (int i = 0; i < runs.size(); i++) {
                Profile.Span run = runs.get(i);
                event(json, 0, names.get(i), run.start() - zero, run.end() - run.start());
                Roofline does = Roofline.of(run.kernel());
                json.writeObjectPropertyStart("args");
                json.writeNumberProperty("MB", does.bytes() / 1e6);
                if (does.flops() > 0) {
                    json.writeNumberProperty("GFLOP", does.flops() / 1e9);
                    json.writeNumberProperty("GFLOP/s", does.flops() / (run.end() - run.start()));
                }
                json.writeEndObject();
                json.writeEndObject();
            }
            for (int worker = 0; worker < work.workers().size(); worker++) {
                track(json, worker + 1, "thread " + worker);
                int run = 0;
                for (WorkTimes.Span span : work.workers().get(worker)) {
                    while (run + 1 < runs.size() && runs.get(run).end() <= span.start()) {
                        run++;
                    }
                    String name = runs.isEmpty() ? "work" : names.get(run);
                    event(json, worker + 1, name, span.start() - zero, span.end() - span.start());
                    json.writeEndObject();
                }
            }
            json.writeEndArray();
            json.writeEndObject();
        } catch (IOException e) {
            throw new IngotException("bench: cannot write the trace to " + file + ": " + e.getMessage(), e);
        }
    }

    private static void track(JsonGenerator json, int thread, String name) {
        json.writeStartObject();
        json.writeStringProperty("name", "thread_name");
        json.writeStringProperty("ph", "M");
        json.writeNumberProperty("pid", 1);
        json.writeNumberProperty("tid", thread);
        json.writeObjectPropertyStart("args");
        json.writeStringProperty("name", name);
        json.writeEndObject();
        json.writeEndObject();
    }

    /// Begins an event; whoever calls ends it.
    private static void event(JsonGenerator json, int thread, String name, long start, long length) {
        json.writeStartObject();
        json.writeStringProperty("name", name);
        json.writeStringProperty("cat", name.split(" ")[0].toLowerCase(Locale.ROOT));
        json.writeStringProperty("ph", "X");
        json.writeNumberProperty("pid", 1);
        json.writeNumberProperty("tid", thread);
        json.writeNumberProperty("ts", start / 1e3);
        json.writeNumberProperty("dur", length / 1e3);
    }
}
