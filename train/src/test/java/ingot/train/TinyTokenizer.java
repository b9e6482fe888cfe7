package ingot.train;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/// A tokenizer.json of whole words, in the manner of BERT.
final class TinyTokenizer {
    private static final List<String> SPECIAL = List.of("[PAD]", "[UNK]", "[CLS]", "[SEP]");

    private TinyTokenizer() {}

    static void write(Path file, List<String> words) {
        ObjectNode root = JsonMapper.shared().createObjectNode();
        root.put("version", "1.0");
        var added = root.putArray("added_tokens");
        ObjectNode vocabulary = JsonMapper.shared().createObjectNode();
        for (String token : SPECIAL) {
            int id = vocabulary.size();
            vocabulary.put(token, id);
            added.addObject()
                    .put("id", id)
                    .put("content", token)
                    .put("single_word", false)
                    .put("lstrip", false)
                    .put("rstrip", false)
                    .put("normalized", false)
                    .put("special", true);
        }
        words.forEach(word -> vocabulary.put(word, vocabulary.size()));
        root.putObject("normalizer").put("type", "Lowercase");
        root.putObject("pre_tokenizer").put("type", "Whitespace");
        ObjectNode after = root.putObject("post_processor");
        after.put("type", "BertProcessing");
        after.putArray("sep").add("[SEP]").add(3);
        after.putArray("cls").add("[CLS]").add(2);
        ObjectNode model = root.putObject("model");
        model.put("type", "WordLevel");
        model.set("vocab", vocabulary);
        model.put("unk_token", "[UNK]");
        try {
            Files.createDirectories(file.getParent());
            Files.writeString(file, JsonMapper.shared().writeValueAsString(root));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
