package ingot.ir;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// A dense row-major array with a type, on the heap or over memory that someone else owns.
public final class Tensor {
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;
    private static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED;

    private final Type type;
    private final MemorySegment data;

    private Tensor(Type type, MemorySegment data) {
        if (data.byteSize() != type.bytes()) {
            throw new IngotException(
                    "tensor: " + type + " needs " + type.bytes() + " bytes, the memory has " + data.byteSize());
        }
        this.type = type;
        this.data = data;
    }

    /// A new tensor of zeros on the heap; at most 2 GiB.
    public static Tensor zeros(Type type) {
        return new Tensor(type, MemorySegment.ofArray(new byte[Math.toIntExact(type.bytes())]));
    }

    /// A tensor over existing memory; not copied.
    public static Tensor over(Type type, MemorySegment data) {
        return new Tensor(type, data);
    }

    public static Tensor of(Shape shape, float... values) {
        return new Tensor(new Type(DType.F32, shape), MemorySegment.ofArray(values));
    }

    public static Tensor of(Shape shape, int... values) {
        return new Tensor(new Type(DType.I32, shape), MemorySegment.ofArray(values));
    }

    public static Tensor of(Shape shape, boolean... values) {
        byte[] bytes = new byte[values.length];
        for (int i = 0; i < values.length; i++) {
            bytes[i] = (byte) (values[i] ? 1 : 0);
        }
        return new Tensor(new Type(DType.BOOL, shape), MemorySegment.ofArray(bytes));
    }

    public static Tensor scalar(float value) {
        return of(Shape.SCALAR, value);
    }

    public static Tensor scalar(int value) {
        return of(Shape.SCALAR, value);
    }

    public Type type() {
        return type;
    }

    public Shape shape() {
        return type.shape();
    }

    public MemorySegment data() {
        return data;
    }

    /// Element `index` (row-major) of a floating tensor, widened exactly to fp32.
    public float getFloat(long index) {
        return switch (type.dtype()) {
            case F32 -> data.get(FLOAT, index * 4);
            case BF16 -> Float.intBitsToFloat(data.get(SHORT, index * 2) << 16);
            case F16 -> Float.float16ToFloat(data.get(SHORT, index * 2));
            case I32, I64, I8, U8, BOOL -> (float) getLong(index);
        };
    }

    /// Stores into a floating tensor, rounding to nearest even; into an integer tensor, truncating toward zero and
    /// saturating to its range, NaN as 0; into a BOOL tensor as `≠ 0`.
    public void setFloat(long index, float value) {
        switch (type.dtype()) {
            case F32 -> data.set(FLOAT, index * 4, value);
            case BF16 -> data.set(SHORT, index * 2, bfloat16(value));
            case F16 -> data.set(SHORT, index * 2, Float.floatToFloat16(value));
            case I32 -> setLong(index, (int) value);
            case I64 -> setLong(index, (long) value);
            case I8 -> setLong(index, Math.clamp((int) value, Byte.MIN_VALUE, Byte.MAX_VALUE));
            case U8 -> setLong(index, Math.clamp((int) value, 0, 255));
            case BOOL -> setLong(index, value != 0f ? 1 : 0);
        }
    }

    /// Element `index` (row-major) of an integer or BOOL tensor.
    public long getLong(long index) {
        return switch (type.dtype()) {
            case I32 -> data.get(INT, index * 4);
            case I64 -> data.get(LONG, index * 8);
            case I8 -> data.get(ValueLayout.JAVA_BYTE, index);
            case U8, BOOL -> data.get(ValueLayout.JAVA_BYTE, index) & 0xFF;
            case F32, BF16, F16 -> (long) getFloat(index);
        };
    }

    public int getInt(long index) {
        return (int) getLong(index);
    }

    /// Stores into an integer or BOOL tensor, keeping the low bits; into a floating tensor by rounding.
    public void setLong(long index, long value) {
        switch (type.dtype()) {
            case I32 -> data.set(INT, index * 4, (int) value);
            case I64 -> data.set(LONG, index * 8, value);
            case I8, U8 -> data.set(ValueLayout.JAVA_BYTE, index, (byte) value);
            case BOOL -> data.set(ValueLayout.JAVA_BYTE, index, (byte) (value != 0 ? 1 : 0));
            case F32, BF16, F16 -> setFloat(index, (float) value);
        }
    }

    public boolean getBoolean(long index) {
        return getLong(index) != 0;
    }

    /// A copy of an F32 tensor's elements.
    public float[] toFloats() {
        float[] values = new float[Math.toIntExact(shape().elements())];
        for (int i = 0; i < values.length; i++) {
            values[i] = getFloat(i);
        }
        return values;
    }

    /// A copy of an integer tensor's elements.
    public int[] toInts() {
        int[] values = new int[Math.toIntExact(shape().elements())];
        for (int i = 0; i < values.length; i++) {
            values[i] = getInt(i);
        }
        return values;
    }

    /// True when types agree and all bytes do, where any NaN equals any NaN (payloads are not part of the contract).
    public boolean sameBits(Tensor other) {
        if (!type.equals(other.type)) {
            return false;
        }
        if (data.mismatch(other.data) < 0) {
            return true;
        }
        if (!type.dtype().isFloating()) {
            return false;
        }
        for (long i = 0; i < shape().elements(); i++) {
            float a = getFloat(i);
            float b = other.getFloat(i);
            if (Float.floatToIntBits(a) != Float.floatToIntBits(b)) {
                return false;
            }
        }
        return true;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Tensor tensor && type.equals(tensor.type) && data.mismatch(tensor.data) < 0;
    }

    @Override
    public int hashCode() {
        int hash = type.hashCode();
        long bytes = Math.min(data.byteSize(), 256);
        for (long i = 0; i < bytes; i++) {
            hash = 31 * hash + data.get(ValueLayout.JAVA_BYTE, i);
        }
        return hash;
    }

    @Override
    public String toString() {
        StringBuilder text = new StringBuilder(type.toString()).append(" {");
        long shown = Math.min(8, shape().elements());
        for (long i = 0; i < shown; i++) {
            text.append(i == 0 ? "" : ", ").append(type.dtype().isFloating() ? "" + getFloat(i) : "" + getLong(i));
        }
        return text.append(shown < shape().elements() ? ", …}" : "}").toString();
    }

    /// fp32 → bf16, round to nearest even; a NaN stays a (quiet) NaN.
    private static short bfloat16(float value) {
        int bits = Float.floatToRawIntBits(value);
        if (Float.isNaN(value)) {
            return (short) ((bits >>> 16) | 0x40);
        }
        return (short) ((bits + 0x7FFF + ((bits >>> 16) & 1)) >>> 16);
    }
}
