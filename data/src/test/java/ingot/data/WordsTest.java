package ingot.data;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class WordsTest {
    /// The published expression, with white space spelled out: Java's `\s` is another set.
    private static final Pattern GPT2;

    static {
        var space = "\\t-\\r \\x85\\xA0\\u1680\\u2000-\\u200A\\u2028\\u2029\\u202F\\u205F\\u3000";
        GPT2 = Pattern.compile("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" + space + "\\p{L}\\p{N}]+|[" + space
                + "]+(?![^" + space + "])|[" + space + "]+");
    }

    static List<String> split(String text) {
        var words = new ArrayList<String>();
        Words.split(text, (from, to) -> words.add(text.substring(from, to)));
        return words;
    }

    private static List<String> expected(String text) {
        return GPT2.matcher(text).results().map(r -> r.group()).toList();
    }

    @Test
    void javaSource() {
        assertThat(split("public int  x1 = 42;\n\n    // it's don't"))
                .containsExactly(
                        "public", " int", " ", " x", "1", " =", " 42", ";", "\n\n   ", " //", " it", "'s", " don",
                        "'t");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"", " ", "  ", "\n", "a", " a", "'", "'l", "'ll", "'r", "''re", " 's", "\t a", "a \n", "😀😀 x"})
    void shortOnes(String text) {
        assertThat(split(text)).isEqualTo(expected(text));
    }

    @Test
    void isTheExpression() {
        var random = new SplittableRandom(1);
        for (int i = 0; i < 20_000; i++) {
            var text = Texts.mixed(random, random.nextInt(40));
            assertThat(split(text)).as(text).isEqualTo(expected(text));
        }
    }
}
