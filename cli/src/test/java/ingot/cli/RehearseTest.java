package ingot.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class RehearseTest {
    /// It works, says nothing, leaves nothing behind and is not for people.
    @Test
    void rehearses() throws IOException {
        long before = folders();
        assertThat(Invocation.of("rehearse")).isEqualTo(new Invocation(0, "", ""));
        assertThat(folders()).isEqualTo(before);
        assertThat(Invocation.of("--help").out()).doesNotContain("rehearse");
    }

    private static long folders() throws IOException {
        try (Stream<Path> files = Files.list(Path.of(System.getProperty("java.io.tmpdir")))) {
            return files.filter(file -> file.getFileName().toString().startsWith("ingot-rehearsal"))
                    .count();
        }
    }
}
