package ingot.train;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.zip.CRC32C;

/// A TensorBoard event file: scalars over steps.
///
/// A record is u64 length, masked CRC32C of the length, data, masked CRC32C of the data, little-endian (TFRecord). The
/// data is an `Event` message:
/// 1 wall_time (double), 2 step (int64), 3 file_version (string) or 5 summary {1 value {1 tag (string), 2 simple_value
/// (float)}}, as in TensorFlow's event.proto and summary.proto.
final class EventFile implements AutoCloseable {
    private final OutputStream out;

    /// Appends to the file, or begins it.
    EventFile(Path path) throws IOException {
        boolean fresh = !Files.exists(path);
        out = Files.newOutputStream(path, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        if (fresh) {
            Message event = new Message();
            event.number(1, now());
            event.bytes(3, "brain.Event:2".getBytes(StandardCharsets.UTF_8));
            record(event.toByteArray());
        }
    }

    void write(long step, Map<String, Double> scalars) throws IOException {
        Message summary = new Message();
        for (Map.Entry<String, Double> scalar : scalars.entrySet()) {
            Message value = new Message();
            value.bytes(1, scalar.getKey().getBytes(StandardCharsets.UTF_8));
            value.number(2, scalar.getValue().floatValue());
            summary.bytes(1, value.toByteArray());
        }
        Message event = new Message();
        event.number(1, now());
        event.number(2, step);
        event.bytes(5, summary.toByteArray());
        record(event.toByteArray());
        out.flush();
    }

    private static double now() {
        return System.currentTimeMillis() / 1000.0;
    }

    private void record(byte[] data) throws IOException {
        ByteBuffer record = ByteBuffer.allocate(data.length + 16).order(ByteOrder.LITTLE_ENDIAN);
        record.putLong(data.length);
        record.putInt(maskedCrc(record.array(), 8));
        record.put(data);
        record.putInt(maskedCrc(data, data.length));
        out.write(record.array());
    }

    private static int maskedCrc(byte[] bytes, int length) {
        CRC32C crc = new CRC32C();
        crc.update(bytes, 0, length);
        int value = (int) crc.getValue();
        return Integer.rotateRight(value, 15) + 0xa282ead8;
    }

    @Override
    public void close() throws IOException {
        out.close();
    }

    /// The few wire types of protocol buffers that an event needs.
    private static final class Message {
        private final ByteArrayOutputStream out = new ByteArrayOutputStream();

        void number(int field, double value) {
            varint(field << 3 | 1);
            out.writeBytes(ByteBuffer.allocate(8)
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .putDouble(value)
                    .array());
        }

        void number(int field, float value) {
            varint(field << 3 | 5);
            out.writeBytes(ByteBuffer.allocate(4)
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .putFloat(value)
                    .array());
        }

        void number(int field, long value) {
            varint((long) field << 3);
            varint(value);
        }

        void bytes(int field, byte[] value) {
            varint(field << 3 | 2);
            varint(value.length);
            out.writeBytes(value);
        }

        private void varint(long value) {
            long rest = value;
            while ((rest & ~0x7FL) != 0) {
                out.write((int) (rest & 0x7F) | 0x80);
                rest >>>= 7;
            }
            out.write((int) rest);
        }

        byte[] toByteArray() {
            return out.toByteArray();
        }
    }
}
