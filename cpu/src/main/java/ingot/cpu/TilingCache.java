package ingot.cpu;

import static java.lang.System.Logger.Level.DEBUG;
import static java.lang.System.Logger.Level.WARNING;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.LinkedHashMap;
import java.util.Map;

/// The tuned tilings of one machine in a text file: a heading that names the machine, then `class: tiling` lines.
/// A file that cannot be read, or is of another machine, is as good as none.
record TilingCache(Path file) {
    private static final System.Logger LOG = System.getLogger("ingot.cpu");

    /// `$XDG_CACHE_HOME/ingot/matmul.tilings`, or the same in `~/.cache`.
    static TilingCache ofMachine() {
        var cache = System.getenv("XDG_CACHE_HOME");
        var folder =
                cache == null || cache.isBlank() ? Path.of(System.getProperty("user.home"), ".cache") : Path.of(cache);
        return new TilingCache(folder.resolve("ingot").resolve("matmul.tilings"));
    }

    private static String heading() {
        return "ingot matmul tilings 1, " + System.getProperty("os.arch") + ", " + Simd.LANES + " lanes, java "
                + Runtime.version() + ", " + processor();
    }

    private static String processor() {
        try (var lines = Files.lines(Path.of("/proc/cpuinfo"))) {
            return lines.filter(line -> line.startsWith("model"))
                    .limit(2)
                    .map(line -> line.substring(line.indexOf(':') + 1).strip())
                    .reduce((model, name) -> name + " model " + model)
                    .orElse("unknown processor");
        } catch (IOException | RuntimeException e) {
            return "unknown processor";
        }
    }

    Map<String, Tiling> read() {
        var tilings = new LinkedHashMap<String, Tiling>();
        if (!Files.exists(file)) {
            return tilings;
        }
        try {
            var lines = Files.readAllLines(file);
            if (lines.isEmpty() || !lines.getFirst().equals(heading())) {
                LOG.log(DEBUG, "{0}: of another machine or version, tuning afresh", file);
                return tilings;
            }
            for (var line : lines.subList(1, lines.size())) {
                int colon = line.lastIndexOf(": ");
                tilings.put(line.substring(0, colon), Tiling.parse(line.substring(colon + 2)));
            }
            return tilings;
        } catch (IOException | RuntimeException e) {
            LOG.log(WARNING, "{0}: not readable as tuned tilings ({1}), tuning afresh", file, e.getMessage());
            return new LinkedHashMap<>();
        }
    }

    /// Replaces the file in one step; a cache that cannot be written only costs time in the next run.
    void write(Map<String, Tiling> tilings) {
        var text = new StringBuilder(heading()).append('\n');
        tilings.forEach((name, tiling) ->
                text.append(name).append(": ").append(tiling.text()).append('\n'));
        try {
            Files.createDirectories(file.toAbsolutePath().getParent());
            var part = Files.createTempFile(file.toAbsolutePath().getParent(), "matmul", ".part");
            Files.writeString(part, text);
            Files.move(part, file, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException | RuntimeException e) {
            LOG.log(DEBUG, "{0}: tuned tilings not kept ({1})", file, e.getMessage());
        }
    }
}
