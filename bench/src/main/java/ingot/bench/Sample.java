package ingot.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;

/// Repeated measurements of one thing; the median is what is quoted.
final class Sample {
    private final List<Double> values = new ArrayList<>();

    void add(double value) {
        values.add(value);
    }

    double median() {
        List<Double> sorted = new ArrayList<>(values);
        Collections.sort(sorted);
        int middle = sorted.size() / 2;
        return sorted.size() % 2 == 1 ? sorted.get(middle) : (sorted.get(middle - 1) + sorted.get(middle)) / 2;
    }

    double least() {
        return Collections.min(values);
    }

    double most() {
        return Collections.max(values);
    }

    /// The machine's load and frequency of interruption matter to every figure: print them with it.
    static String load() {
        try {
            return "load average " + Files.readString(Path.of("/proc/loadavg")).split(" ")[0] + ", "
                    + Runtime.getRuntime().availableProcessors() + " cores";
        } catch (IOException e) {
            return Runtime.getRuntime().availableProcessors() + " cores, load unknown";
        }
    }

    static void print(String format, Object... arguments) {
        System.out.printf(Locale.ROOT, format + "%n", arguments);
    }
}
