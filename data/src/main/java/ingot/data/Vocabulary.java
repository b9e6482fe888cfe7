package ingot.data;

import ingot.ir.IngotException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/// What a `tokenizer.json` says about its tokens.
final class Vocabulary {
    private static final int LARGEST = 1 << 24;

    private final byte[][] bytes; // by id; empty: no such token
    private final boolean[] special;
    private final int endOfText;
    private final List<String> added;
    private final boolean splitsAsGpt2;

    private Vocabulary(byte[][] bytes, boolean[] special, int endOfText, List<String> added, boolean splitsAsGpt2) {
        this.bytes = bytes;
        this.special = special;
        this.endOfText = endOfText;
        this.added = List.copyOf(added);
        this.splitsAsGpt2 = splitsAsGpt2;
    }

    /// One more than the greatest id.
    int size() {
        return bytes.length;
    }

    int endOfText() {
        return endOfText;
    }

    /// Whether the words of a text are those of [Words].
    boolean splitsAsGpt2() {
        return splitsAsGpt2;
    }

    boolean isSpecial(int id) {
        return id >= 0 && id < special.length && special[id];
    }

    byte @Nullable [] bytes(int id) {
        return id < 0 || id >= bytes.length || bytes[id].length == 0 ? null : bytes[id];
    }

    boolean mentionsAdded(String text) {
        return added.stream().anyMatch(text::contains);
    }

    static Vocabulary of(String where, JsonNode root) {
        var model = root.path("model");
        if (!model.path("vocab").isObject() && !model.path("vocab").isArray()) {
            throw new IngotException(where + ": this JSON is no Hugging Face tokenizer.json (it has no model.vocab)");
        }
        var type = model.path("type").asString(model.has("merges") ? "BPE" : "unknown");
        if (!type.equals("BPE")) {
            throw new IngotException(where + ": a " + type + " tokenizer; a language model needs byte-level BPE");
        }
        if (!names(root.path("decoder"), "ByteLevel")) {
            throw new IngotException(where + ": a BPE tokenizer that is not byte-level (its decoder is "
                    + root.path("decoder").path("type").asString("absent") + "); expected a ByteLevel decoder");
        }
        return read(where, root, model.path("vocab"));
    }

    private static Vocabulary read(String where, JsonNode root, JsonNode vocab) {
        int size = 0;
        for (var entry : vocab.properties()) size = Math.max(size, id(where, entry.getKey(), entry.getValue()) + 1);
        for (var token : root.path("added_tokens")) {
            size = Math.max(size, id(where, token.path("content").asString(""), token.path("id")) + 1);
        }
        var bytes = new byte[size][0];
        var special = new boolean[size];
        var added = new ArrayList<String>();
        int endOfText = -1;
        for (var token : root.path("added_tokens")) {
            int id = token.path("id").intValue();
            var content = token.path("content").asString("");
            bytes[id] = content.getBytes(StandardCharsets.UTF_8);
            added.add(content);
            special[id] = token.path("special").asBoolean(false);
            if (content.equals(BytePairs.END_OF_TEXT)) endOfText = id;
        }
        for (var entry : vocab.properties()) {
            int id = entry.getValue().intValue();
            if (bytes[id].length > 0) continue; // an added token
            var spelled = ByteAlphabet.bytes(entry.getKey());
            if (spelled == null) {
                throw new IngotException(where + ": token '" + entry.getKey() + "' (id " + id
                        + ") has characters outside the byte-level alphabet");
            }
            bytes[id] = spelled;
        }
        if (endOfText < 0) {
            throw new IngotException(where + ": no added token " + BytePairs.END_OF_TEXT
                    + ", which separates documents and ends generation");
        }
        return new Vocabulary(bytes, special, endOfText, added, splitsAsGpt2(root));
    }

    private static int id(String where, String token, JsonNode id) {
        if (!id.isInt() || id.intValue() < 0 || id.intValue() >= LARGEST) {
            throw new IngotException(
                    where + ": token '" + token + "' has id " + id + "; expected 0 to " + (LARGEST - 1));
        }
        return id.intValue();
    }

    private static boolean splitsAsGpt2(JsonNode root) {
        var split = root.path("pre_tokenizer");
        return split.path("type").asString("").equals("ByteLevel")
                && split.path("use_regex").asBoolean(true)
                && !split.path("add_prefix_space").asBoolean(true)
                && root.path("normalizer").isNull();
    }

    /// Whether a decoder is of a type, or a sequence with one.
    private static boolean names(JsonNode decoder, String type) {
        if (decoder.path("type").asString("").equals(type)) return true;
        for (var part : decoder.path("decoders")) {
            if (names(part, type)) return true;
        }
        return false;
    }
}
