package ingot.compiler;

import ingot.ir.Graph;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.Locale;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/// What the compiler prints while it works: `INGOT_DEBUG=graph,passes,kernels,program,time`, to standard error.
record Debug(Set<String> topics, PrintStream out) {
    static final Debug SILENT = new Debug(Set.of(), System.err);

    Debug {
        topics = Set.copyOf(topics);
    }

    static Debug fromEnvironment() {
        String topics = System.getenv("INGOT_DEBUG");
        return topics == null || topics.isBlank() ? SILENT : of(topics, System.err);
    }

    static Debug of(String topics, PrintStream out) {
        return new Debug(
                Arrays.stream(topics.toLowerCase(Locale.ROOT).split("[,\\s]+")).collect(Collectors.toSet()), out);
    }

    void graph(String title, Graph graph) {
        print("graph", title, graph::toString);
    }

    void print(String topic, String title, Supplier<String> text) {
        if (topics.contains(topic)) {
            out.println("---- " + title);
            out.println(text.get());
        }
    }

    /// Runs `work` and, for the topic `time`, says how long it took.
    <T> T timed(String title, Supplier<T> work) {
        if (!topics.contains("time")) {
            return work.get();
        }
        long start = System.nanoTime();
        T result = work.get();
        out.printf(Locale.ROOT, "%8.1f ms  %s%n", (System.nanoTime() - start) / 1e6, title);
        return result;
    }
}
