package ingot.formats;

import ingot.ir.DType;
import ingot.ir.IngotException;
import org.jspecify.annotations.Nullable;

/// An element type of ONNX and the type that stands for it here.
///
/// Floating types of any width are computed in F32 (`Cast` to a narrow one rounds); integers without a twin here take
/// the next wider signed type, and unsigned 64-bit integers the signed ones of that width.
enum OnnxType {
    FLOAT(1, 32, DType.F32),
    UINT8(2, 8, DType.U8),
    INT8(3, 8, DType.I8),
    UINT16(4, 16, DType.I32),
    INT16(5, 16, DType.I32),
    INT32(6, 32, DType.I32),
    INT64(7, 64, DType.I64),
    STRING(8, 0, null),
    BOOL(9, 8, DType.BOOL),
    FLOAT16(10, 16, DType.F32),
    DOUBLE(11, 64, DType.F32),
    UINT32(12, 32, DType.I64),
    UINT64(13, 64, DType.I64),
    COMPLEX64(14, 64, null),
    COMPLEX128(15, 128, null),
    BFLOAT16(16, 16, DType.F32),
    FLOAT8E4M3FN(17, 8, null),
    FLOAT8E4M3FNUZ(18, 8, null),
    FLOAT8E5M2(19, 8, null),
    FLOAT8E5M2FNUZ(20, 8, null),
    UINT4(21, 4, DType.U8),
    INT4(22, 4, DType.I8),
    FLOAT4E2M1(23, 4, null);

    private final int id;
    private final int bits;
    private final @Nullable DType dtype;

    OnnxType(int id, int bits, @Nullable DType dtype) {
        this.id = id;
        this.bits = bits;
        this.dtype = dtype;
    }

    /// The type of a `TensorProto.DataType` number, or null if no such type is known.
    static @Nullable OnnxType find(long id) {
        for (OnnxType type : values()) {
            if (type.id == id) {
                return type;
            }
        }
        return null;
    }

    static OnnxType of(long id, String where) {
        OnnxType type = find(id);
        if (type == null) {
            throw new IngotException(
                    "onnx: " + where + " has the element type number " + id + ", known are 1 to " + FLOAT4E2M1.id);
        }
        return type;
    }

    /// The ONNX type that a value of this system is written as.
    static OnnxType of(DType dtype) {
        return switch (dtype) {
            case F32 -> FLOAT;
            case BF16 -> BFLOAT16;
            case F16 -> FLOAT16;
            case I32 -> INT32;
            case I64 -> INT64;
            case I8 -> INT8;
            case U8 -> UINT8;
            case BOOL -> BOOL;
        };
    }

    int id() {
        return id;
    }

    boolean isSupported() {
        return dtype != null;
    }

    DType dtype(String where) {
        if (dtype == null) {
            throw new IngotException("onnx: " + where + " has elements of type " + name()
                    + ", which have no meaning here; strings, complex numbers and 8-bit floats are not supported");
        }
        return dtype;
    }

    /// Bytes of `elements` packed elements in `raw_data`.
    long bytes(long elements) {
        return bits == 4 ? elements / 2 + elements % 2 : Math.multiplyExact(elements, (long) (bits / 8));
    }

    int bits() {
        return bits;
    }

    boolean isUnsigned() {
        return switch (this) {
            case UINT4, UINT8, UINT16, UINT32, UINT64 -> true;
            default -> false;
        };
    }
}
