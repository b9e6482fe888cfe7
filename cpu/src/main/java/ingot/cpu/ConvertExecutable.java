package ingot.cpu;

import static ingot.cpu.Memory.ALL;
import static ingot.cpu.Memory.MASK;
import static ingot.cpu.Memory.getFloat;
import static ingot.cpu.Memory.getInt;
import static ingot.cpu.Memory.getLong;
import static ingot.cpu.Memory.putFloat;
import static ingot.cpu.Memory.putInt;
import static ingot.cpu.Memory.putLong;

import ingot.compiler.Backend;
import ingot.compiler.Kernel;
import ingot.ir.DType;
import ingot.ir.Op;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;

/// A conversion to or from an element type that maps do not compute with: int8 and 64-bit integers, half precision.
final class ConvertExecutable implements Backend.Executable {
    /// Converts n neighbours.
    private interface Conversion {
        void run(long from, long to, int n);
    }

    private final Crew crew;
    private final Conversion conversion;
    private final long count;
    private final int fromBytes;
    private final int toBytes;

    private ConvertExecutable(Conversion conversion, DType from, DType to, long count, Crew crew) {
        this.crew = crew;
        this.conversion = conversion;
        this.count = count;
        fromBytes = from.bytes();
        toBytes = to.bytes();
    }

    /// Null for other loops than a conversion, and for pairs of types that nobody has needed fast.
    static @Nullable ConvertExecutable of(Kernel.Loop loop, Crew crew) {
        if (!(loop.body().output("0").op() instanceof Op.Convert(var x, DType to))
                || !(x.op() instanceof Op.Input)
                || loop.reads().size() != 1) {
            return null;
        }
        Conversion conversion = conversion(x.dtype(), to);
        return conversion == null
                ? null
                : new ConvertExecutable(conversion, x.dtype(), to, x.shape().elements(), crew);
    }

    private static @Nullable Conversion conversion(DType from, DType to) {
        return switch (from) {
            case I8 ->
                switch (to) {
                    case F32 ->
                        (a, b, n) -> {
                            for (int i = 0; i < n; i++) {
                                putFloat(b + 4L * i, getByte(a + i));
                            }
                        };
                    case I32 ->
                        (a, b, n) -> {
                            for (int i = 0; i < n; i++) {
                                putInt(b + 4L * i, getByte(a + i));
                            }
                        };
                    case BF16, F16, I64, I8, U8, BOOL -> null;
                };
            case U8 ->
                switch (to) {
                    case F32 ->
                        (a, b, n) -> {
                            for (int i = 0; i < n; i++) {
                                putFloat(b + 4L * i, getByte(a + i) & 0xFF);
                            }
                        };
                    case I32 ->
                        (a, b, n) -> {
                            for (int i = 0; i < n; i++) {
                                putInt(b + 4L * i, getByte(a + i) & 0xFF);
                            }
                        };
                    case BF16, F16, I64, I8, U8, BOOL -> null;
                };
            case F32 ->
                switch (to) {
                    case I8 ->
                        (a, b, n) -> {
                            for (int i = 0; i < n; i++) {
                                putByte(b + i, Math.clamp((int) getFloat(a + 4L * i), -128, 127));
                            }
                        };
                    case U8 ->
                        (a, b, n) -> {
                            for (int i = 0; i < n; i++) {
                                putByte(b + i, Math.clamp((int) getFloat(a + 4L * i), 0, 255));
                            }
                        };
                    case I64 ->
                        (a, b, n) -> {
                            for (int i = 0; i < n; i++) {
                                putLong(b + 8L * i, (long) getFloat(a + 4L * i));
                            }
                        };
                    case F16 ->
                        (a, b, n) -> {
                            for (int i = 0; i < n; i++) {
                                putShort(b + 2L * i, Float.floatToFloat16(getFloat(a + 4L * i)));
                            }
                        };
                    case BF16 ->
                        (a, b, n) -> {
                            for (int i = 0; i < n; i++) {
                                putShort(b + 2L * i, bfloat(getFloat(a + 4L * i)));
                            }
                        };
                    case F32, I32, BOOL -> null;
                };
            case I32 ->
                switch (to) {
                    case I8, U8 ->
                        (a, b, n) -> {
                            for (int i = 0; i < n; i++) {
                                putByte(b + i, getInt(a + 4L * i));
                            }
                        };
                    case I64 ->
                        (a, b, n) -> {
                            for (int i = 0; i < n; i++) {
                                putLong(b + 8L * i, getInt(a + 4L * i));
                            }
                        };
                    case F32, BF16, F16, I32, BOOL -> null;
                };
            case I64 ->
                switch (to) {
                    case F32 ->
                        (a, b, n) -> {
                            for (int i = 0; i < n; i++) {
                                putFloat(b + 4L * i, getLong(a + 8L * i));
                            }
                        };
                    case I32 ->
                        (a, b, n) -> {
                            for (int i = 0; i < n; i++) {
                                putInt(b + 4L * i, (int) getLong(a + 8L * i));
                            }
                        };
                    case BF16, F16, I64, I8, U8, BOOL -> null;
                };
            case F16 ->
                to != DType.F32
                        ? null
                        : (a, b, n) -> {
                            for (int i = 0; i < n; i++) {
                                putFloat(b + 4L * i, Float.float16ToFloat(getShort(a + 2L * i)));
                            }
                        };
            case BF16 ->
                to != DType.F32
                        ? null
                        : (a, b, n) -> {
                            for (int i = 0; i < n; i++) {
                                putInt(b + 4L * i, getShort(a + 2L * i) << 16);
                            }
                        };
            case BOOL -> null;
        };
    }

    /// Rounds to nearest even; a NaN stays one.
    private static short bfloat(float x) {
        int bits = Float.floatToRawIntBits(x);
        return (short) (Float.isNaN(x) ? 0x7FC0 : bits + 0x7FFF + (bits >>> 16 & 1) >>> 16);
    }

    private static byte getByte(long address) {
        return ALL.get(ValueLayout.JAVA_BYTE, address & MASK);
    }

    private static void putByte(long address, int value) {
        ALL.set(ValueLayout.JAVA_BYTE, address & MASK, (byte) value);
    }

    private static short getShort(long address) {
        return ALL.get(ValueLayout.JAVA_SHORT_UNALIGNED, address & MASK);
    }

    private static void putShort(long address, short value) {
        ALL.set(ValueLayout.JAVA_SHORT_UNALIGNED, address & MASK, value);
    }

    @Override
    public long scratchBytes() {
        return 0;
    }

    @Override
    public void run(long[] addresses, long scratch) {
        long perTile = crew.tileElements(count, fromBytes + toBytes);
        crew.pool().run(Math.toIntExact(Math.ceilDiv(count, perTile)), (tile, worker) -> {
            long first = tile * perTile;
            conversion.run(addresses[0] + first * fromBytes, addresses[1] + first * toBytes, (int)
                    Math.min(perTile, count - first));
        });
    }
}
