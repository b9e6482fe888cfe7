package ingot.data;

import static ingot.data.CorpusTest.corpus;
import static ingot.data.CorpusTest.fails;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SequencesTest {
    @TempDir
    static Path folder;

    private static Tokenizer letters; // no merges: one id for each byte

    @BeforeAll
    static void open() {
        BytePairs.train(corpus("a", "x"), 257, Progress.NONE).write(folder.resolve("tokenizer.json"));
        letters = Tokenizer.open(folder);
    }

    private static int id(char letter) {
        return letter == '|' ? 0 : letters.encode(String.valueOf(letter))[0];
    }

    @Test
    void packsDocumentsOneAfterTheOther() {
        var sequences = Sequences.of(corpus("a", "abc", "b", "de"), letters, 3, Progress.NONE);
        // |abc|de| : 8 tokens, 7 targets, two sequences of three
        assertThat(IntStream.range(0, sequences.tokens()).map(sequences::id))
                .containsExactly("|abc|de|".chars().mapToObj(c -> id((char) c)).toArray(Integer[]::new));
        assertThat(sequences.count()).isEqualTo(2);
        var inputs = new int[8];
        var targets = new int[8];
        sequences.read(1, inputs, 2, targets, 4);
        assertThat(inputs).containsExactly(0, 0, id('c'), id('|'), id('d'), 0, 0, 0);
        assertThat(targets).containsExactly(0, 0, 0, 0, id('|'), id('d'), id('e'), 0);
    }

    @Test
    void writesToMemory() {
        var sequences = Sequences.of(corpus("a", "abcdef"), letters, 3, Progress.NONE);
        try (var arena = Arena.ofConfined()) {
            var inputs = arena.allocate(24);
            var targets = arena.allocate(24);
            sequences.read(0, inputs, 12, targets, 8);
            assertThat(inputs.toArray(ValueLayout.JAVA_INT)).containsExactly(0, 0, 0, 0, id('a'), id('b'));
            assertThat(targets.toArray(ValueLayout.JAVA_INT)).containsExactly(0, 0, id('a'), id('b'), id('c'), 0);
        }
    }

    @Test
    void countsTheBytesOfItsTargets() {
        var sequences = Sequences.of(corpus("a", "abc", "b", "de"), letters, 3, Progress.NONE);
        assertThat(sequences.targetBytes()).isEqualTo(5); // a b c (|) d e; the last separator fills no sequence
        assertThat(sequences.bytesPerToken()).isEqualTo(5.0 / 6);
        assertThat(sequences.bitsPerByte(10 * Math.log(2))).isCloseTo(2.0, within(1e-12));
        assertThat(Sequences.of(corpus("a", "abc", "b", "de"), letters, 4, Progress.NONE)
                        .targetBytes())
                .isEqualTo(3);
    }

    @Test
    void everyTargetOnce() {
        var text = "the quick brown fox jumps over the lazy dog\n".repeat(30);
        var sequences = Sequences.of(corpus("a", text), letters, 7, Progress.NONE);
        var targets = new ArrayList<Integer>();
        var in = new int[7];
        var out = new int[7];
        for (int s = 0; s < sequences.count(); s++) {
            sequences.read(s, in, 0, out, 0);
            for (int t = 0; t < 7; t++) {
                assertThat(in[t]).isEqualTo(sequences.id(targets.size()));
                targets.add(out[t]);
            }
        }
        assertThat(targets)
                .isEqualTo(IntStream.rangeClosed(1, targets.size())
                        .map(sequences::id)
                        .boxed()
                        .toList());
        assertThat(sequences.tokens() - 1 - targets.size()).isBetween(0, 6);
    }

    @Test
    void idsAbove16Bits() throws IOException {
        var json = Files.readString(folder.resolve("tokenizer.json"));
        int a = id('a');
        var wide = folder.resolve("wide.json");
        Files.writeString(wide, json.replaceFirst("\"a\" ?: ?" + a + "\\b", "\"a\" : 70000"));
        try (var tokenizer = Tokenizer.open(wide)) {
            assertThat(tokenizer.vocabularySize()).isEqualTo(70_001);
            var sequences = Sequences.of(corpus("x", "aba"), tokenizer, 2, Progress.NONE);
            assertThat(IntStream.range(0, 5).map(sequences::id)).containsExactly(0, 70_000, id('b'), 70_000, 0);
        }
    }

    @Test
    void progressCountsBytes() {
        var seen = new ArrayList<Long>();
        Sequences.of(corpus("a", "abc", "b", "é"), letters, 1, (done, total) -> {
            assertThat(total).isEqualTo(5);
            seen.add(done);
        });
        assertThat(seen).hasSize(2).contains(5L);
    }

    @Test
    void tooLittleText() {
        fails(
                () -> Sequences.of(corpus("a", "abc"), letters, 5, Progress.NONE),
                "corpus: 5 tokens do not fill one "
                        + "sequence of 5 and its next token; use more text or a shorter sequence");
        assertThat(Sequences.of(corpus("a", "abc"), letters, 4, Progress.NONE).count())
                .isEqualTo(1);
        fails(
                () -> Sequences.of(corpus("a", "abc"), letters, 0, Progress.NONE),
                "sequence length 0: expected at least 1");
    }

    @Test
    void refusesSequencesOutside() {
        var sequences = Sequences.of(corpus("a", "abc"), letters, 2, Progress.NONE);
        assertThatThrownBy(() -> sequences.read(2, new int[2], 0, new int[2], 0))
                .isInstanceOf(IndexOutOfBoundsException.class)
                .hasMessage("sequence 2 of 2");
    }
}
