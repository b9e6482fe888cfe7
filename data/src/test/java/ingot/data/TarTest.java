package ingot.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

class TarTest {
    private static Map<String, String> read(byte[] archive) throws IOException {
        var files = new LinkedHashMap<String, String>();
        Tar.read(
                new ByteArrayInputStream(archive),
                (name, content) -> files.put(name, new String(content.bytes(), StandardCharsets.UTF_8)));
        return files;
    }

    @Test
    void files() throws IOException {
        var text = "x".repeat(700);
        assertThat(read(CorpusTest.tar("a/b.txt", text))).containsExactly(Map.entry("a/b.txt", text));
        Tar.read(new ByteArrayInputStream(CorpusTest.tar("a", text)), (name, content) -> {}); // unread content
    }

    @Test
    void longNames() throws IOException {
        var name = "folder/".repeat(30) + "file.txt";
        var pax = "%d path=%s\n".formatted(name.length() + 10, name);
        for (char type : "xL".toCharArray()) {
            var head = CorpusTest.tar("ignored", type == 'x' ? "11 mtime=1\n" + pax : name);
            retype(head, type);
            var file = CorpusTest.tar("short", "text");
            var archive = Arrays.copyOf(head, head.length - 1024 + file.length);
            System.arraycopy(file, 0, archive, head.length - 1024, file.length);
            assertThat(read(archive)).containsExactly(Map.entry(name, "text"));
        }
    }

    @Test
    void foldersAndLinksAreNoFiles() throws IOException {
        for (char type : "125g".toCharArray()) {
            var archive = CorpusTest.tar("entry", "text");
            retype(archive, type);
            assertThat(read(archive)).isEmpty();
        }
    }

    @Test
    void damage() {
        var archive = CorpusTest.tar("a.txt", "text");
        for (int cut : new int[] {0, 1, 511, 512, 514, 1000}) {
            assertThatThrownBy(() -> read(Arrays.copyOf(archive, cut))).isInstanceOf(EOFException.class);
        }
        for (int at = 0; at < 512; at += 7) {
            var flipped = archive.clone();
            flipped[at] ^= 0x41;
            assertThatThrownBy(() -> read(flipped)).as("byte %d", at).isInstanceOf(IOException.class);
        }
    }

    /// Sets the type and makes the checksum right again.
    private static void retype(byte[] header, char type) {
        header[156] = (byte) type;
        Arrays.fill(header, 148, 156, (byte) ' ');
        int sum = 0;
        for (int i = 0; i < 512; i++) sum += header[i] & 0xFF;
        var digits = "%06o".formatted(sum);
        for (int i = 0; i < 6; i++) header[148 + i] = (byte) digits.charAt(i);
        header[154] = 0;
    }
}
