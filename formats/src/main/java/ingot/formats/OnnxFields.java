package ingot.formats;

import java.io.ByteArrayOutputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;

/// Writes the fields of one protobuf message.
final class OnnxFields {
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();

    OnnxFields integer(int field, long value) {
        varint((long) field << 3 | OnnxWire.VARINT);
        return varint(value);
    }

    OnnxFields floating(int field, float value) {
        varint((long) field << 3 | OnnxWire.FIXED32);
        int bits = Float.floatToRawIntBits(value);
        for (int i = 0; i < 4; i++) {
            out.write(bits >>> 8 * i);
        }
        return this;
    }

    OnnxFields text(int field, String value) {
        return bytes(field, value.getBytes(StandardCharsets.UTF_8));
    }

    OnnxFields message(int field, OnnxFields value) {
        return bytes(field, value.toBytes());
    }

    OnnxFields bytes(int field, MemorySegment value) {
        return bytes(field, value.toArray(ValueLayout.JAVA_BYTE));
    }

    private OnnxFields bytes(int field, byte[] value) {
        length(field, value.length);
        out.writeBytes(value);
        return this;
    }

    /// The beginning of a field whose `length` bytes the caller writes.
    OnnxFields length(int field, long length) {
        varint((long) field << 3 | OnnxWire.BYTES);
        return varint(length);
    }

    private OnnxFields varint(long value) {
        long rest = value;
        while ((rest & ~0x7FL) != 0) {
            out.write((int) (rest & 0x7F | 0x80));
            rest >>>= 7;
        }
        out.write((int) rest);
        return this;
    }

    byte[] toBytes() {
        return out.toByteArray();
    }

    long size() {
        return out.size();
    }
}
