package ingot.data;

import static ingot.data.CorpusTest.corpus;
import static ingot.data.CorpusTest.fails;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.huggingface.tokenizers.HuggingFaceTokenizer;
import ingot.ir.IngotException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TokenizerTest {
    private static final String CODE = """
        package a.b;

        /// It's a test, don't they say; naïve café — “quoted”.
        public final class Example<T extends Comparable<T>> {
            private static final int[] VALUES = {0, 1, 17, 4096};
        \tpublic static void main(String[] args) { System.out.println("x" + VALUES.length);   }

        }
        """;

    @TempDir
    static Path folder;

    private static BytePairs pairs;
    private static Tokenizer tokenizer;

    @BeforeAll
    static void train() {
        pairs = BytePairs.train(corpus("A.java", CODE.repeat(3)), 400, Progress.NONE);
        pairs.write(folder.resolve("tokenizer.json"));
        tokenizer = Tokenizer.open(folder);
    }

    @AfterAll
    static void close() {
        tokenizer.close();
    }

    @Test
    void knowsItsVocabulary() {
        assertThat(tokenizer.vocabularySize())
                .isEqualTo(pairs.vocabulary().size())
                .isEqualTo(400);
        assertThat(tokenizer.endOfText()).isZero();
        assertThat(tokenizer.byteLength(0)).isZero();
        for (int id = 1; id < 400; id++) {
            assertThat(tokenizer.byteLength(id))
                    .isEqualTo(pairs.vocabulary().get(id).length());
        }
        assertThat(tokenizer.fingerprint()).hasSize(64);
    }

    @Test
    void encodesAndDecodesAnything() {
        var random = new SplittableRandom(2);
        for (int i = 0; i < 400; i++) {
            for (var text : List.of(
                    Texts.unicode(random, random.nextInt(60)),
                    Texts.latin1(random, random.nextInt(60)),
                    Texts.mixed(random, random.nextInt(60)))) {
                var ids = tokenizer.encode(text);
                assertThat(tokenizer.decode(ids)).isEqualTo(text);
                assertThat(IntStream.of(ids).map(tokenizer::byteLength).sum())
                        .isEqualTo(text.getBytes(StandardCharsets.UTF_8).length);
            }
        }
    }

    @Test
    void idsAreThoseOfTheLibrary() throws IOException {
        var random = new SplittableRandom(4);
        try (var library = library(folder.resolve("tokenizer.json"))) {
            for (int i = 0; i < 400; i++) {
                var text = i % 2 == 0 ? Texts.mixed(random, 80) : Texts.unicode(random, 80);
                assertThat(tokenizer.encode(text)).as(text).isEqualTo(ids(library, text));
            }
            // Long enough to be cut, with and without characters that are left to the library.
            for (var odd : List.of("", "中文", "<|endoftext|>")) {
                var text = (CODE + odd).repeat(100) + Texts.mixed(random, 40_000);
                assertThat(tokenizer.encode(text)).isEqualTo(ids(library, text));
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"add_prefix_space, false, true", "use_regex, true, false"})
    void otherPreTokenizersToo(String key, String from, String to) throws IOException {
        var json = Files.readString(folder.resolve("tokenizer.json"));
        var changed = json.replace("\"" + key + "\" : " + from, "\"" + key + "\" : " + to);
        assertThat(changed).isNotEqualTo(json);
        var file = Files.writeString(folder.resolve("changed.json"), changed);
        try (var library = library(file);
                var other = Tokenizer.open(file)) {
            assertThat(other.encode(CODE)).isEqualTo(ids(library, CODE)).isNotEqualTo(tokenizer.encode(CODE));
        }
    }

    /// The words of training are those of the library, for every character that is not left to the library.
    @Test
    void wordsAreThoseOfTheLibrary() throws IOException {
        try (var library = library(folder.resolve("tokenizer.json"))) {
            for (int c = 1; c < 0x2070; c++) {
                if (c == 0x530) c = 0x2000;
                var text = "a" + (char) c + "b" + (char) c + (char) c + " " + (char) c + "1 \n" + (char) c;
                assertThat(WordsTest.split(text)).as("U+%04X", c).isEqualTo(libraryWords(library, text));
            }
        }
    }

    /// What training made of each word is what encoding makes of it.
    @Test
    void segmentationIsThatOfTraining() {
        for (var word : WordsTest.split(CODE)) {
            var tokens = new ArrayList<String>();
            for (int id : tokenizer.encode(word)) tokens.add(pairs.vocabulary().get(id));
            assertThat(tokens).isEqualTo(merged(word));
        }
    }

    private static List<String> merged(String word) {
        var tokens = new ArrayList<String>();
        for (byte b : word.getBytes(StandardCharsets.UTF_8)) tokens.add(String.valueOf(ByteAlphabet.character(b)));
        for (var merge : pairs.merges()) {
            for (int i = 0; i + 1 < tokens.size(); i++) {
                if (!tokens.get(i).equals(merge.left()) || !tokens.get(i + 1).equals(merge.right())) continue;
                tokens.set(i, merge.left() + merge.right());
                tokens.remove(i + 1);
            }
        }
        return tokens;
    }

    @Test
    void endOfTextInAText() {
        var ids = tokenizer.encode("a<|endoftext|>b");
        assertThat(ids).hasSize(3).contains(0);
        assertThat(tokenizer.decode(ids)).isEqualTo("a<|endoftext|>b");
    }

    @Test
    void unpairedSurrogate() {
        assertThat(tokenizer.decode(tokenizer.encode("a\uD83Db😀"))).isEqualTo("a\uFFFDb😀");
    }

    @Test
    void streamShowsWholeCharacters() {
        var random = new SplittableRandom(5);
        for (int i = 0; i < 200; i++) {
            var text = Texts.unicode(random, 30);
            var stream = tokenizer.stream();
            var shown = new StringBuilder();
            for (int id : tokenizer.encode(text)) {
                shown.append(stream.next(id));
                assertThat(text).startsWith(shown.toString());
            }
            assertThat(shown.toString()).isEqualTo(text);
            assertThat(stream.end()).isEmpty();
        }
    }

    @Test
    void streamOfBrokenText() {
        var stream = tokenizer.stream();
        var euro = tokenizer.encode("€"); // three bytes, three tokens
        assertThat(euro).hasSize(3);
        assertThat(stream.next(euro[0])).isEmpty();
        assertThat(stream.next(euro[1])).isEmpty();
        assertThat(stream.next(tokenizer.encode("z")[0])).isEqualTo("\uFFFDz");
        assertThat(stream.next(euro[0])).isEmpty();
        assertThat(stream.end()).isEqualTo("\uFFFD");
        assertThat(stream.end()).isEmpty();
    }

    @Test
    void idOutsideTheVocabulary() {
        fails(
                () -> tokenizer.decode(400),
                "token id 400 is not in the vocabulary of 400; the model and this "
                        + "tokenizer.json do not belong together");
        fails(
                () -> tokenizer.decode(-1),
                "token id -1 is not in the vocabulary of 400; the model and this "
                        + "tokenizer.json do not belong together");
    }

    @Test
    void isMissing() {
        var file = folder.resolve("none/tokenizer.json");
        fails(() -> Tokenizer.open(file), file + ": the tokenizer cannot be read (no such file)");
    }

    @Test
    void isCutOff() throws IOException {
        var whole = Files.readString(folder.resolve("tokenizer.json"));
        var file = Files.writeString(folder.resolve("cut.json"), whole.substring(0, whole.length() / 2));
        assertThatThrownBy(() -> Tokenizer.open(file))
                .isInstanceOf(IngotException.class)
                .hasMessageStartingWith(file + ": not valid JSON at line ");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '#',
            quoteCharacter = '`',
            value = {
                "{\"vocab_size\": 3}         # this JSON is no Hugging Face tokenizer.json (it has no model.vocab)",
                "{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"a\": 0}}} # a WordPiece tokenizer; "
                        + "a language model needs byte-level BPE",
                "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}}} # a BPE tokenizer that is not "
                        + "byte-level (its decoder is absent); expected a ByteLevel decoder",
                "{\"decoder\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": -5}}} # "
                        + "token 'a' has id -5; expected 0 to 16777215",
                "{\"decoder\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", \"vocab\": {\"a b\": 0}}} # "
                        + "token 'a b' (id 0) has characters outside the byte-level alphabet",
                "{\"decoder\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}}} # "
                        + "no added token <|endoftext|>, which separates documents and ends generation",
            })
    void isOfAnotherKind(String json, String message) throws IOException {
        var file = Files.writeString(folder.resolve("other.json"), json);
        fails(() -> Tokenizer.open(file), file + ": " + message);
    }

    @Test
    void mergesDoNotFitTheVocabulary() throws IOException {
        var whole = Files.readString(folder.resolve("tokenizer.json"));
        var merge = "\"" + pairs.merges().getFirst().left() + " "
                + pairs.merges().getFirst().right() + "\"";
        assertThat(whole).contains(merge);
        var file = Files.writeString(folder.resolve("unfit.json"), whole.replace(merge, "\"zq qz\""));
        assertThatThrownBy(() -> Tokenizer.open(file))
                .isInstanceOf(IngotException.class)
                .hasMessageStartingWith(file + ": Hugging Face tokenizers refuse it: ");
    }

    private static HuggingFaceTokenizer library(Path file) throws IOException {
        return HuggingFaceTokenizer.newInstance(
                file, Map.of("addSpecialTokens", "false", "truncation", "do_not_truncate", "padding", "false"));
    }

    private static int[] ids(HuggingFaceTokenizer library, String text) {
        return LongStream.of(library.encode(text, false, false).getIds())
                .mapToInt(Math::toIntExact)
                .toArray();
    }

    /// The words of the library, from the word of each token and the token's bytes.
    private static List<String> libraryWords(HuggingFaceTokenizer library, String text) {
        var encoding = library.encode(text, false, false);
        var words = new ArrayList<String>();
        int from = 0;
        for (int i = 1; i <= encoding.getIds().length; i++) {
            if (i < encoding.getIds().length && encoding.getWordIds()[i] == encoding.getWordIds()[from]) continue;
            var ids =
                    LongStream.of(encoding.getIds()).skip(from).limit(i - from).mapToInt(Math::toIntExact);
            words.add(tokenizer.decode(ids.toArray()));
            from = i;
        }
        return words;
    }
}
