package ingot.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.IngotException;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class GlobTest {
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "**/*.java      | A.java            | true",
                "**/*.java      | a/b/A.java        | true",
                "**/*.java      | a/A.javac         | false",
                "*.java         | a/b/A.java        | true",
                "a/*.txt        | a/x.txt           | true",
                "a/*.txt        | a/b/x.txt         | false",
                "a/**           | a/b/c/x.txt       | true",
                "a/**/x.txt     | a/x.txt           | true",
                "a/**/x.txt     | ab/x.txt          | false",
                "*.{md,txt}     | n/README.md       | true",
                "*.{md,txt}     | n/README.mdx      | false",
                "?.txt          | x/a.txt           | true",
                "?.txt          | x/ab.txt          | false",
                "[a-c].txt      | b.txt             | true",
                "[!a-c].txt     | b.txt             | false",
                "a.b            | axb               | false",
                "a(1)+$.txt     | a(1)+$.txt        | true",
            })
    void matches(String glob, String path, boolean expected) {
        assertThat(accepts(path, glob)).isEqualTo(expected);
    }

    @Test
    void exclusionWins() {
        assertThat(accepts("src/A.java", "**/*.java", "!**/test/**")).isTrue();
        assertThat(accepts("src/test/A.java", "**/*.java", "!**/test/**")).isFalse();
        assertThat(accepts("src/notes.md", "!*.java")).isTrue();
        assertThat(accepts("src/A.java", "!*.java")).isFalse();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "a{b     | glob 'a{b': '{' at 4 is not closed by one '}'",
                "[ab     | glob '[ab': '[' at 3 is not closed by ']'",
                "!       | glob '!' is empty; write for example **/*.java",
            })
    void malformed(String glob, String message) {
        assertThatThrownBy(() -> Glob.of(glob))
                .isInstanceOf(IngotException.class)
                .hasMessage(message);
    }

    private static boolean accepts(String path, String... globs) {
        return Glob.accepts(Arrays.stream(globs).map(Glob::of).toList(), path);
    }
}
