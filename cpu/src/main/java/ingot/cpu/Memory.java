package ingot.cpu;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Raw off-heap access by address: one global segment over the whole address space.
///
/// A segment that starts at zero and never closes has no liveness check, and a bounds check that C2 removes once it
/// knows the address is below 2⁴⁸ (see [#MASK]). The same kernel over a bounds-checked arena segment runs about nine
/// times slower.
final class Memory {
    /// The whole address space as one segment: offset = address.
    static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    /// Keeps the 48 bits of a user-space address: tells C2 the range, so that it can drop the bounds check.
    static final long MASK = 0xFFFF_FFFF_FFFFL;

    private Memory() {}

    static float getFloat(long address) {
        return ALL.get(ValueLayout.JAVA_FLOAT_UNALIGNED, address & MASK);
    }

    static void putFloat(long address, float value) {
        ALL.set(ValueLayout.JAVA_FLOAT_UNALIGNED, address & MASK, value);
    }

    static int getInt(long address) {
        return ALL.get(ValueLayout.JAVA_INT_UNALIGNED, address & MASK);
    }

    static void putInt(long address, int value) {
        ALL.set(ValueLayout.JAVA_INT_UNALIGNED, address & MASK, value);
    }

    static long getLong(long address) {
        return ALL.get(ValueLayout.JAVA_LONG_UNALIGNED, address & MASK);
    }

    static void putLong(long address, long value) {
        ALL.set(ValueLayout.JAVA_LONG_UNALIGNED, address & MASK, value);
    }

    static void copy(long from, long to, long bytes) {
        MemorySegment.copy(ALL, from, ALL, to, bytes);
    }

    static void fill(long address, long bytes, byte value) {
        ALL.asSlice(address, bytes).fill(value);
    }
}
