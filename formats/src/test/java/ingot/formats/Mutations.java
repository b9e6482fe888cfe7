package ingot.formats;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.ir.IngotException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;

/// Damages a small file in every way that matters to a reader of sizes and names, and reads it each time.
///
/// A reader may take a damaged file or refuse it with a message for the user; anything else is a failure: another
/// exception, and memory that the file only claims to need.
final class Mutations {
    private static final long MOST_BYTES = 64L << 20;
    private static final int TRUNCATIONS = 250;

    private final String kind;
    private final Path file;
    private final byte[] whole;
    private final Runnable reader;
    private final long most;
    private final List<String> failures = new ArrayList<>();
    private int cases;
    private int refused;

    /// @param file where the reader finds what is damaged; it is restored in the end
    Mutations(String kind, Path file, Runnable reader) {
        this(kind, file, reader, MOST_BYTES);
    }

    /// @param most bytes of memory that reading may take
    Mutations(String kind, Path file, Runnable reader, long most) {
        this.most = most;
        this.kind = kind;
        this.file = file;
        this.reader = reader;
        try {
            whole = Files.readAllBytes(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /// @param random how many cases of each random kind
    /// @param parts what is put into the file where it is damaged: words of its format
    void run(int random, byte[]... parts) {
        reader.run(); // the file as it is
        SplittableRandom dice = new SplittableRandom(kind.hashCode());
        int step = Math.max(1, whole.length / TRUNCATIONS);
        for (int length = 0; length < whole.length; length += step) {
            read("cut to " + length, Arrays.copyOf(whole, length));
        }
        for (int i = 0; i < random; i++) {
            byte[] bytes = whole.clone();
            int at = dice.nextInt(bytes.length);
            bytes[at] ^= (byte) (1 << dice.nextInt(8));
            read("a bit of byte " + at, bytes);
        }
        for (int i = 0; i < random; i++) {
            byte[] bytes = whole.clone();
            for (int k = 0; k <= dice.nextInt(4); k++) {
                bytes[dice.nextInt(bytes.length)] = (byte) dice.nextInt(256);
            }
            read("bytes, round " + i, bytes);
        }
        for (int i = 0; i < random; i++) {
            int at = dice.nextInt(whole.length);
            read("a large number at " + at, with(at, number(dice)));
        }
        for (int i = 0; i < random && parts.length > 0; i++) {
            int at = dice.nextInt(whole.length);
            byte[] part = parts[dice.nextInt(parts.length)];
            int gone = dice.nextInt(Math.min(12, whole.length - at) + 1);
            read(
                    "round " + i + ": " + new String(part, java.nio.charset.StandardCharsets.ISO_8859_1) + " at " + at,
                    replaced(at, gone, part));
        }
        for (int i = 0; i < random / 4; i++) {
            int from = dice.nextInt(whole.length);
            int to = Math.min(whole.length, from + 1 + dice.nextInt(64));
            int at = dice.nextInt(whole.length);
            read("a piece of " + from + " at " + at, replaced(at, 0, Arrays.copyOfRange(whole, from, to)));
            read("without " + from + " to " + to, replaced(from, to - from, new byte[0]));
        }
        write(whole);
        assertThat(failures).as(kind + ": " + failures.size() + " of " + cases).isEmpty();
        assertThat(refused).as(kind + ": a fuzz that nothing notices").isGreaterThan(cases / 50);
    }

    int cases() {
        return cases;
    }

    private static byte[] number(SplittableRandom dice) {
        long value = switch (dice.nextInt(5)) {
            case 0 -> -1;
            case 1 -> Long.MAX_VALUE;
            case 2 -> 10L << 30;
            case 3 -> Integer.MAX_VALUE;
            default -> Long.MIN_VALUE;
        };
        byte[] bytes = ByteBuffer.allocate(8)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putLong(value)
                .array();
        return dice.nextBoolean() ? bytes : Arrays.copyOf(bytes, 4);
    }

    private byte[] with(int at, byte[] part) {
        byte[] bytes = whole.clone();
        System.arraycopy(part, 0, bytes, at, Math.min(part.length, bytes.length - at));
        return bytes;
    }

    private byte[] replaced(int at, int gone, byte[] part) {
        byte[] bytes = new byte[whole.length - gone + part.length];
        System.arraycopy(whole, 0, bytes, 0, at);
        System.arraycopy(part, 0, bytes, at, part.length);
        System.arraycopy(whole, at + gone, bytes, at + part.length, whole.length - at - gone);
        return bytes;
    }

    private void read(String what, byte[] bytes) {
        write(bytes);
        cases++;
        long before = allocated();
        try {
            reader.run();
        } catch (IngotException e) {
            refused++;
            if (e.getMessage() == null || e.getMessage().isBlank()) {
                failures.add(what + ": no message");
            }
        } catch (RuntimeException | Error e) {
            StackTraceElement[] stack = e.getStackTrace();
            failures.add(what + ": " + e + (stack.length == 0 ? "" : " at " + stack[0] + own(stack)));
        }
        long taken = allocated() - before;
        if (taken > most + 16L * bytes.length) {
            failures.add(what + ": took " + taken + " bytes of memory");
        }
    }

    private static String own(StackTraceElement[] stack) {
        return Arrays.stream(stack)
                .filter(frame -> frame.getClassName().startsWith("ingot."))
                .findFirst()
                .map(frame -> " below " + frame)
                .orElse("");
    }

    private void write(byte[] bytes) {
        try {
            Files.write(file, bytes);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /// Bytes of the heap that this thread has taken; 0 if this Java does not count them.
    static long allocated() {
        try {
            Object threads = Class.forName("java.lang.management.ManagementFactory")
                    .getMethod("getThreadMXBean")
                    .invoke(null);
            Method count =
                    Class.forName("com.sun.management.ThreadMXBean").getMethod("getThreadAllocatedBytes", long.class);
            return (long) count.invoke(threads, Thread.currentThread().threadId());
        } catch (ReflectiveOperationException e) {
            return 0;
        }
    }
}
