package ingot.train;

import ingot.ir.IngotException;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// What a process may use of memory in all: Java's heap and code, threads, and the memory of models.
///
/// @param bytes of the whole process
/// @param process the part that Java itself needs: its heap, and what it keeps outside of it
public record MemoryBudget(long bytes, long process) {
    /// Compiled code, classes, compiler, stacks, libraries: what a training run was seen to use beside its heap.
    private static final long NATIVE = 112L << 20;

    private static final Pattern SIZE =
            Pattern.compile("(\\d+(?:\\.\\d+)?)\\s*([KMGT]?)(i?)B?", Pattern.CASE_INSENSITIVE);

    /// A budget for this process, whose heap has the limit it was started with.
    public static MemoryBudget of(long bytes) {
        return new MemoryBudget(bytes, NATIVE + Runtime.getRuntime().maxMemory());
    }

    /// Only the memory of models counts.
    public static MemoryBudget offHeap(long bytes) {
        return new MemoryBudget(bytes, 0);
    }

    /// `512MiB`, `1.5 GiB`, `2G`: K, M, G and T are powers of 1,024, as Java's options mean them.
    public static long parse(String text) {
        Matcher size = SIZE.matcher(text.strip());
        if (!size.matches()) {
            throw new IngotException("memory expected a size such as 512MiB or 2GiB, got '" + text + "'");
        }
        int power = "kmgt".indexOf(size.group(2).toLowerCase(Locale.ROOT)) + 1;
        double bytes =
                Double.parseDouble(size.group(1)) * Math.pow(1024, size.group(2).isEmpty() ? 0 : power);
        return (long) bytes;
    }

    /// What is left for models.
    public long available() {
        return bytes - process;
    }
}
