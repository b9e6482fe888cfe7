package ingot.data;

import ingot.ir.IngotException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;

/// A vocabulary of byte pairs: `<|endoftext|>`, the 256 bytes, and one token for each merge, in the order learned.
///
/// Sennrich, Haddow, Birch: Neural Machine Translation of Rare Words with Subword Units, ACL 2016; on bytes: GPT-2.
public record BytePairs(List<String> vocabulary, List<Merge> merges) {
    /// The token that ends every document; its id in a new vocabulary is 0.
    public static final String END_OF_TEXT = "<|endoftext|>";

    static final int BASE = 1 + 256;

    /// Two neighbouring tokens that become one.
    public record Merge(String left, String right) {}

    public BytePairs {
        vocabulary = List.copyOf(vocabulary);
        merges = List.copyOf(merges);
        if (vocabulary.size() != BASE + merges.size()) {
            throw new IllegalArgumentException(vocabulary.size() + " tokens do not fit " + merges.size() + " merges");
        }
    }

    /// Learns a vocabulary of `size` tokens. It stays smaller when no pair occurs twice any more; ask
    /// `vocabulary().size()`. The same corpus and size give the same vocabulary on any machine.
    public static BytePairs train(Corpus corpus, int size, Progress progress) {
        if (size < BASE) {
            throw new IngotException("vocabulary size " + size + ": expected at least " + BASE + " (256 bytes and "
                    + END_OF_TEXT + "), for example 2048");
        }
        return new PairTraining(corpus, progress).train(size);
    }

    /// Writes a Hugging Face `tokenizer.json`; the file is whole or absent.
    public void write(Path file) {
        try {
            if (file.toAbsolutePath().getParent() instanceof Path parent) Files.createDirectories(parent);
            var partial = file.resolveSibling(file.getFileName() + ".partial");
            Files.writeString(partial, json());
            Files.move(partial, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        } catch (IOException e) {
            throw new IngotException(file + ": the tokenizer cannot be written (" + SourceReader.reason(e) + ")", e);
        }
    }

    String json() {
        var nodes = JsonNodeFactory.instance;
        var root = nodes.objectNode();
        root.put("version", "1.0");
        root.putNull("truncation");
        root.putNull("padding");
        root.putArray("added_tokens")
                .addObject()
                .put("id", 0)
                .put("content", END_OF_TEXT)
                .put("single_word", false)
                .put("lstrip", false)
                .put("rstrip", false)
                .put("normalized", false)
                .put("special", true);
        root.putNull("normalizer");
        root.set("pre_tokenizer", byteLevel(nodes, true));
        root.set("post_processor", byteLevel(nodes, false));
        root.set("decoder", byteLevel(nodes, true));
        var model = root.putObject("model");
        model.put("type", "BPE");
        model.putNull("dropout");
        model.putNull("unk_token");
        model.putNull("continuing_subword_prefix");
        model.putNull("end_of_word_suffix");
        model.put("fuse_unk", false);
        model.put("byte_fallback", false);
        var ids = model.putObject("vocab");
        for (int id = 0; id < vocabulary.size(); id++) ids.put(vocabulary.get(id), id);
        var pairs = model.putArray("merges");
        for (var merge : merges) pairs.add(merge.left() + " " + merge.right());
        return JsonMapper.shared().writerWithDefaultPrettyPrinter().writeValueAsString(root) + "\n";
    }

    private static ObjectNode byteLevel(JsonNodeFactory nodes, boolean trimOffsets) {
        return nodes.objectNode()
                .put("type", "ByteLevel")
                .put("add_prefix_space", false)
                .put("trim_offsets", trimOffsets)
                .put("use_regex", true);
    }
}
