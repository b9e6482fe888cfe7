package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.IngotException;
import ingot.ir.Tensor;
import ingot.store.Safetensors;
import ingot.train.SmallRun.Watcher;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Runs that begin with the weights of a model that exists.
class FineTuningTest {
    private static final String LAST = "transformer.wpe.weight";

    @TempDir
    Path folder;

    private Path base;

    @BeforeEach
    void base() {
        SmallRun.corpus(folder);
        RunConfig config = SmallRun.config(folder, "base", "train.steps=2", "train.evaluate-every=0");
        SmallRun.train(config, new Watcher());
        base = folder.resolve("base.safetensors");
        rewrite(folder.resolve("base/model.safetensors"), "", Map.of());
    }

    /// The base with `LAST` as its last tensor.
    private void rewrite(Path from, String prefix, Map<String, String> metadata) {
        SequencedMap<String, Tensor> weights = new LinkedHashMap<>();
        try (Safetensors file = Safetensors.open(from)) {
            file.tensors().keySet().forEach(name -> weights.put(name, file.read(name)));
        }
        weights.putLast(LAST, weights.get(LAST));
        SequencedMap<String, Tensor> named = new LinkedHashMap<>();
        weights.forEach((name, tensor) ->
                named.put(prefix.isEmpty() ? name : name.replace("transformer.", prefix.strip()), tensor));
        Safetensors.write(base, metadata, named);
    }

    private RunConfig config(String run, String... overrides) {
        List<String> all = new ArrayList<>(List.of(
                "model.base=" + base,
                "tokenizer.file=" + folder.resolve("base/tokenizer.json"),
                "train.freeze=[wte.*, wpe.*, h.0.attn.*]",
                "train.evaluate-every=0"));
        all.addAll(List.of(overrides));
        return SmallRun.config(folder, run, all.toArray(String[]::new));
    }

    private static Map<String, Tensor> weights(Path file) {
        Map<String, Tensor> weights = new LinkedHashMap<>();
        try (Safetensors opened = Safetensors.open(file)) {
            opened.tensors().keySet().forEach(name -> weights.put(name, opened.read(name)));
        }
        return weights;
    }

    @Test
    void streamedOrNotStoppedOrNotItIsTheSameRun() {
        TrainingRun.Outcome expected = SmallRun.train(config("memory"), new Watcher());
        assertThat(expected.finished()).isTrue();
        for (String memory : List.of("", "8GiB")) {
            String run = "stopped" + memory;
            Watcher watcher = Watcher.stopAfter(3);
            SmallRun.train(config(run, "memory=" + memory), watcher);
            assertThat(watcher.summary.trainedParameters()).isBetween(1L, watcher.summary.parameters() - 1);
            assertThat(SmallRun.train(config(run, "memory=" + memory), new Watcher())
                            .digest())
                    .isEqualTo(expected.digest());
            Map<String, Tensor> before = weights(base);
            weights(folder.resolve(run).resolve("model.safetensors"))
                    .forEach((name, tensor) -> assertThat(tensor.equals(before.get(name)))
                            .describedAs(name)
                            .isEqualTo(name.contains("wte") || name.contains("wpe") || name.contains("attn")));
        }
    }

    /// As the files of the first GPT-2 have it.
    @Test
    void namesMayLackTheirPrefix() {
        TrainingRun.Outcome expected = SmallRun.train(config("a"), new Watcher());
        rewrite(folder.resolve("base/model.safetensors"), " ", Map.of());
        TrainingRun.Outcome plain = SmallRun.train(config("b"), new Watcher());
        assertThat(plain.loss()).isEqualTo(expected.loss());
        assertThat(weights(folder.resolve("b/model.safetensors"))).containsKey("wte.weight");
    }

    /// The last byte of the base, which only a checksum notices.
    private void flipLastByte() throws IOException {
        byte[] bytes = Files.readAllBytes(base);
        bytes[bytes.length - 1] ^= 1;
        Files.write(base, bytes);
    }

    @Test
    void aBaseThatChangedIsRefused() throws IOException {
        for (String memory : List.of("", "8GiB")) {
            SmallRun.train(config("run" + memory, "memory=" + memory), Watcher.stopAfter(2));
        }
        flipLastByte();
        assertThatThrownBy(() -> SmallRun.train(config("run"), new Watcher()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("the frozen weight " + LAST + " is not what it was");
        assertThatThrownBy(() -> SmallRun.train(config("run8GiB", "memory=8GiB"), new Watcher()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining(LAST + " chunk 0 has changed in " + base);
        rewrite(folder.resolve("base/model.safetensors"), "", Map.of("made", "anew"));
        for (String memory : List.of("", "8GiB")) {
            assertThatThrownBy(() -> SmallRun.train(config("run" + memory, "memory=" + memory), new Watcher()))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("the base model is ")
                    .hasMessageContaining("it was ");
        }
        assertThatThrownBy(() -> SmallRun.train(config("run", "model.base="), new Watcher()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("the base model is nothing, it was ");
        assertThatThrownBy(() -> SmallRun.train(config("run", "train.freeze=[wte.*]"), new Watcher()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("train.freeze is [\"wte.*\"], it was [\"wte.*\",\"wpe.*\",\"h.0.attn.*\"]");
    }

    @Test
    void aRunIsNotItsOwnBase() {
        RunConfig config = config("base", "model.base=" + folder.resolve("base"), "train.freeze=[]");
        assertThatThrownBy(() -> SmallRun.train(config, new Watcher()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("lies in the run folder");
    }
}
