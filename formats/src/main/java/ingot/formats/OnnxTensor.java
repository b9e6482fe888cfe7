package ingot.formats;

import ingot.ir.DType;
import ingot.ir.IngotException;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.store.BaseWeights;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A tensor of an ONNX file: name, type, sizes, and where its bytes lie. They are read when asked for.
record OnnxTensor(String name, OnnxType type, List<Long> dims, Data data) {
    private static final ValueLayout.OfShort SHORT =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    OnnxTensor {
        dims = List.copyOf(dims);
        elements(name, dims);
    }

    /// Where the elements are.
    sealed interface Data {
        /// Little-endian, without gaps; 4-bit elements two to a byte, the low half first.
        record Raw(MemorySegment bytes) implements Data {}

        /// Numbers in the encoding of protobuf, in one or several runs: varints, or fixed 4 or 8 bytes.
        record Numbers(List<MemorySegment> runs, int width) implements Data {
            public Numbers {
                runs = List.copyOf(runs);
            }
        }

        record Strings(List<String> values) implements Data {
            public Strings {
                values = List.copyOf(values);
            }
        }

        /// In another file beside the model.
        record External(String location, long offset, long length) implements Data {}
    }

    /// Opens a file beside the model: the bytes of a part of it.
    @FunctionalInterface
    interface Neighbours {
        MemorySegment open(String tensor, Data.External where, long bytes);

        /// For a tensor outside of a model.
        static Neighbours none() {
            return (tensor, where, _) -> {
                throw new IngotException("onnx: tensor " + tensor + " lies in " + where.location()
                        + ", but only a model can have data in other files");
            };
        }
    }

    long elements() {
        return elements(name, dims);
    }

    private static long elements(String name, List<Long> dims) {
        long elements = 1;
        for (long dim : dims) {
            if (dim < 0 || dim > Integer.MAX_VALUE || (dim > 0 && elements > (Long.MAX_VALUE >> 5) / dim)) {
                throw new IngotException("onnx: tensor " + name + " has the shape " + dims
                        + "; sizes are 0 to 2147483647, and all elements must be countable");
            }
            elements *= dim;
        }
        return elements;
    }

    Shape shape() {
        return Shape.of(dims.stream().map(Math::toIntExact).toList());
    }

    /// The type it has in a graph.
    Type valueType() {
        return new Type(type.dtype("tensor " + name), shape());
    }

    /// Bytes in the file.
    long bytes() {
        return type == OnnxType.STRING ? 0 : type.bytes(elements());
    }

    /// Where its bytes lie in a file of the model, if they are those of f32, f16 or bf16 elements without gaps.
    BaseWeights.@Nullable Region region(OnnxModel model) {
        DType dtype = switch (type) {
            case FLOAT -> DType.F32;
            case FLOAT16 -> DType.F16;
            case BFLOAT16 -> DType.BF16;
            default -> null;
        };
        if (dtype == null) {
            return null;
        }
        checkSize(model);
        Type stored = new Type(dtype, shape());
        return switch (data) {
            case Data.Raw raw -> new BaseWeights.Region(stored, model.path(), model.offset(raw.bytes()));
            case Data.Numbers numbers ->
                numbers.runs().size() == 1 && numbers.width() == 4 && dtype == DType.F32
                        ? new BaseWeights.Region(
                                stored,
                                model.path(),
                                model.offset(numbers.runs().getFirst()))
                        : null;
            case Data.External external ->
                new BaseWeights.Region(
                        stored, model.path().resolveSibling(external.location()), Math.max(0, external.offset()));
            case Data.Strings _ -> null;
        };
    }

    /// The whole tensor on the heap.
    Tensor read(Neighbours neighbours) {
        Type valueType = valueType();
        checkSize(neighbours); // before memory is taken for it
        if (valueType.bytes() > Integer.MAX_VALUE - 8) {
            throw new IngotException("onnx: tensor " + name + " : " + valueType + " has more than 2 GiB");
        }
        Tensor tensor = Tensor.zeros(valueType);
        read(tensor.data(), neighbours);
        return tensor;
    }

    /// Writes the elements, little-endian, in the type they have in a graph; `target` has exactly their size.
    void read(MemorySegment target, Neighbours neighbours) {
        Type valueType = valueType();
        if (target.byteSize() != valueType.bytes()) {
            throw new IllegalArgumentException(
                    name + ": " + valueType.bytes() + " bytes, target has " + target.byteSize());
        }
        checkSize(neighbours);
        switch (data) {
            case Data.Raw raw -> decode(raw.bytes(), target);
            case Data.External external -> decode(neighbours.open(name, external, bytes()), target);
            case Data.Numbers numbers -> numbers(numbers, Tensor.over(valueType, target));
            case Data.Strings _ -> throw new IngotException("onnx: tensor " + name + " holds strings");
        }
    }

    /// Refuses data of another size than the shape says.
    private void checkSize(Neighbours neighbours) {
        switch (data) {
            case Data.Raw raw -> expectBytes(raw.bytes().byteSize());
            case Data.External external ->
                expectBytes(neighbours.open(name, external, bytes()).byteSize());
            case Data.Numbers numbers -> {
                long count = 0;
                for (MemorySegment run : numbers.runs()) {
                    count += numbers.width() == 0 ? varints(run) : run.byteSize() / numbers.width();
                }
                // 4-bit elements lie two to a number
                long needed = type.bits() == 4 ? bytes() : elements();
                if (count != needed) {
                    throw new IngotException("onnx: tensor " + name + " : " + type + dims + " needs " + needed
                            + " numbers, the file has " + count);
                }
            }
            case Data.Strings _ -> {}
        }
    }

    private void expectBytes(long bytes) {
        if (bytes != bytes()) {
            throw new IngotException("onnx: tensor " + name + " : " + type + dims + " needs " + bytes()
                    + " bytes, the file has " + bytes);
        }
    }

    private static long varints(MemorySegment run) {
        long count = 0;
        for (long i = 0; i < run.byteSize(); i++) {
            count += run.get(ValueLayout.JAVA_BYTE, i) >= 0 ? 1 : 0;
        }
        return count;
    }

    private void decode(MemorySegment raw, MemorySegment target) {
        switch (type) {
            case FLOAT, INT32, INT64, UINT64, INT8, UINT8 -> target.copyFrom(raw);
            case BOOL -> {
                for (long i = 0; i < target.byteSize(); i++) {
                    target.set(ValueLayout.JAVA_BYTE, i, (byte) (raw.get(ValueLayout.JAVA_BYTE, i) != 0 ? 1 : 0));
                }
            }
            default -> {
                Tensor tensor = Tensor.over(valueType(), target);
                for (long i = 0; i < elements(); i++) {
                    element(raw, i, tensor);
                }
            }
        }
    }

    private void element(MemorySegment raw, long i, Tensor target) {
        switch (type) {
            case FLOAT16 -> target.setFloat(i, Float.float16ToFloat(raw.get(SHORT, i * 2)));
            case BFLOAT16 -> target.setFloat(i, Float.intBitsToFloat(raw.get(SHORT, i * 2) << 16));
            case DOUBLE -> target.setFloat(i, (float) Double.longBitsToDouble(OnnxWire.longAt(raw, i)));
            case INT16 -> target.setLong(i, raw.get(SHORT, i * 2));
            case UINT16 -> target.setLong(i, raw.get(SHORT, i * 2) & 0xFFFF);
            case UINT32 -> target.setLong(i, OnnxWire.intAt(raw, i) & 0xFFFF_FFFFL);
            case UINT4, INT4 -> target.setLong(i, nibble(raw.get(ValueLayout.JAVA_BYTE, i / 2) >> (i % 2 * 4)));
            default -> throw new IllegalStateException(type + " is copied as it is");
        }
    }

    private long nibble(int bits) {
        return type == OnnxType.UINT4 ? bits & 15 : (bits << 28) >> 28;
    }

    private void numbers(Data.Numbers numbers, Tensor target) {
        long i = 0;
        for (MemorySegment run : numbers.runs()) {
            if (numbers.width() == 0) {
                for (OnnxWire wire = new OnnxWire(run); !wire.ended(); ) {
                    long value = wire.packedVarint();
                    if (type.bits() == 4) {
                        target.setLong(i++, nibble((int) value & 15));
                        if (i < elements()) {
                            target.setLong(i++, nibble((int) value >> 4 & 15));
                        }
                    } else {
                        number(target, i++, value);
                    }
                }
            } else {
                for (long k = 0; k < run.byteSize() / numbers.width(); k++) {
                    target.setFloat(
                            i++,
                            numbers.width() == 4
                                    ? Float.intBitsToFloat(OnnxWire.intAt(run, k))
                                    : (float) Double.longBitsToDouble(OnnxWire.longAt(run, k)));
                }
            }
        }
    }

    private void number(Tensor target, long i, long value) {
        switch (type) {
            case FLOAT16 -> target.setFloat(i, Float.float16ToFloat((short) value));
            case BFLOAT16 -> target.setFloat(i, Float.intBitsToFloat((int) value << 16));
            case UINT16 -> target.setLong(i, value & 0xFFFF);
            case UINT32 -> target.setLong(i, value & 0xFFFF_FFFFL);
            default -> target.setLong(i, value);
        }
    }

    /// The strings of a STRING tensor.
    List<String> strings() {
        return data instanceof Data.Strings strings ? strings.values() : List.of();
    }

    static OnnxTensor of(String name, Tensor value) {
        DType dtype = value.type().dtype();
        return new OnnxTensor(
                name,
                OnnxType.of(dtype),
                Arrays.stream(value.shape().dims()).mapToObj(d -> (long) d).toList(),
                new Data.Raw(value.data()));
    }
}
