package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Reads event files as TensorBoard does.
class EventFileTest {
    @TempDir
    Path folder;

    private record Event(double wallTime, long step, String version, Map<String, Float> scalars) {}

    @Test
    void whatIsWrittenIsRead() throws IOException {
        Path file = folder.resolve("events.out.tfevents.1.ingot");
        Map<String, Double> scalars = new LinkedHashMap<>();
        scalars.put("loss", 1.25);
        scalars.put("norm", -3.5);
        try (EventFile events = new EventFile(file)) {
            events.write(1, scalars);
        }
        try (EventFile events = new EventFile(file)) {
            events.write(123_456_789_012L, Map.of("loss", 0.5));
        }
        List<Event> read = read(Files.readAllBytes(file));
        assertThat(read).hasSize(3);
        assertThat(read.getFirst().version()).isEqualTo("brain.Event:2");
        assertThat(read.get(1).step()).isEqualTo(1);
        assertThat(read.get(1).scalars()).containsExactly(Map.entry("loss", 1.25f), Map.entry("norm", -3.5f));
        assertThat(read.get(2).step()).isEqualTo(123_456_789_012L);
        assertThat(read.get(2).scalars()).containsExactly(Map.entry("loss", 0.5f));
        double now = System.currentTimeMillis() / 1000.0;
        assertThat(read).allSatisfy(event -> assertThat(event.wallTime()).isBetween(now - 600, now + 1));
    }

    private static List<Event> read(byte[] bytes) {
        ByteBuffer in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        List<Event> events = new ArrayList<>();
        while (in.hasRemaining()) {
            byte[] length = new byte[8];
            in.get(length);
            assertThat(in.getInt()).isEqualTo(masked(length));
            byte[] data = new byte
                    [(int) ByteBuffer.wrap(length)
                            .order(ByteOrder.LITTLE_ENDIAN)
                            .getLong()];
            in.get(data);
            assertThat(in.getInt()).isEqualTo(masked(data));
            events.add(event(ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN)));
        }
        return events;
    }

    private static Event event(ByteBuffer in) {
        double wallTime = 0;
        long step = 0;
        String version = "";
        Map<String, Float> scalars = new LinkedHashMap<>();
        while (in.hasRemaining()) {
            switch ((int) varint(in)) {
                case 1 << 3 | 1 -> wallTime = in.getDouble();
                case 2 << 3 -> step = varint(in);
                case 3 << 3 | 2 -> version = text(in);
                case 5 << 3 | 2 -> {
                    ByteBuffer summary = part(in);
                    while (summary.hasRemaining()) {
                        assertThat(varint(summary)).isEqualTo(1 << 3 | 2);
                        ByteBuffer value = part(summary);
                        assertThat(varint(value)).isEqualTo(1 << 3 | 2);
                        String tag = text(value);
                        assertThat(varint(value)).isEqualTo(2 << 3 | 5);
                        scalars.put(tag, value.getFloat());
                    }
                }
                default -> throw new AssertionError("unknown field at " + in.position());
            }
        }
        return new Event(wallTime, step, version, scalars);
    }

    private static long varint(ByteBuffer in) {
        long value = 0;
        for (int shift = 0; ; shift += 7) {
            byte next = in.get();
            value |= (next & 0x7FL) << shift;
            if (next >= 0) {
                return value;
            }
        }
    }

    private static ByteBuffer part(ByteBuffer in) {
        int length = (int) varint(in);
        ByteBuffer part = in.slice(in.position(), length).order(ByteOrder.LITTLE_ENDIAN);
        in.position(in.position() + length);
        return part;
    }

    private static String text(ByteBuffer in) {
        return StandardCharsets.UTF_8.decode(part(in)).toString();
    }

    private static int masked(byte[] bytes) {
        CRC32C crc = new CRC32C();
        crc.update(bytes);
        int value = (int) crc.getValue();
        return (value >>> 15 | value << 17) + 0xa282ead8;
    }
}
