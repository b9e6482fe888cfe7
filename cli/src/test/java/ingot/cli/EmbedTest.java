package ingot.cli;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.testkit.Reference;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// `ingot embed` with a folder, and with the same model as ONNX: the same vectors.
class EmbedTest {
    @TempDir
    Path folder;

    @Test
    void aFolderAndItsExport() throws IOException {
        Path model = Files.createDirectories(folder.resolve("bert"));
        for (String name : new String[] {"config.json", "model.safetensors"}) {
            Files.copy(Reference.orSkip("bert").resolve(name), model.resolve(name));
        }
        Files.writeString(model.resolve("tokenizer.json"), """
            {"version": "1.0", "truncation": null, "padding": null,
             "added_tokens": [{"id": 0, "content": "[UNK]", "single_word": false, "lstrip": false,
               "rstrip": false, "normalized": false, "special": true}],
             "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"},
             "post_processor": null, "decoder": null,
             "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "sun": 1, "rain": 2}, "unk_token": "[UNK]"}}
            """);
        Path onnx = folder.resolve("onnx/model.onnx");
        assertThat(Invocation.of("export", model.toString(), "--to", onnx.toString())
                        .status())
                .isZero();
        assertThat(onnx.resolveSibling("tokenizer.json")).exists();
        String[] texts = {"--text", "sun rain sun", "--text", "rain rain", "--text", "snow"};
        var expected = Invocation.of(with("embed", model.toString(), texts));
        assertThat(expected.err()).isEmpty();
        assertThat(expected.out().lines()).hasSize(3);
        assertThat(Invocation.of(with("embed", onnx.toString(), texts)).out()).isEqualTo(expected.out());
        // by the name of the model, and from wherever it lies
        Files.move(onnx.resolveSibling("tokenizer.json"), onnx.resolveSibling("model-tokenizer.json"));
        assertThat(Invocation.of(with("embed", onnx.toString(), texts)).out()).isEqualTo(expected.out());
        Path elsewhere = Files.move(onnx.resolveSibling("model-tokenizer.json"), folder.resolve("words.json"));
        String[] named = Stream.concat(Stream.of("--tokenizer", elsewhere.toString()), Stream.of(texts))
                .toArray(String[]::new);
        assertThat(Invocation.of(with("embed", onnx.toString(), named)).out()).isEqualTo(expected.out());
        assertThat(Invocation.of(with("embed", model.toString(), named)).err())
                .contains("--tokenizer belongs to an ONNX file");

        Files.writeString(
                onnx.resolveSibling("tokenizer.json"),
                Files.readString(model.resolve("tokenizer.json"))
                        .replace("\"rain\": 2", "\"rain\": 2, \"snow\": 9000"));
        assertThat(Invocation.of("embed", onnx.toString(), "--text", "snow").err())
                .contains("has 9001 tokens, but the model knows 150; they do not belong together");
    }

    private static String[] with(String command, String model, String[] texts) {
        String[] all = new String[texts.length + 2];
        all[0] = command;
        all[1] = model;
        System.arraycopy(texts, 0, all, 2, texts.length);
        return all;
    }
}
