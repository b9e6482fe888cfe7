package ingot.cli;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.train.Callback;
import ingot.train.DataSummary;
import ingot.train.Evaluation;
import ingot.train.RunConfig;
import ingot.train.TrainingRun;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

class TrainingScreenTest {
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private final RunConfig config = RunConfig.parse("data: {corpus: texts}", List.of());
    private long now;

    private TrainingScreen screen(boolean terminal) {
        var screen = new Screen(Invocation.stream(bytes), Invocation.stream(bytes), terminal, false, () -> now);
        return new TrainingScreen(screen, config, () -> now);
    }

    private String printed() {
        return bytes.toString(StandardCharsets.UTF_8);
    }

    private static TrainingRun.Summary summary(long firstStep) {
        return new TrainingRun.Summary(
                Path.of("runs/a"),
                1_234_567,
                1_234_567,
                firstStep,
                40,
                new DataSummary.Text(12, 1, 98_765, 3.456, 4096),
                "cpu, 2 threads",
                null);
    }

    private static Callback.StepReport report(long step) {
        return new Callback.StepReport(
                step, 40, 5.4321, 0.9, 1e-3, 12_345.6, 98.76, 300L << 20, null, 5, 200 - 5 * step);
    }

    @Test
    void aRunWithoutATerminalIsReadableAsALog() {
        var screen = screen(false);
        screen.onPhase("reading texts", 0, 0);
        screen.onPhase("encoding", 0, 100);
        screen.onPhase("encoding", 50, 100);
        screen.onPhase("compiling", 0, 0);
        screen.onStart(summary(0));
        for (int step = 1; step <= 40; step++) {
            screen.onStep(report(step));
            now += 1_000_000_000L;
            if (step == 20) {
                screen.onEvaluate(step, new Evaluation.Text(3.5, 2.25, 33.1, 1000));
                screen.onCheckpoint(step);
            }
        }
        assertThat(printed())
                .startsWith("reading texts ...\nencoding ...\ncompiling ...\n")
                .contains("data      12 files, 98,765 tokens of 3.46 bytes; held out: 1 file, 4.00 KiB\n")
                .contains("model     1,234,567 parameters")
                .contains("step  1/40  loss  5.432   12,346 tokens/s   98.8 GFLOP/s  300 MiB  3 min 15 s left\n")
                .contains("step 20 held out: 2.250 bits per byte (loss 3.500, perplexity 33.1 per token)\n")
                .contains("step 20 checkpoint written\n")
                .endsWith("step 40/40  loss  5.432   12,346 tokens/s   98.8 GFLOP/s  300 MiB  done\n")
                .doesNotContain("\033", "\r");
        assertThat(printed().lines().filter(line -> line.contains("tokens/s"))).hasSize(9);
    }

    @Test
    void aTerminalShowsHowLongAPhaseTook() {
        var screen = screen(true);
        screen.onPhase("encoding", 0, 100);
        screen.onPhase("encoding", 50, 100);
        now += 3_000_000_000L;
        screen.onPhase("compiling", 0, 0);
        assertThat(printed()).contains("━━━━━━━━━━──────────  50 %").containsPattern("encoding +3\\.0 s\n");
    }

    @Test
    void theLineFitsAnEightyColumnTerminalOrIsCutByIt() {
        assertThat(TrainingScreen.step(report(7), true, "tokens")).startsWith("step  7/40 ━━━───");
    }

    @Test
    void anInterruptBeforeTheFirstStepEndsAtOnce() {
        var screen = screen(false);
        screen.onPhase("encoding", 1, 2);
        assertThat(screen.interrupt()).isFalse();
        assertThat(screen.stop()).isFalse();
    }

    @Test
    void anInterruptDuringAStepStopsAfterIt() {
        var screen = screen(false);
        screen.onStart(summary(3));
        screen.onStep(report(4));
        assertThat(screen.stop()).isFalse();
        assertThat(screen.interrupt()).isTrue();
        assertThat(screen.stop()).isTrue();
        assertThat(printed()).contains("continued after step 3", "stopping after the step in flight");
        assertThat(screen.interrupt()).isFalse();
    }

    @Test
    void anInterruptAfterTheLastStepEndsAtOnce() {
        var screen = screen(false);
        screen.onStart(summary(39));
        screen.onStep(report(40));
        assertThat(screen.interrupt()).isFalse();
    }
}
