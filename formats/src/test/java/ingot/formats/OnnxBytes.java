package ingot.formats;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/// Writes protobuf fields, right or wrong, for the tests of the reader.
final class OnnxBytes {
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();

    OnnxBytes integer(int field, long value) {
        varint((long) field << 3);
        return varint(value);
    }

    OnnxBytes floating(int field, float value) {
        varint((long) field << 3 | 5);
        out.writeBytes(floats(value));
        return this;
    }

    OnnxBytes bytes(int field, byte[] value) {
        varint((long) field << 3 | 2);
        varint(value.length);
        out.writeBytes(value);
        return this;
    }

    OnnxBytes text(int field, String value) {
        return bytes(field, value.getBytes(StandardCharsets.UTF_8));
    }

    OnnxBytes message(int field, OnnxBytes value) {
        return bytes(field, value.toBytes());
    }

    /// A field that claims a length of its own.
    OnnxBytes claim(int field, long length) {
        varint((long) field << 3 | 2);
        return varint(length);
    }

    OnnxBytes varint(long value) {
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

    static byte[] floats(float... values) {
        ByteBuffer buffer = ByteBuffer.allocate(4 * values.length).order(ByteOrder.LITTLE_ENDIAN);
        for (float value : values) {
            buffer.putFloat(value);
        }
        return buffer.array();
    }

    // ---- parts of a model

    static OnnxBytes tensor(String name, int type, byte[] raw, long... dims) {
        OnnxBytes tensor = new OnnxBytes();
        for (long dim : dims) {
            tensor.integer(1, dim);
        }
        tensor.integer(2, type).text(8, name);
        return raw == null ? tensor : tensor.bytes(9, raw);
    }

    static OnnxBytes port(String name, int type, Object... dims) {
        OnnxBytes shape = new OnnxBytes();
        for (Object dim : dims) {
            shape.message(
                    1, dim instanceof String s ? new OnnxBytes().text(2, s) : new OnnxBytes().integer(1, (int) dim));
        }
        OnnxBytes tensor = new OnnxBytes().integer(1, type).message(2, shape);
        return new OnnxBytes().text(1, name).message(2, new OnnxBytes().message(1, tensor));
    }

    static OnnxBytes node(String name, String operator, String output, String... inputs) {
        OnnxBytes node = new OnnxBytes();
        for (String input : inputs) {
            node.text(1, input);
        }
        return node.text(2, output).text(3, name).text(4, operator);
    }

    static byte[] model(OnnxBytes graph) {
        return new OnnxBytes()
                .integer(1, 8)
                .text(2, "test")
                .message(7, graph)
                .message(8, new OnnxBytes().text(1, "").integer(2, 17))
                .toBytes();
    }
}
