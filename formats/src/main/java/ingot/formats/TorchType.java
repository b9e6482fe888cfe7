package ingot.formats;

import ingot.ir.DType;
import ingot.ir.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// An element type of PyTorch: how it is stored, and what it is here.
enum TorchType {
    F64("Double", "float64", 8, DType.F32),
    F32("Float", "float32", 4, DType.F32),
    F16("Half", "float16", 2, DType.F32),
    BF16("BFloat16", "bfloat16", 2, DType.F32),
    I64("Long", "int64", 8, DType.I64),
    I32("Int", "int32", 4, DType.I32),
    I16("Short", "int16", 2, DType.I32),
    I8("Char", "int8", 1, DType.I8),
    U8("Byte", "uint8", 1, DType.U8),
    BOOL("Bool", "bool", 1, DType.BOOL);

    private final String storage;
    private final String torch;
    private final int bytes;
    private final DType dtype;

    TorchType(String storage, String torch, int bytes, DType dtype) {
        this.storage = storage + "Storage";
        this.torch = torch;
        this.bytes = bytes;
        this.dtype = dtype;
    }

    /// The class of its storages: `FloatStorage`.
    String storage() {
        return storage;
    }

    /// Its name in the module torch: `float32`.
    String torch() {
        return torch;
    }

    int bytes() {
        return bytes;
    }

    DType dtype() {
        return dtype;
    }

    /// Stored as it is here.
    boolean isPlain() {
        return name().equals(dtype.name());
    }

    boolean isHalf() {
        return this == F16 || this == BF16;
    }

    void copy(MemorySegment from, long at, Tensor to, long index) {
        switch (this) {
            case F64 -> to.setFloat(index, (float) from.get(ValueLayout.JAVA_DOUBLE_UNALIGNED, 8 * at));
            case F32 -> to.setFloat(index, from.get(ValueLayout.JAVA_FLOAT_UNALIGNED, 4 * at));
            case F16 -> to.setFloat(index, Float.float16ToFloat(from.get(ValueLayout.JAVA_SHORT_UNALIGNED, 2 * at)));
            case BF16 ->
                to.setFloat(index, Float.intBitsToFloat(from.get(ValueLayout.JAVA_SHORT_UNALIGNED, 2 * at) << 16));
            case I64 -> to.setLong(index, from.get(ValueLayout.JAVA_LONG_UNALIGNED, 8 * at));
            case I32 -> to.setLong(index, from.get(ValueLayout.JAVA_INT_UNALIGNED, 4 * at));
            case I16 -> to.setLong(index, from.get(ValueLayout.JAVA_SHORT_UNALIGNED, 2 * at));
            case I8, U8, BOOL -> to.setLong(index, from.get(ValueLayout.JAVA_BYTE, at));
        }
    }
}
