package ingot.data;

import ai.djl.huggingface.tokenizers.HuggingFaceTokenizer;
import ingot.ir.IngotException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Map;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// A byte-level `tokenizer.json`: text to ids and back, without loss for any text.
///
/// Encoding is done by Hugging Face tokenizers through DJL, so ids are those every other user of the file gets.
/// Decoding concatenates the bytes of the tokens. May be used by several threads at once.
public final class Tokenizer implements AutoCloseable {
    /// Nothing is added, cut or filled up.
    private static final Map<String, String> WHOLE =
            Map.of("addSpecialTokens", "false", "truncation", "do_not_truncate", "padding", "false");

    private final Encoder encoder;
    private final Vocabulary vocabulary;
    private final String fingerprint;

    private Tokenizer(Encoder encoder, Vocabulary vocabulary, String fingerprint) {
        this.encoder = encoder;
        this.vocabulary = vocabulary;
        this.fingerprint = fingerprint;
    }

    /// Reads a `tokenizer.json`, or the one in a folder.
    public static Tokenizer open(Path path) {
        var file = Files.isDirectory(path) ? path.resolve("tokenizer.json") : path;
        byte[] content;
        try {
            content = Files.readAllBytes(file);
        } catch (IOException e) {
            throw new IngotException(file + ": the tokenizer cannot be read (" + SourceReader.reason(e) + ")", e);
        }
        return of(file.toString(), content);
    }

    private static Tokenizer of(String where, byte[] content) {
        JsonNode root;
        try {
            root = JsonMapper.shared().readTree(content);
        } catch (JacksonException e) {
            var at =
                    e.getLocation() == null ? "" : " at line " + e.getLocation().getLineNr();
            throw new IngotException(where + ": not valid JSON" + at + ": " + e.getOriginalMessage(), e);
        }
        var vocabulary = Vocabulary.of(where, root);
        return new Tokenizer(new Encoder(library(where, content, WHOLE), vocabulary), vocabulary, sha256(content));
    }

    /// The library's own object for a tokenizer.json, with its options.
    static HuggingFaceTokenizer library(String where, byte[] content, Map<String, String> options) {
        // The library reports its use to its makers and fetches GPU variants unless told to stay offline.
        if (System.getProperty("ai.djl.offline") == null) System.setProperty("ai.djl.offline", "true");
        if (System.getProperty("OPT_OUT_TRACKING") == null) System.setProperty("OPT_OUT_TRACKING", "true");
        try {
            return HuggingFaceTokenizer.newInstance(new ByteArrayInputStream(content), options);
        } catch (RuntimeException | IOException e) {
            throw new IngotException(where + ": Hugging Face tokenizers refuse it: " + e.getMessage(), e);
        } catch (LinkageError e) {
            throw new IngotException(
                    where + ": the native library of ai.djl.huggingface:tokenizers does not load here ("
                            + e.getMessage() + "); Linux x86_64/aarch64, macOS aarch64 and Windows x86_64 have one",
                    e);
        }
    }

    private static String sha256(byte[] content) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(content));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }

    /// One more than the greatest id.
    public int vocabularySize() {
        return vocabulary.size();
    }

    /// The id of `<|endoftext|>`.
    public int endOfText() {
        return vocabulary.endOfText();
    }

    /// SHA-256 of the file.
    public String fingerprint() {
        return fingerprint;
    }

    /// The ids of a text. A special token written out in it becomes that token; an unpaired surrogate becomes U+FFFD.
    public int[] encode(String text) {
        return encoder.encode(Utf8.wellFormed(text));
    }

    /// The text of the ids; bytes that are not UTF-8 become U+FFFD.
    public String decode(int... ids) {
        var out = new ByteArrayOutputStream();
        for (int id : ids) out.writeBytes(bytes(id));
        return out.toString(StandardCharsets.UTF_8);
    }

    /// Decodes ids one at a time and never shows half a character.
    public TextStream stream() {
        return new TextStream(this);
    }

    /// How many bytes of text the token stands for; special tokens stand for none.
    public int byteLength(int id) {
        return vocabulary.isSpecial(id) ? 0 : bytes(id).length;
    }

    byte[] bytes(int id) {
        var bytes = vocabulary.bytes(id);
        if (bytes == null) {
            throw new IngotException("token id " + id + " is not in the vocabulary of " + vocabularySize()
                    + "; the model and this tokenizer.json do not belong together");
        }
        return bytes;
    }

    @Override
    public void close() {
        encoder.close();
    }
}
