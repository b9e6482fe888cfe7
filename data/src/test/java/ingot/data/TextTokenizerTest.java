package ingot.data;

import static ingot.data.CorpusTest.corpus;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.IngotException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TextTokenizerTest {
    /// BERT's kind: word pieces between [CLS] and [SEP].
    private static final String BERT = """
        {"version": "1.0", "truncation": null, "padding": null,
         "added_tokens": [
           {"id": 0, "content": "[PAD]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
           {"id": 1, "content": "[UNK]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
           {"id": 2, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
           {"id": 3, "content": "[SEP]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
         "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
         "pre_tokenizer": {"type": "BertPreTokenizer"},
         "post_processor": {"type": "TemplateProcessing",
           "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
           "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
           "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}, "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
         "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
         "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
           "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "a": 4, "man": 5, "is": 6, "eat": 7, "##ing": 8, "food": 9, ".": 10}}}
        """;

    @TempDir
    Path folder;

    @BeforeEach
    void write() throws IOException {
        Files.writeString(folder.resolve("tokenizer.json"), BERT);
    }

    @Test
    void specialTokensAsTheFileSays() {
        try (TextTokenizer tokenizer = TextTokenizer.open(folder)) {
            assertThat(tokenizer.vocabularySize()).isEqualTo(11);
            assertThat(tokenizer.padding()).isZero();
            TextTokenizer.Encoded one = tokenizer.encode("A Man is eating food.");
            assertThat(one.ids()).containsExactly(2, 4, 5, 6, 7, 8, 9, 10, 3);
            assertThat(one.types()).containsOnly(0).hasSize(9);
            TextTokenizer.Encoded pair = tokenizer.encode("a man", "is zebra");
            assertThat(pair.ids()).containsExactly(2, 4, 5, 3, 6, 1, 3);
            assertThat(pair.types()).containsExactly(0, 0, 0, 0, 1, 1, 1);
            assertThat(tokenizer.decode(one.ids())).isEqualTo("a man is eating food.");
        }
    }

    @Test
    void textsSideBySideArePadded() {
        try (TextTokenizer tokenizer = TextTokenizer.open(folder.resolve("tokenizer.json"))) {
            TextTokenizer.Batch batch = tokenizer.batch(List.of("man", "a man is"));
            assertThat(batch.rows()).isEqualTo(2);
            assertThat(batch.length()).isEqualTo(5);
            assertThat(batch.ids()).containsExactly(2, 5, 3, 0, 0, 2, 4, 5, 6, 3);
            assertThat(batch.mask()).containsExactly(true, true, true, false, false, true, true, true, true, true);
            assertThat(batch.types()).containsOnly(0);
        }
    }

    @Test
    void longTextsAreCutAndKeepTheirSpecialTokens() throws IOException {
        try (TextTokenizer tokenizer = TextTokenizer.open(folder, 5)) {
            assertThat(tokenizer.encode("a man is eating food").ids()).containsExactly(2, 4, 5, 6, 3);
        }
        Files.writeString(
                folder.resolve("tokenizer.json"),
                BERT.replace(
                        "\"truncation\": null",
                        "\"truncation\": {\"direction\": \"Right\", \"max_length\": 4, \"strategy\": \"LongestFirst\","
                                + " \"stride\": 0}"));
        try (TextTokenizer tokenizer = TextTokenizer.open(folder, 6);
                TextTokenizer whole = TextTokenizer.open(folder)) {
            assertThat(tokenizer.encode("a man is eating food").ids()).containsExactly(2, 4, 5, 3);
            assertThat(whole.encode("a man is eating food").ids()).hasSize(8);
        }
    }

    /// The pieces are those of a byte-level tokenizer's own stream, whatever characters the tokens cut.
    @Test
    void piecesOfAText() {
        BytePairs.train(corpus("a.txt", "naïve café — “quoted” text. ".repeat(20)), 300, Progress.NONE)
                .write(folder.resolve("bytes.json"));
        SplittableRandom random = new SplittableRandom(3);
        try (Tokenizer bytes = Tokenizer.open(folder.resolve("bytes.json"));
                TextTokenizer tokenizer = TextTokenizer.open(folder.resolve("bytes.json"))) {
            assertThat(tokenizer.vocabularySize()).isEqualTo(bytes.vocabularySize());
            for (int round = 0; round < 100; round++) {
                String text = Texts.unicode(random, random.nextInt(40));
                int[] ids = tokenizer.encode(text).ids();
                assertThat(ids).isEqualTo(bytes.encode(text));
                TextTokenizer.Pieces pieces = tokenizer.pieces();
                StringBuilder all = new StringBuilder();
                for (int id : ids) {
                    all.append(pieces.next(id));
                }
                assertThat(all.append(pieces.end()).toString()).isEqualTo(text);
            }
            TextTokenizer.Pieces half = tokenizer.pieces();
            int[] euro = tokenizer.encode("€").ids();
            assertThat(half.next(euro[0])).isEmpty();
            assertThat(half.end()).isEqualTo("\uFFFD");
        }
    }

    @Test
    void filesThatAreNoTokenizer() throws IOException {
        Path file = folder.resolve("tokenizer.json");
        Files.writeString(file, "{}");
        fails("it has no model.vocab");
        Files.writeString(file, "{\"model\": ");
        fails("not valid JSON");
        Files.writeString(file, BERT.replace("\"man\": 5", "\"man\": -5"));
        fails("a token has the id -5; expected 0 to ");
        Files.writeString(file, BERT.replace("\"WordPiece\", \"unk", "\"NoSuchModel\", \"unk"));
        fails("Hugging Face tokenizers refuse it");
        Files.delete(file);
        fails("the tokenizer cannot be read");
    }

    private void fails(String message) {
        assertThatThrownBy(() -> TextTokenizer.open(folder))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("tokenizer.json")
                .hasMessageContaining(message);
    }
}
