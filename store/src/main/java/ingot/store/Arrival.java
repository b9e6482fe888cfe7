package ingot.store;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// A read that its reader checks, who goes through the payload anyway: while a piece is in the cache, its checksum
/// costs a fraction.
///
/// Nothing of the payload is to be relied on before `check`.
public final class Arrival implements Transfer {
    private final Transfer read;
    private final @Nullable Expected expected;

    /// What a payload on disk must match.
    ///
    /// @param failure makes the error from the checksum that was found
    record Expected(Checksum found, int crc, java.util.function.IntFunction<RuntimeException> failure) {}

    Arrival(Transfer read, @Nullable Expected expected) {
        this.read = read;
        this.expected = expected;
    }

    @Override
    public boolean done() {
        return read.done();
    }

    @Override
    public void await() {
        read.await();
    }

    /// The reader is at the next piece of the payload, which is still as it was read.
    public void pass(MemorySegment piece) {
        if (expected != null) {
            expected.found().add(piece);
        }
    }

    /// Every piece has passed: refuses a payload that is damaged.
    public void check() {
        if (expected != null && expected.found().value() != expected.crc()) {
            throw expected.failure().apply(expected.found().value());
        }
    }
}
