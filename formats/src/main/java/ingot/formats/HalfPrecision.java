package ingot.formats;

import ingot.ir.DType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Widens F16 and BF16 to F32, exactly.
final class HalfPrecision {
    private static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

    private HalfPrecision() {}

    /// Where in `target`, the memory of the F32 elements, the halves belong before `widen`.
    static MemorySegment upper(MemorySegment target) {
        return target.asSlice(target.byteSize() / 2);
    }

    /// Widens the halves in the upper half of `target` over all of it, ascending: what is overwritten has been read.
    static void widen(DType from, MemorySegment target) {
        long count = target.byteSize() / 4;
        MemorySegment halves = upper(target);
        switch (from) {
            case BF16 -> {
                for (long i = 0; i < count; i++) {
                    target.set(INT, 4 * i, halves.get(SHORT, 2 * i) << 16);
                }
            }
            case F16 -> {
                for (long i = 0; i < count; i++) {
                    target.set(FLOAT, 4 * i, Float.float16ToFloat(halves.get(SHORT, 2 * i)));
                }
            }
            case F32, I32, I64, I8, U8, BOOL -> throw new IllegalArgumentException(from + " is no half");
        }
    }
}
