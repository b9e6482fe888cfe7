package ingot.runtime;

import ingot.compiler.Kernel;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// Time spent per kernel, summed over calls.
public final class Profile {
    private final Map<Kernel, long[]> times = new LinkedHashMap<>();

    /// Calls and nanoseconds of one kernel.
    public record Entry(Kernel kernel, long calls, long nanoseconds) {}

    void add(Kernel kernel, long nanoseconds) {
        long[] time = times.computeIfAbsent(kernel, k -> new long[2]);
        time[0]++;
        time[1] += nanoseconds;
    }

    /// Slowest first.
    public List<Entry> entries() {
        return times.entrySet().stream()
                .map(e -> new Entry(e.getKey(), e.getValue()[0], e.getValue()[1]))
                .sorted(Comparator.comparingLong(Entry::nanoseconds).reversed())
                .toList();
    }
}
