package ingot.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/// Processor time that the host of a virtual machine took while somebody here wanted to run: what its virtual disk
/// costs is among it. 0 where the kernel does not say.
record Steal(long ticks) {
    private static final Path STAT = Path.of("/proc/stat");
    private static final int FIELD = 8; // of `cpu user nice system idle iowait irq softirq steal`
    private static final double TICKS_PER_SECOND = 100;

    static Steal now() throws IOException {
        if (!Files.exists(STAT)) {
            return new Steal(0);
        }
        String[] fields = Files.readAllLines(STAT).getFirst().split("\\s+");
        return new Steal(fields.length > FIELD ? Long.parseLong(fields[FIELD]) : 0);
    }

    /// Since then, of all processors.
    double seconds() throws IOException {
        return (now().ticks - ticks) / TICKS_PER_SECOND;
    }
}
