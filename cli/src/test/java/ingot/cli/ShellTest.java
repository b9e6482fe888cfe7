package ingot.cli;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ShellTest {
    @ParameterizedTest
    @CsvSource(
            quoteCharacter = '"',
            value = {
                "train.steps=200, train.steps=200",
                "two words, \"'two words'\"",
                "it's, \"'it'\\''s'\"",
                "$HOME, \"'$HOME'\"",
                "\"\", \"''\""
            })
    void wordsThatAShellReadsAsTheyAre(String word, String quoted) {
        assertThat(Shell.quote(word)).isEqualTo(quoted);
    }
}
