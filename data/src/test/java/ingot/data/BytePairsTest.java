package ingot.data;

import static ingot.data.CorpusTest.corpus;
import static ingot.data.CorpusTest.fails;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.data.BytePairs.Merge;
import ingot.ir.IngotException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class BytePairsTest {
    @TempDir
    Path folder;

    @Test
    void theMostFrequentPairFirst() {
        // The words "low", " low", " lower", " lowest": l-o and o-w occur four times, the ids of (l, o) are smaller.
        var pairs = BytePairs.train(corpus("a", "low low lower lowest"), 1000, Progress.NONE);
        assertThat(pairs.merges())
                .containsExactly(
                        new Merge("l", "o"), new Merge("lo", "w"), new Merge("Ġ", "low"), new Merge("Ġlow", "e"));
        assertThat(pairs.vocabulary())
                .hasSize(261)
                .startsWith("<|endoftext|>", "!", "\"")
                .endsWith("Ġlow", "Ġlowe");
    }

    @Test
    void stopsAtTheSize() {
        assertThat(BytePairs.train(corpus("a", "low low lower lowest"), 258, Progress.NONE)
                        .vocabulary())
                .hasSize(258);
        assertThat(BytePairs.train(corpus("a", "low"), 257, Progress.NONE).merges())
                .isEmpty();
    }

    @Test
    void equalToCountingAnewAfterEveryMerge() {
        var random = new SplittableRandom(3);
        for (int i = 0; i < 60; i++) {
            var text = i % 3 == 0 ? Texts.mixed(random, 400) : word(random, 400, i % 3 + 1);
            assertThat(BytePairs.train(corpus("a", text), 340, Progress.NONE).merges())
                    .as(text)
                    .isEqualTo(naive(text, 340));
        }
    }

    @Test
    void doesNotDependOnTheDocumentsWordsAreIn() {
        assertThat(BytePairs.train(corpus("a", "ab ab\n", "b", "cd cd abab"), 300, Progress.NONE)
                        .merges())
                .isEqualTo(BytePairs.train(corpus("a", "cd cd abab\n", "b", "ab ab"), 300, Progress.NONE)
                        .merges());
    }

    @Test
    void progressEndsAtTheEnd() {
        var seen = new ArrayList<Long>();
        var pairs = BytePairs.train(corpus("a", "low low lower lowest"), 260, (done, total) -> seen.add(done));
        assertThat(seen).last().isEqualTo((long) pairs.merges().size());
    }

    @Test
    void sizeBelowTheBytes() {
        fails(
                () -> BytePairs.train(corpus("a", "x"), 256, Progress.NONE),
                "vocabulary size 256: expected at least 257 " + "(256 bytes and <|endoftext|>), for example 2048");
    }

    @Test
    void cannotBeWritten() throws IOException {
        Files.writeString(folder.resolve("run"), "a file is in the way");
        var pairs = BytePairs.train(corpus("a", "x"), 257, Progress.NONE);
        assertThatThrownBy(() -> pairs.write(folder.resolve("run/tokenizer.json")))
                .isInstanceOf(IngotException.class)
                .hasMessageStartingWith(folder.resolve("run/tokenizer.json") + ": the tokenizer cannot be written (");
    }

    private static String word(SplittableRandom random, int length, int letters) {
        var out = new StringBuilder();
        for (int i = 0; i < length; i++) {
            int c = random.nextInt(letters + 1);
            out.append(c == letters ? ' ' : (char) ('a' + c));
        }
        return out.toString();
    }

    /// The definition of the algorithm, slow and plain.
    private static List<Merge> naive(String text, int size) {
        var vocabulary = new ArrayList<String>();
        vocabulary.add("<|endoftext|>");
        for (int b : ByteAlphabet.bytesInOrder()) vocabulary.add(String.valueOf(ByteAlphabet.character(b)));
        var words = new ArrayList<List<String>>();
        for (var word : WordsTest.split(text)) {
            var letters = new ArrayList<String>();
            for (byte b : word.getBytes(StandardCharsets.UTF_8)) {
                letters.add(String.valueOf(ByteAlphabet.character(b)));
            }
            words.add(letters);
        }
        var merges = new ArrayList<Merge>();
        while (vocabulary.size() < size) {
            var counts = new HashMap<Merge, Integer>();
            for (var word : words) {
                for (int i = 0; i + 1 < word.size(); i++)
                    counts.merge(new Merge(word.get(i), word.get(i + 1)), 1, Integer::sum);
            }
            Map.Entry<Merge, Integer> best = null;
            for (var entry : counts.entrySet()) {
                var merge = entry.getKey();
                if (entry.getValue() < 2 || vocabulary.contains(merge.left() + merge.right())) continue;
                if (best == null
                        || entry.getValue() > best.getValue()
                        || (entry.getValue().equals(best.getValue()) && before(vocabulary, merge, best.getKey()))) {
                    best = entry;
                }
            }
            if (best == null) break;
            var merge = best.getKey();
            merges.add(merge);
            vocabulary.add(merge.left() + merge.right());
            for (var word : words) {
                for (int i = 0; i + 1 < word.size(); i++) {
                    if (!word.get(i).equals(merge.left()) || !word.get(i + 1).equals(merge.right())) continue;
                    word.set(i, merge.left() + merge.right());
                    word.remove(i + 1);
                }
            }
        }
        return merges;
    }

    private static boolean before(List<String> vocabulary, Merge a, Merge b) {
        int left = Integer.compare(vocabulary.indexOf(a.left()), vocabulary.indexOf(b.left()));
        return left != 0 ? left < 0 : vocabulary.indexOf(a.right()) < vocabulary.indexOf(b.right());
    }
}
