package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.formats.HuggingFace;
import ingot.ir.IngotException;
import ingot.testkit.Reference;
import ingot.train.SmallRun.Watcher;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// A tiny encoder learns from a table which of two kinds a sentence is.
class TextClassificationTest {
    private static final List<String> GOOD = List.of("sun", "warm", "friend", "garden", "song", "bread");
    private static final List<String> BAD = List.of("rain", "cold", "enemy", "swamp", "noise", "stone");
    private static final List<String> NEITHER = List.of("the", "a", "in", "of", "and", "walks", "sees", "has");

    @TempDir
    Path folder;

    private Path model;

    @BeforeEach
    void model() throws IOException {
        model = copy("bert");
        Files.writeString(folder.resolve("mood.csv"), csv());
    }

    private Path copy(String name) throws IOException {
        Path to = folder.resolve(name);
        Files.createDirectories(to);
        for (String file : List.of("config.json", "model.safetensors")) {
            Files.copy(Reference.orSkip(name).resolve(file), to.resolve(file), StandardCopyOption.REPLACE_EXISTING);
        }
        TinyTokenizer.write(
                to.resolve("tokenizer.json"),
                Stream.of(GOOD, BAD, NEITHER).flatMap(List::stream).toList());
        return to;
    }

    /// Sixty sentences with one telling word each.
    private static String csv() {
        StringBuilder text = new StringBuilder("id,text,label\n");
        for (int i = 0; i < 60; i++) {
            List<String> kind = i % 3 == 0 ? BAD : GOOD;
            text.append(i).append(",\"");
            for (int word = 0; word < 4 + i % 3; word++) {
                String next = word == i % 4 ? kind.get(i % 6) : NEITHER.get((i * 5 + word * 3) % 8);
                text.append(word == 0 ? "" : " ").append(next);
            }
            text.append("\",").append(i % 3 == 0 ? "bad" : "good").append('\n');
        }
        return text.toString();
    }

    private FineTuneConfig config(String run, String... overrides) {
        return FineTuneConfig.parse(
                """
                task: text-classification
                run: %s
                model: {from: %s}
                data: {source: %s, held-out: 0.2}
                train: {steps: 12, batch: 8, learning-rate: 0.01, evaluate-every: 6, checkpoint-every: 4}
                """.formatted(folder.resolve(run), model, folder.resolve("mood.csv")), List.of(overrides));
    }

    private static TrainingRun.Outcome train(FineTuneConfig config, Callback callback) {
        return new TrainingRun(config, Backends.tested(), callback).train();
    }

    @Test
    void learnsAndWritesAFolderThatOpens() {
        Watcher watcher = new Watcher();
        TrainingRun.Outcome outcome = train(config("run", "train.steps=40"), watcher);
        assertThat(outcome.finished()).isTrue();
        DataSummary.Examples data = (DataSummary.Examples) watcher.summary.data();
        assertThat(data.groups()).extracting(DataSummary.Group::label).containsExactly("bad", "good");
        assertThat(data.groups())
                .extracting(group -> group.training() + group.heldOut())
                .containsExactly(20, 40);
        assertThat(data.heldOut()).isBetween(12, 16); // equal sentences stay together
        assertThat(((Evaluation.Classes) outcome.evaluation()).confusion().accuracy())
                .isGreaterThan(0.9);
        try (HuggingFace opened = HuggingFace.open(folder.resolve("run"))) {
            assertThat(opened.labels()).containsExactly("bad", "good");
            assertThat(opened.encoder().head().labels()).isEqualTo(2);
        }
        assertThat(folder.resolve("run/tokenizer.json")).exists();
        assertThat(TunedFile.read(folder.resolve("run"))).isEqualTo(new TunedFile(List.of("bad", "good"), 16));
    }

    @Test
    void theSameBitsHoweverItIsDividedStoppedOrStreamed() {
        String expected = train(config("whole"), new Watcher()).digest();
        assertThat(train(config("micro", "train.micro-batch=2"), new Watcher()).digest())
                .isEqualTo(expected);
        assertThatThrownBy(() -> train(config("killed"), Watcher.killAfter(6))).hasMessage("killed");
        assertThat(train(config("killed"), new Watcher()).digest()).isEqualTo(expected);
        assertThat(train(config("stopped", "memory=8GiB"), Watcher.stopAfter(5)).finished())
                .isFalse();
        assertThat(train(config("stopped", "memory=8GiB"), new Watcher()).digest())
                .isEqualTo(expected);
    }

    @Test
    void badInputIsNamed() throws IOException {
        assertThatThrownBy(() -> train(config("run", "data.label=lable"), new Watcher()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("mood.csv line 2")
                .hasMessageContaining("did you mean label?");
        assertThatThrownBy(() -> train(config("run", "data.labels=[good, worse]"), new Watcher()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("the label 'bad' is none of good, worse");
        assertThatThrownBy(() -> train(config("run", "data.labels=[good, bad, ugly]"), new Watcher()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("no example of the label 'ugly'");
        Files.writeString(folder.resolve("mood.csv"), csv().replace(",bad", ",good"));
        assertThatThrownBy(() -> train(config("run"), new Watcher()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("the same label, 'good'");
    }
}
