package ingot.formats;

import ingot.ir.IngotException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/// A walk over the fields of one protobuf message in memory: call `next`, then exactly one method that takes the value.
///
/// Encoding: https://protobuf.dev/programming-guides/encoding. Nothing is copied; a length is checked against the
/// message around it before it is believed.
final class OnnxWire {
    static final int VARINT = 0;
    static final int FIXED64 = 1;
    static final int BYTES = 2;
    static final int FIXED32 = 5;

    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    /// Longer names and strings are refused before memory is taken for them.
    private static final int MAX_TEXT = 16 << 20;

    private final MemorySegment message;
    private final long origin; // of the message in the file, for errors
    private long at;
    private int field;
    private int wireType;

    OnnxWire(MemorySegment message) {
        this(message, 0);
    }

    private OnnxWire(MemorySegment message, long origin) {
        this.message = message;
        this.origin = origin;
    }

    /// Moves to the next field; false at the end of the message.
    boolean next() {
        if (at == message.byteSize()) {
            return false;
        }
        long key = varint();
        wireType = (int) (key & 7);
        if ((key >>> 3) == 0 || (key >>> 3) > 0x1FFF_FFFFL) {
            throw wrong("field number " + (key >>> 3) + " does not exist");
        }
        field = (int) (key >>> 3);
        if (wireType != VARINT && wireType != FIXED64 && wireType != BYTES && wireType != FIXED32) {
            throw wrong("field " + field + " has the wire type " + wireType);
        }
        return true;
    }

    int field() {
        return field;
    }

    /// True when the field holds many numbers or a message, a string, bytes.
    boolean isBytes() {
        return wireType == BYTES;
    }

    long integer() {
        expect(VARINT);
        return varint();
    }

    float floating() {
        expect(FIXED32);
        return Float.intBitsToFloat(message.get(INT, take(4)));
    }

    String text() {
        MemorySegment bytes = bytes();
        if (bytes.byteSize() > MAX_TEXT) {
            throw wrong("a name of " + bytes.byteSize() + " bytes");
        }
        return new String(bytes.toArray(ValueLayout.JAVA_BYTE), StandardCharsets.UTF_8);
    }

    /// The bytes of the field, in place.
    MemorySegment bytes() {
        expect(BYTES);
        long length = varint();
        return message.asSlice(take(length), length);
    }

    OnnxWire message() {
        MemorySegment inner = bytes();
        return new OnnxWire(inner, origin + at - inner.byteSize());
    }

    /// The value of a number that stands alone, in place: what `bytes` is for packed ones.
    MemorySegment number() {
        long from = at;
        skip();
        return message.asSlice(from, at - from);
    }

    void skip() {
        switch (wireType) {
            case VARINT -> varint();
            case FIXED64 -> take(8);
            case FIXED32 -> take(4);
            default -> bytes();
        }
    }

    /// True when nothing follows; for packed varints, which are read one by one with `packedVarint`.
    boolean ended() {
        return at == message.byteSize();
    }

    long packedVarint() {
        return varint();
    }

    private long varint() {
        long value = 0;
        for (int shift = 0; shift < 70; shift += 7) {
            long b = message.get(ValueLayout.JAVA_BYTE, take(1));
            value |= (b & 0x7F) << Math.min(shift, 63);
            if (b >= 0) {
                return value;
            }
        }
        throw wrong("a number is longer than ten bytes");
    }

    /// Steps over `length` bytes; their position.
    private long take(long length) {
        long left = message.byteSize() - at;
        if (length < 0 || length > left) {
            throw wrong("field " + field + " needs " + Long.toUnsignedString(length) + " bytes, " + left + " are left");
        }
        at += length;
        return at - length;
    }

    private void expect(int type) {
        if (wireType != type) {
            throw wrong("field " + field + " has the wire type " + wireType + ", expected " + type);
        }
    }

    private IngotException wrong(String what) {
        return new IngotException(
                "onnx: byte " + (origin + at) + ": " + what + "; the file is truncated, damaged or no ONNX model");
    }

    static long longAt(MemorySegment data, long index) {
        return data.get(LONG, index * 8);
    }

    static int intAt(MemorySegment data, long index) {
        return data.get(INT, index * 4);
    }
}
