package ingot.testkit;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/// Texts that are compared with files of the module's `src/test/resources/golden`.
///
/// `-Dgolden.update=true` rewrites the files; review the difference like code.
public final class Golden {
    private static final Path FOLDER = Path.of("src", "test", "resources", "golden");

    private Golden() {}

    /// Fails unless `text` is the content of `golden/<name>.txt`; the name may contain `/`.
    public static void check(String name, String text) {
        Path file = FOLDER.resolve(name + ".txt");
        String wanted = text.endsWith("\n") ? text : text + "\n";
        try {
            if (Boolean.getBoolean("golden.update")) {
                Files.createDirectories(file.getParent());
                Files.writeString(file, wanted);
                return;
            }
            if (!Files.exists(file)) {
                throw new AssertionError("golden file " + file + " is missing; write it with -Dgolden.update=true");
            }
            String expected = Files.readString(file).replace("\r\n", "\n");
            if (!expected.equals(wanted)) {
                throw new AssertionError(difference(
                        file, expected.lines().toList(), wanted.lines().toList()));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static String difference(Path file, List<String> expected, List<String> got) {
        int line = 0;
        while (line < expected.size() && line < got.size() && expected.get(line).equals(got.get(line))) {
            line++;
        }
        return "golden file %s differs at line %d (rewrite with -Dgolden.update=true)%nexpected: %s%ngot:      %s%nwhole text:%n%s"
                .formatted(
                        file,
                        line + 1,
                        line < expected.size() ? expected.get(line) : "(end)",
                        line < got.size() ? got.get(line) : "(end)",
                        String.join("\n", got));
    }
}
