package ingot.data;

import ai.djl.huggingface.tokenizers.Encoding;
import ai.djl.huggingface.tokenizers.HuggingFaceTokenizer;
import ingot.ir.IngotException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// Any `tokenizer.json`: texts as a model was trained to read them, with the special tokens the file puts around them.
///
/// [Tokenizer] is the one to train a language model with: byte-level, and without loss for any text. This one is for
/// models that come with a file of their own. May be used by several threads at once.
public final class TextTokenizer implements AutoCloseable {
    private static final int LARGEST = 1 << 24;
    private static final List<String> PADDING = List.of("[PAD]", "<pad>", "<|endoftext|>", "</s>");

    private final HuggingFaceTokenizer library;
    private final int size;
    private final int padding;

    /// The ids of a text, which of two texts each belongs to and, of a text that is given in words, to which word: −1
    /// for special tokens.
    public record Encoded(int[] ids, int[] types, int[] words) {}

    /// Texts side by side, [rows, length] row-major; the shorter ones end in padding, where `mask` is false.
    public record Batch(int rows, int length, int[] ids, int[] types, boolean[] mask) {}

    private TextTokenizer(HuggingFaceTokenizer library, int size, int padding) {
        this.library = library;
        this.size = size;
        this.padding = padding;
    }

    /// Reads a `tokenizer.json`, or the one in a folder; texts are never cut.
    public static TextTokenizer open(Path path) {
        return open(path, 0);
    }

    /// The same with texts cut so that they have at most `most` tokens, the special ones included, or fewer if the file
    /// says so.
    public static TextTokenizer open(Path path, int most) {
        return open(path, most, true);
    }

    /// The same with texts cut so that they have at most `most` tokens, whatever the file says.
    public static TextTokenizer cutting(Path path, int most) {
        return open(path, most, false);
    }

    private static TextTokenizer open(Path path, int most, boolean fewer) {
        Path file = Files.isDirectory(path) ? path.resolve("tokenizer.json") : path;
        try {
            byte[] content = Files.readAllBytes(file);
            return of(file.toString(), content, JsonMapper.shared().readTree(content), most, fewer);
        } catch (IOException e) {
            throw new IngotException(file + ": the tokenizer cannot be read (" + SourceReader.reason(e) + ")", e);
        } catch (JacksonException e) {
            throw new IngotException(file + ": not valid JSON: " + e.getOriginalMessage(), e);
        }
    }

    private static TextTokenizer of(String where, byte[] content, JsonNode root, int most, boolean fewer) {
        int size = size(where, root);
        int said = root.path("truncation").path("max_length").asInt(0);
        int length = fewer && said > 0 && most > 0 ? Math.min(said, most) : most;
        Map<String, String> options = length == 0
                ? Map.of("truncation", "do_not_truncate", "padding", "false")
                : Map.of(
                        "truncation",
                        "longest_first",
                        "padding",
                        "false",
                        "maxLength",
                        Integer.toString(length),
                        "modelMaxLength",
                        Integer.toString(length));
        return new TextTokenizer(Tokenizer.library(where, content, options), size, padding(root));
    }

    /// One more than the greatest id.
    private static int size(String where, JsonNode root) {
        JsonNode vocab = root.path("model").path("vocab");
        int size = vocab.isArray() ? vocab.size() : 0;
        List<JsonNode> ids = new ArrayList<>();
        vocab.properties().forEach(entry -> ids.add(entry.getValue()));
        root.path("added_tokens").forEach(token -> ids.add(token.path("id")));
        for (JsonNode id : ids) {
            if (!id.isInt() || id.asInt() < 0 || id.asInt() >= LARGEST) {
                throw new IngotException(where + ": a token has the id " + id + "; expected 0 to " + (LARGEST - 1));
            }
            size = Math.max(size, id.asInt() + 1);
        }
        if (size == 0) {
            throw new IngotException(where + ": this JSON is no Hugging Face tokenizer.json (it has no model.vocab)");
        }
        return size;
    }

    private static int padding(JsonNode root) {
        if (root.path("padding").path("pad_id").isInt()) {
            return root.path("padding").path("pad_id").asInt();
        }
        for (String name : PADDING) {
            for (JsonNode token : root.path("added_tokens")) {
                if (token.path("content").asString("").equals(name)) {
                    return token.path("id").asInt();
                }
            }
        }
        return 0;
    }

    /// One more than the greatest id.
    public int vocabularySize() {
        return size;
    }

    /// The id that fills up short texts.
    public int padding() {
        return padding;
    }

    /// The ids of a text between the special tokens that the file asks for.
    public Encoded encode(String text) {
        return encoded(() -> library.encode(Utf8.wellFormed(text), true, false));
    }

    /// The ids of a pair of texts.
    public Encoded encode(String first, String second) {
        return encoded(() -> library.encode(Utf8.wellFormed(first), Utf8.wellFormed(second), true, false));
    }

    /// The ids of a text without special tokens; never cut by more than `most` of the tokenizer.
    public int[] plain(String text) {
        return ints(library.encode(Utf8.wellFormed(text), false, false).getIds());
    }

    /// The special tokens that the file puts before and after a text.
    public Around around() {
        int[] plain = plain("a");
        int[] whole = encode("a").ids();
        for (int at = 0; at + plain.length <= whole.length; at++) {
            if (Arrays.equals(whole, at, at + plain.length, plain, 0, plain.length)) {
                return new Around(Arrays.copyOf(whole, at), Arrays.copyOfRange(whole, at + plain.length, whole.length));
            }
        }
        return new Around(new int[0], new int[0]);
    }

    /// Special tokens around a text.
    public record Around(int[] before, int[] after) {}

    /// The ids of words, of which each token knows its own, between the special tokens; `most` tokens in all.
    public Encoded encodeWords(List<String> words, int most) {
        Around around = around();
        int room = Math.max(0, most - around.before().length - around.after().length);
        int[] ids = Arrays.copyOf(around.before(), around.before().length + room + around.after().length);
        int[] owners = new int[ids.length];
        Arrays.fill(owners, -1);
        int count = around.before().length;
        int end = count + room;
        for (int word = 0; word < words.size() && count < end; word++) {
            int[] pieces = plain((word == 0 ? "" : " ") + words.get(word));
            for (int i = 0; i < pieces.length && count < end; i++) {
                owners[count] = word;
                ids[count++] = pieces[i];
            }
        }
        System.arraycopy(around.after(), 0, ids, count, around.after().length);
        count += around.after().length;
        return new Encoded(Arrays.copyOf(ids, count), new int[count], Arrays.copyOf(owners, count));
    }

    /// Texts side by side, as long as the longest.
    public Batch batch(List<String> texts) {
        List<Encoded> all = texts.stream().map(this::encode).toList();
        return batch(all, all.stream().mapToInt(text -> text.ids().length).max().orElse(0));
    }

    /// Encoded texts side by side, each `length` long; longer ones are cut at the end.
    public Batch batch(List<Encoded> texts, int length) {
        int[] ids = new int[texts.size() * length];
        int[] types = new int[ids.length];
        boolean[] mask = new boolean[ids.length];
        Arrays.fill(ids, padding);
        for (int row = 0; row < texts.size(); row++) {
            Encoded text = texts.get(row);
            int count = Math.min(length, text.ids().length);
            System.arraycopy(text.ids(), 0, ids, row * length, count);
            System.arraycopy(text.types(), 0, types, row * length, count);
            Arrays.fill(mask, row * length, row * length + count, true);
        }
        return new Batch(texts.size(), length, ids, types, mask);
    }

    /// The text of the ids without special tokens.
    public String decode(int... ids) {
        return library.decode(Arrays.stream(ids).asLongStream().toArray(), true);
    }

    /// Decodes ids one at a time.
    public Pieces pieces() {
        return new Pieces(this);
    }

    /// A text that comes token by token; a character that spans tokens appears when it is complete.
    ///
    /// A token's text may depend on the one before it (a space, a byte of the same character), so each is decoded with
    /// those since the last complete piece.
    public static final class Pieces {
        private final TextTokenizer tokenizer;
        private int[] ids = new int[64];
        private int count;
        private int complete; // ids before this have been given out
        private int before; // where the piece before begins

        private Pieces(TextTokenizer tokenizer) {
            this.tokenizer = tokenizer;
        }

        /// The text that `id` completes; may be empty.
        public String next(int id) {
            if (count == ids.length) {
                ids = Arrays.copyOf(ids, 2 * count);
            }
            ids[count++] = id;
            String all = text(count);
            return all.endsWith("\uFFFD") ? "" : rest(all);
        }

        /// What is left at the end; U+FFFD for a character that was never finished.
        public String end() {
            return rest(text(count));
        }

        private String rest(String all) {
            String known = text(complete);
            before = complete;
            complete = count;
            return all.length() > known.length() ? all.substring(known.length()) : "";
        }

        private String text(int to) {
            return to == before ? "" : tokenizer.decode(Arrays.copyOfRange(ids, before, to));
        }
    }

    /// Some mistakes of a file show only when a text is read: an unknown token that its vocabulary lacks.
    private static Encoded encoded(Supplier<Encoding> library) {
        try {
            return encoded(library.get());
        } catch (RuntimeException e) {
            throw new IngotException(
                    "tokenizer: a text cannot be read: " + e.getMessage() + "; the tokenizer.json is not complete", e);
        }
    }

    private static Encoded encoded(Encoding encoding) {
        return new Encoded(ints(encoding.getIds()), ints(encoding.getTypeIds()), new int[0]);
    }

    private static int[] ints(long @Nullable [] values) {
        return values == null
                ? new int[0]
                : Arrays.stream(values).mapToInt(Math::toIntExact).toArray();
    }

    @Override
    public void close() {
        library.close();
    }
}
