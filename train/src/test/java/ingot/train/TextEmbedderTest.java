package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import ingot.formats.HuggingFace;
import ingot.ir.IngotException;
import ingot.ir.Interpreter;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TextEmbedderTest {
    @TempDir
    Path folder;

    private void model(int words) throws IOException {
        ReferenceCase bert = ReferenceCase.orSkip("bert");
        for (String file : new String[] {"config.json", "model.safetensors"}) {
            Files.copy(bert.folder().resolve(file), folder.resolve(file));
        }
        StringBuilder vocabulary = new StringBuilder();
        for (int id = 1; id < words; id++) {
            vocabulary.append(", \"w").append(id).append("\": ").append(id);
        }
        Files.writeString(folder.resolve("tokenizer.json"), """
            {"version": "1.0", "truncation": null, "padding": null, "normalizer": null, "added_tokens": [],
             "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
             "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": {"<unk>": 0%s}}}
            """.formatted(vocabulary));
    }

    /// The mean over the tokens of one pass without any padding.
    @Test
    void theMeanOfTheHiddenStates() throws IOException {
        model(150);
        float[] vector;
        try (TextEmbedder embedder = TextEmbedder.open(folder, Backends.tested())) {
            vector = embedder.embed("w5 w17 w99");
            assertThat(embedder.width()).isEqualTo(32);
            assertThat(embedder.embed("w17 w5 w99")).isNotEqualTo(vector);
            assertThat(embedder.embed("w5 w17 w99")).isEqualTo(vector);
            // more than the model has positions for
            assertThat(embedder.embed("w7 ".repeat(100))).hasSize(32);
        }
        try (HuggingFace files = HuggingFace.open(folder)) {
            Map<String, Tensor> weights = new HashMap<>();
            files.weights().types().forEach((name, type) -> {
                Tensor tensor = Tensor.zeros(type);
                files.weights().read(name, tensor.data());
                weights.put(name, tensor);
            });
            Tensor hidden = Interpreter.run(
                            files.encoder().hiddenGraph(1, 3),
                            Map.of(
                                    "tokens",
                                    Tensor.of(Shape.of(1, 3), 5, 17, 99),
                                    "mask",
                                    Tensor.of(Shape.of(1, 3), true, true, true),
                                    "types",
                                    Tensor.of(Shape.of(1, 3), 0, 0, 0)),
                            weights)
                    .get("hidden");
            double[] mean = new double[32];
            double squares = 0;
            for (int i = 0; i < 32; i++) {
                mean[i] = (hidden.getFloat(i) + hidden.getFloat(32 + i) + hidden.getFloat(64 + i)) / 3.0;
                squares += mean[i] * mean[i];
            }
            for (int i = 0; i < 32; i++) {
                // fp32 round-off of a mean and a division
                assertThat((double) vector[i]).isCloseTo(mean[i] / Math.sqrt(squares), within(1e-6));
            }
        }
    }

    @Test
    void aTokenizerOfAnotherModel() throws IOException {
        model(151);
        assertThatThrownBy(() -> TextEmbedder.open(folder, Backends.tested()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("tokenizer.json of 151 tokens, but its model knows 150");
    }
}
