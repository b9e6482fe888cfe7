package ingot.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;

/// What the operating system says about this machine, as far as it says it (the files of Linux; elsewhere less is
/// known).
final class Machine {
    private static final List<String> MATRIX_UNITS = List.of(
            "amx_fp16",
            "amx_bf16",
            "amx_int8",
            "avx512_fp16",
            "avx512_bf16",
            "avx512_vnni",
            "avx_vnni",
            "avx_ne_convert",
            "sme",
            "i8mm",
            "bf16");
    private static final List<String> VECTORS =
            List.of("sve2", "sve", "asimd", "avx512f", "avx2", "avx", "fma", "sse4_2");

    private final Path root;

    /// `root` is `/`; a test has its own.
    Machine(Path root) {
        this.root = root;
    }

    /// `Debian GNU/Linux 12 (bookworm), Linux 6.1.0 amd64`.
    String system() {
        String kernel = System.getProperty("os.name") + " " + System.getProperty("os.version") + " "
                + System.getProperty("os.arch");
        return lines("etc/os-release").stream()
                .filter(line -> line.startsWith("PRETTY_NAME="))
                .map(line -> line.substring(line.indexOf('=') + 1).replace("\"", "") + ", " + kernel)
                .findFirst()
                .orElse(kernel);
    }

    /// The processor's name, or `unknown`.
    String processor() {
        return field("model name")
                .orElse(field("CPU part").map(part -> "ARM part " + part).orElse("unknown"));
    }

    /// Instruction sets for vectors that the processor has, widest first.
    List<String> vectors() {
        return among(VECTORS);
    }

    /// Instruction sets for matrices of bf16, fp16 or int8 that the processor has.
    List<String> matrixUnits() {
        return among(MATRIX_UNITS);
    }

    /// The most memory the control group of this process may use.
    OptionalLong memoryLimit() {
        for (String file : List.of("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")) {
            for (String line : lines(file)) {
                // Version 1 says "no limit" as a huge number.
                if (line.matches("\\d{1,18}") && Long.parseLong(line) < 1L << 50) {
                    return OptionalLong.of(Long.parseLong(line));
                }
            }
        }
        return OptionalLong.empty();
    }

    /// Memory that a process may take now without pushing others out; unlimited if unknown.
    long available() {
        long free = memory("MemAvailable").orElse(Long.MAX_VALUE);
        return Math.min(free, memoryLimit().orElse(Long.MAX_VALUE));
    }

    /// A line of /proc/meminfo in bytes: `MemTotal`, `MemAvailable`.
    OptionalLong memory(String name) {
        return lines("proc/meminfo").stream()
                .filter(line -> line.startsWith(name + ":"))
                .map(line -> line.replaceAll("\\D", ""))
                .filter(digits -> !digits.isEmpty())
                .mapToLong(digits -> Long.parseLong(digits) << 10)
                .findFirst();
    }

    private List<String> among(List<String> names) {
        Set<String> flags = new LinkedHashSet<>(
                List.of(field("flags").or(() -> field("Features")).orElse("").split("\\s+")));
        List<String> found = new ArrayList<>(names);
        found.removeIf(name -> !flags.contains(name));
        return found;
    }

    private Optional<String> field(String name) {
        return lines("proc/cpuinfo").stream()
                .filter(line -> line.matches(name + "\\s*:.*"))
                .map(line -> line.substring(line.indexOf(':') + 1).strip())
                .findFirst();
    }

    private List<String> lines(String file) {
        try {
            return Files.readAllLines(root.resolve(file));
        } catch (IOException e) {
            return List.of(); // another operating system, or not allowed: unknown
        }
    }
}
