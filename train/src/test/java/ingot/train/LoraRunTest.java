package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.formats.PeftAdapter;
import ingot.ir.IngotException;
import ingot.ir.Tensor;
import ingot.store.Safetensors;
import ingot.testkit.Reference;
import ingot.train.SmallRun.Watcher;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// A tiny encoder learns by low-rank terms; its own weights stay.
class LoraRunTest {
    @TempDir
    Path folder;

    private Path model;

    @BeforeEach
    void model() throws IOException {
        model = folder.resolve("bert");
        Files.createDirectories(model);
        for (String file : List.of("config.json", "model.safetensors")) {
            Files.copy(Reference.orSkip("bert").resolve(file), model.resolve(file));
        }
        TinyTokenizer.write(model.resolve("tokenizer.json"), List.of("sun", "rain", "the", "a", "of"));
        StringBuilder text = new StringBuilder("text,label\n");
        for (int i = 0; i < 40; i++) {
            text.append(i % 4 < 2 ? "the " : "a of ").append(i % 2 == 0 ? "sun" : "rain");
            text.append(" of".repeat(i / 4)).append(i % 2 == 0 ? ",good\n" : ",bad\n");
        }
        Files.writeString(folder.resolve("mood.csv"), text);
    }

    private FineTuneConfig config(String run, String... overrides) {
        return FineTuneConfig.parse(
                """
                task: text-classification
                run: %s
                model: {from: %s}
                data: {source: %s, held-out: 0.2}
                lora: {rank: 2, alpha: 8, dropout: 0.1, targets: [query, '*.output.dense']}
                train: {steps: 12, batch: 8, learning-rate: 0.02, evaluate-every: 6, checkpoint-every: 4}
                """.formatted(folder.resolve(run), model, folder.resolve("mood.csv")), List.of(overrides));
    }

    private static TrainingRun.Outcome train(FineTuneConfig config, Callback callback) {
        return new TrainingRun(config, Backends.tested(), callback).train();
    }

    @Test
    void theModelHasTheTermsInItAndTheAdapterLiesBeside() {
        Watcher watcher = new Watcher();
        assertThat(train(config("run"), watcher).finished()).isTrue();
        assertThat(watcher.summary.trainedParameters()).isLessThan(watcher.summary.parameters() / 5);
        try (Safetensors before = Safetensors.open(model.resolve("model.safetensors"));
                Safetensors after = Safetensors.open(folder.resolve("run/model.safetensors"));
                PeftAdapter adapter = PeftAdapter.open(folder.resolve("run/adapter"))) {
            assertThat(adapter.settings().rank()).isEqualTo(2);
            assertThat(adapter.base()).isEqualTo(model.toString());
            assertThat(adapter.tensors().types().keySet())
                    .contains("base_model.model.bert.encoder.layer.0.attention.self.query.lora_A.weight")
                    .contains("base_model.model.classifier.weight");
            for (String name : before.tensors().keySet()) {
                Tensor old = before.read(name);
                Tensor now = after.read("bert." + name);
                boolean adapted = name.endsWith("query.weight") || name.endsWith("output.dense.weight");
                assertThat(now.sameBits(old)).as(name).isEqualTo(!adapted);
            }
        }
    }

    @Test
    void theSameBitsStoppedOrStreamed() {
        String expected = train(config("whole"), new Watcher()).digest();
        assertThat(train(config("micro", "train.micro-batch=2"), new Watcher()).digest())
                .isEqualTo(expected);
        assertThat(train(config("stopped", "memory=8GiB"), Watcher.stopAfter(5)).finished())
                .isFalse();
        assertThat(train(config("stopped", "memory=8GiB"), new Watcher()).digest())
                .isEqualTo(expected);
        assertThat(folder.resolve("stopped/model.safetensors"))
                .hasSameBinaryContentAs(folder.resolve("whole/model.safetensors"));
    }

    @Test
    void badSettingsAreNamed() {
        assertThatThrownBy(() -> train(config("a", "lora.targets=[q_proj]"), new Watcher()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("lora: the target q_proj names no matrix");
        assertThatThrownBy(() -> train(config("b", "model.weights=random"), new Watcher()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("lora adapts a model that exists");
        assertThatThrownBy(() -> config("c", "lora.rnak=3"))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("rank");
    }
}
