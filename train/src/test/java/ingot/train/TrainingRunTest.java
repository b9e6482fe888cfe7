package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.IngotException;
import ingot.train.SmallRun.Watcher;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// From text to a run folder, stopped in every way and resumed.
class TrainingRunTest {
    @TempDir
    Path folder;

    private static TrainingRun.Outcome whole;
    private static List<String> wholeSteps;

    /// The run that was never stopped.
    @BeforeAll
    static void whole(@TempDir Path elsewhere) throws IOException {
        SmallRun.corpus(elsewhere);
        whole = SmallRun.train(SmallRun.config(elsewhere, "whole"), new Watcher());
        wholeSteps = steps(elsewhere.resolve("whole"));
    }

    @BeforeEach
    void text() {
        SmallRun.corpus(folder);
    }

    @Test
    void trainsAndWritesTheRunFolder() throws IOException {
        Watcher watcher = new Watcher();
        TrainingRun.Outcome outcome = SmallRun.train(SmallRun.config(folder, "run"), watcher);
        assertThat(outcome.finished()).isTrue();
        assertThat(outcome.step()).isEqualTo(8);
        assertThat(watcher.steps).hasSize(8);
        assertThat(watcher.checkpoints).containsExactly(2L, 4L, 6L, 8L);
        assertThat(watcher.evaluations).hasSize(2);
        assertThat(watcher.steps.getLast().loss())
                .isLessThan(watcher.steps.getFirst().loss() - 0.2);
        assertThat(watcher.summary.firstStep()).isZero();
        DataSummary.Text data = (DataSummary.Text) watcher.summary.data();
        assertThat(data.trainFiles() + data.heldOutFiles()).isEqualTo(12);
        assertThat(watcher.warnings).isEmpty();
        assertThat(outcome.evaluation()).isNotNull();
        assertThat(((Evaluation.Text) outcome.evaluation()).bitsPerByte()).isBetween(0.1, 8.0);

        Path run = folder.resolve("run");
        assertThat(names(run)).contains("config.json", "model.safetensors", "tokenizer.json", "ingot.yaml", "resume");
        assertThat(names(run.resolve("resume"))).containsExactly("step-6", "step-8");
        assertThat(names(run)).anyMatch(name -> name.startsWith("events.out.tfevents."));
        List<String> lines = Files.readAllLines(run.resolve("metrics.jsonl"));
        assertThat(lines).hasSize(8 + 2);
        JsonNode first = JsonMapper.shared().readTree(lines.getFirst());
        assertThat(first.path("step").asLong()).isEqualTo(1);
        assertThat(first.path("loss").asDouble())
                .isEqualTo(watcher.steps.getFirst().loss());
        JsonNode config =
                JsonMapper.shared().readTree(run.resolve("config.json").toFile());
        assertThat(config.path("model_type").asString()).isEqualTo("gpt2");
        assertThat(config.path("n_embd").asInt()).isEqualTo(16);
    }

    @Test
    void theSameCommandAfterTheEndChangesNothing() throws IOException {
        TrainingRun.Outcome first = SmallRun.train(SmallRun.config(folder, "run"), new Watcher());
        List<String> metrics = Files.readAllLines(folder.resolve("run/metrics.jsonl"));
        Watcher again = new Watcher();
        TrainingRun.Outcome second = SmallRun.train(SmallRun.config(folder, "run"), again);
        assertThat(again.steps).isEmpty();
        assertThat(second.digest()).isEqualTo(first.digest());
        assertThat(second.finished()).isTrue();
        assertThat(second.evaluation()).isEqualTo(first.evaluation());
        assertThat(Files.readAllLines(folder.resolve("run/metrics.jsonl"))).isEqualTo(metrics);
    }

    @Test
    void stoppedAndResumedIsNeverStopped() throws IOException {
        TrainingRun.Outcome stopped = SmallRun.train(SmallRun.config(folder, "run"), Watcher.stopAfter(3));
        assertThat(stopped.finished()).isFalse();
        assertThat(stopped.step()).isEqualTo(3);
        Watcher resumed = new Watcher();
        TrainingRun.Outcome end = SmallRun.train(SmallRun.config(folder, "run"), resumed);
        assertThat(resumed.summary.firstStep()).isEqualTo(3);
        assertThat(end.digest()).isEqualTo(whole.digest());
        assertThat(steps(folder.resolve("run"))).isEqualTo(wholeSteps);
    }

    @Test
    void killedAndResumedIsNeverStopped() throws IOException {
        RunConfig config = SmallRun.config(folder, "run");
        assertThatThrownBy(() -> SmallRun.train(config, Watcher.killAfter(5))).hasMessage("killed");
        Files.writeString(
                folder.resolve("run/metrics.jsonl"),
                Files.readString(folder.resolve("run/metrics.jsonl")) + "{\"step\": 5, \"lo");
        Watcher resumed = new Watcher();
        TrainingRun.Outcome end = SmallRun.train(config, resumed);
        assertThat(resumed.summary.firstStep()).isEqualTo(4);
        assertThat(end.digest()).isEqualTo(whole.digest());
        assertThat(steps(folder.resolve("run"))).isEqualTo(wholeSteps);
    }

    @Test
    void microBatchThreadsAndRecomputationMayChangeOnResume() {
        SmallRun.train(SmallRun.config(folder, "run"), Watcher.stopAfter(3));
        TrainingRun.Outcome end = SmallRun.train(
                SmallRun.config(folder, "run", "train.micro-batch=2", "train.recompute=true", "threads=1"),
                new Watcher());
        assertThat(end.digest()).isEqualTo(whole.digest());
    }

    @Test
    void aBrokenNewestCheckpointIsPassedOver() throws IOException {
        SmallRun.train(SmallRun.config(folder, "run"), Watcher.stopAfter(5));
        flipByte(folder.resolve("run/resume/step-5/state.safetensors"));
        Watcher resumed = new Watcher();
        TrainingRun.Outcome end = SmallRun.train(SmallRun.config(folder, "run"), resumed);
        assertThat(resumed.summary.firstStep()).isEqualTo(4);
        assertThat(resumed.warnings).singleElement().asString().contains("step-5", "digest");
        assertThat(end.digest()).isEqualTo(whole.digest());
    }

    @Test
    void aBrokenDescriptionIsPassedOver() throws IOException {
        SmallRun.train(SmallRun.config(folder, "run"), Watcher.stopAfter(5));
        Files.writeString(folder.resolve("run/resume/step-5/state.json"), "{\"step\": 5");
        Watcher resumed = new Watcher();
        TrainingRun.Outcome end = SmallRun.train(SmallRun.config(folder, "run"), resumed);
        assertThat(resumed.warnings).singleElement().asString().contains("state.json");
        assertThat(end.digest()).isEqualTo(whole.digest());
    }

    @Test
    void onlyBrokenCheckpointsAreRefused() throws IOException {
        SmallRun.train(SmallRun.config(folder, "run"), Watcher.stopAfter(5));
        for (String step : List.of("step-4", "step-5")) {
            Path file = folder.resolve("run/resume").resolve(step).resolve("state.safetensors");
            Files.write(file, new byte[] {1, 2, 3});
        }
        assertThatThrownBy(() -> SmallRun.train(SmallRun.config(folder, "run"), new Watcher()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("no usable checkpoint in")
                .hasMessageContaining("step-4")
                .hasMessageContaining("step-5");
    }

    @Test
    void otherSettingsAreRefusedByName() {
        SmallRun.train(SmallRun.config(folder, "run"), Watcher.stopAfter(2));
        assertThatThrownBy(() -> SmallRun.train(
                        SmallRun.config(folder, "run", "train.learning-rate=0.02", "model.width=32"), new Watcher()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("train.learning-rate is 0.02, it was 0.01")
                .hasMessageContaining("model.width is 32, it was 16")
                .hasMessageContaining("choose another folder");
    }

    @Test
    void otherTextIsRefused() throws IOException {
        SmallRun.train(SmallRun.config(folder, "run"), Watcher.stopAfter(2));
        for (int file = 0; file < 12; file++) {
            Path path = folder.resolve("corpus/f" + file + ".txt");
            Files.writeString(path, Files.readString(path) + "one more line\n");
        }
        assertThatThrownBy(() -> SmallRun.train(SmallRun.config(folder, "run"), new Watcher()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("the training text is");
    }

    @Test
    void oneRunPerFolder() {
        RunConfig config = SmallRun.config(folder, "run");
        try (RunLock _ = RunLock.take(folder.resolve("run"))) {
            assertThatThrownBy(() -> SmallRun.train(config, new Watcher()))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining(
                            "is in use by process " + ProcessHandle.current().pid());
        }
        assertThat(SmallRun.train(config, Watcher.stopAfter(1)).step()).isEqualTo(1);
    }

    @Test
    void aCheckpointThatCannotBeWrittenLeavesTheOneBefore() throws IOException {
        Path resume = folder.resolve("run/resume");
        RunConfig config = SmallRun.config(folder, "run");
        SmallRun.train(config, Watcher.stopAfter(2));
        // whatever is written to this place finds no space left
        Files.createSymbolicLink(resume.resolve("partial"), folder.resolve("nowhere"));
        assertThatThrownBy(() -> SmallRun.train(config, new Watcher()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("checkpoint: cannot write step 4")
                .hasMessageContaining("the checkpoint before it, if any, is untouched");
        assertThat(resume.resolve("step-2")).exists();
    }

    @Test
    void aLossThatIsNotFiniteLeavesTheCheckpoint() {
        RunConfig config = SmallRun.config(
                folder, "run", "train.learning-rate=1e30", "train.checkpoint-every=1", "train.optimizer=sgd");
        assertThatThrownBy(() -> SmallRun.train(config, new Watcher()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("step ")
                .hasMessageContaining("first value that is not finite")
                .hasMessageContaining("the last checkpoint stands");
        assertThat(folder.resolve("run/resume/step-1")).isDirectory();
    }

    @Test
    void aRunFolderThatIsAFile() throws IOException {
        Files.writeString(folder.resolve("run"), "not a folder");
        assertThatThrownBy(() -> SmallRun.train(SmallRun.config(folder, "run"), new Watcher()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("cannot write to the folder")
                .hasMessageContaining("run=");
    }

    @Test
    void stopsEarlyWhenNothingImproves() {
        Callback.EarlyStopping early = new Callback.EarlyStopping(1);
        assertThat(early.stop()).isFalse();
        early.onEvaluate(1, new Evaluation.Text(2, 1, 1, 1));
        assertThat(early.stop()).isFalse();
        early.onEvaluate(2, new Evaluation.Text(2.5, 1, 1, 1));
        assertThat(early.stop()).isTrue();
    }

    /// The steps and losses of the metrics file.
    private static List<String> steps(Path run) throws IOException {
        return Files.readAllLines(run.resolve("metrics.jsonl")).stream()
                .map(line -> JsonMapper.shared().readTree(line))
                .map(node -> node.path("step") + " " + node.path("loss") + " " + node.path("held-out-loss"))
                .toList();
    }

    private static void flipByte(Path file) throws IOException {
        byte[] bytes = Files.readAllBytes(file);
        bytes[bytes.length - 5] ^= 0x10;
        Files.write(file, bytes);
    }

    private static List<String> names(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(path -> path.getFileName().toString()).sorted().toList();
        }
    }
}
