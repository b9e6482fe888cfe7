package ingot.ir;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Tensors as Java arrays: `float[]` for every floating type, `long[]` for every integer type and BOOL.
final class Elements {
    private Elements() {}

    /// A tensor of zeros over the array that fits its type best.
    static Tensor allocate(Type type) {
        int n = count(type);
        return switch (type.dtype()) {
            case F32 -> Tensor.over(type, MemorySegment.ofArray(new float[n]));
            case I32 -> Tensor.over(type, MemorySegment.ofArray(new int[n]));
            case I64 -> Tensor.over(type, MemorySegment.ofArray(new long[n]));
            case BF16, F16, I8, U8, BOOL -> Tensor.zeros(type);
        };
    }

    static int count(Type type) {
        long n = type.shape().elements();
        if (n * type.dtype().bytes() > Integer.MAX_VALUE - 8) {
            throw new IngotException("interpreter: " + type + " has more than 2 GiB");
        }
        return (int) n;
    }

    /// The elements of a floating tensor, widened exactly. May be the tensor's own array: read only.
    static float[] floats(Tensor t) {
        if (t.type().dtype() == DType.F32) {
            return t.data().heapBase().orElse(null) instanceof float[] own
                            && own.length * 4L == t.data().byteSize()
                    ? own
                    : t.data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED);
        }
        float[] values = new float[count(t.type())];
        for (int i = 0; i < values.length; i++) {
            values[i] = t.getFloat(i);
        }
        return values;
    }

    /// The elements of an integer or BOOL tensor: sign-extended, U8 zero-extended. May be the tensor's own array: read
    /// only.
    static long[] longs(Tensor t) {
        int n = count(t.type());
        if (t.type().dtype() == DType.I64) {
            return t.data().heapBase().orElse(null) instanceof long[] own
                            && own.length * 8L == t.data().byteSize()
                    ? own
                    : t.data().toArray(ValueLayout.JAVA_LONG_UNALIGNED);
        }
        long[] values = new long[n];
        switch (t.type().dtype()) {
            case I32 -> {
                int[] ints = ints(t);
                for (int i = 0; i < n; i++) {
                    values[i] = ints[i];
                }
            }
            case U8, BOOL -> {
                for (int i = 0; i < n; i++) {
                    values[i] = t.data().get(ValueLayout.JAVA_BYTE, i) & 0xFF;
                }
            }
            case I8 -> {
                for (int i = 0; i < n; i++) {
                    values[i] = t.data().get(ValueLayout.JAVA_BYTE, i);
                }
            }
            case I64, F32, BF16, F16 -> throw new IllegalArgumentException("not an integer tensor: " + t.type());
        }
        return values;
    }

    /// The elements of an I32 tensor. May be the tensor's own array: read only.
    static int[] ints(Tensor t) {
        return t.data().heapBase().orElse(null) instanceof int[] own
                        && own.length * 4L == t.data().byteSize()
                ? own
                : t.data().toArray(ValueLayout.JAVA_INT_UNALIGNED);
    }

    /// An array to compute the result in: the tensor's own if it has one. `store` it afterwards.
    static float[] target(Tensor result) {
        return result.type().dtype() == DType.F32
                        && result.data().heapBase().orElse(null) instanceof float[] own
                        && own.length * 4L == result.data().byteSize()
                ? own
                : new float[count(result.type())];
    }

    /// Rounds to the type of `result` and writes.
    static void store(Tensor result, float[] values) {
        if (result.type().dtype() == DType.F32) {
            if (result.data().heapBase().orElse(null) != values) {
                MemorySegment.copy(values, 0, result.data(), ValueLayout.JAVA_FLOAT_UNALIGNED, 0, values.length);
            }
            return;
        }
        for (int i = 0; i < values.length; i++) {
            result.setFloat(i, values[i]);
        }
    }

    /// Keeps the low bits that fit the type of `result`; BOOL is ≠ 0.
    static void store(Tensor result, long[] values) {
        for (int i = 0; i < values.length; i++) {
            result.setLong(i, values[i]);
        }
    }
}
