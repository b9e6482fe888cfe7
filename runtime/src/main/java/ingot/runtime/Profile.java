package ingot.runtime;

import ingot.compiler.Kernel;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// When every kernel ran.
public final class Profile {
    private final List<Span> spans = new ArrayList<>();

    /// One run of a kernel, in nanoseconds of [System#nanoTime].
    public record Span(Kernel kernel, long start, long end) {}

    /// Calls and nanoseconds of one kernel.
    public record Entry(Kernel kernel, long calls, long nanoseconds) {}

    void add(Kernel kernel, long start, long end) {
        spans.add(new Span(kernel, start, end));
    }

    /// In the order of the runs.
    public List<Span> spans() {
        return List.copyOf(spans);
    }

    /// The sums of equal kernels, slowest first.
    public List<Entry> entries() {
        Map<Kernel, long[]> times = new LinkedHashMap<>();
        for (Span span : spans) {
            long[] time = times.computeIfAbsent(span.kernel(), _ -> new long[2]);
            time[0]++;
            time[1] += span.end() - span.start();
        }
        return times.entrySet().stream()
                .map(e -> new Entry(e.getKey(), e.getValue()[0], e.getValue()[1]))
                .sorted(Comparator.comparingLong(Entry::nanoseconds).reversed())
                .toList();
    }
}
