package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.IngotException;
import ingot.train.SmallRun.Watcher;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// A run that changes between memory and disk is the run that stayed where it was.
class StateMoveTest {
    private static final String IN_MEMORY = "";
    private static final String ON_DISK = "8GiB";

    private static String expected;

    @TempDir
    Path folder;

    @BeforeAll
    static void whole(@TempDir Path elsewhere) {
        SmallRun.corpus(elsewhere);
        expected = SmallRun.train(SmallRun.config(elsewhere, "whole"), new Watcher())
                .digest();
    }

    @BeforeEach
    void text() {
        SmallRun.corpus(folder);
    }

    private RunConfig config(String memory) {
        return SmallRun.config(folder, "run", "memory=" + memory);
    }

    private Path path(String name) {
        return folder.resolve("run").resolve(name);
    }

    /// Ends the run, as a kill does, at the `at`-th report of a move.
    private static final class Killer implements Callback {
        private final List<String> moves = new ArrayList<>();
        private final int at;

        Killer(int at) {
            this.at = at;
        }

        @Override
        public void onPhase(String phase, long done, long total) {
            if (phase.startsWith("moving")) {
                moves.add(phase + " " + done + "/" + total);
                if (moves.size() == at) {
                    throw new IngotException("killed");
                }
            }
        }
    }

    @Test
    void itGoesThereAndBack() {
        SmallRun.train(config(IN_MEMORY), Watcher.stopAfter(1));
        SmallRun.train(config(ON_DISK), Watcher.stopAfter(3));
        assertThat(path("resume")).doesNotExist();
        assertThat(path("store/state.ingot")).exists();
        SmallRun.train(config(IN_MEMORY), Watcher.stopAfter(5));
        assertThat(path("resume/step-5")).exists();
        assertThat(path("store")).doesNotExist();
        Watcher watcher = new Watcher();
        assertThat(SmallRun.train(config(ON_DISK), watcher).digest()).isEqualTo(expected);
        assertThat(watcher.summary.firstStep()).isEqualTo(5);
        assertThat(SmallRun.train(config(IN_MEMORY), new Watcher()).digest()).isEqualTo(expected);
    }

    @Test
    void aRunWithoutAStepMoves() {
        SmallRun.train(config(IN_MEMORY), new StopAtOnce());
        assertThat(path("resume/step-0")).exists();
        SmallRun.train(config(ON_DISK), new StopAtOnce());
        assertThat(path("resume")).doesNotExist();
        assertThat(SmallRun.train(config(IN_MEMORY), new Watcher()).digest()).isEqualTo(expected);
    }

    private static final class StopAtOnce implements Callback {
        @Override
        public boolean stop() {
            return true;
        }
    }

    @Test
    void aMoveMayBeKilledAtAnyMoment() {
        String[] modes = {IN_MEMORY, ON_DISK};
        int kills = 0;
        for (int step = 1; step < 6; step += 3) {
            SmallRun.train(config(modes[step % 2]), Watcher.stopAfter(step));
            for (int at = 1; ; at = at < 3 ? at + 1 : at * 2) {
                Killer killer = new Killer(at);
                RunConfig other = config(modes[1 - step % 2]);
                try {
                    Watcher watcher = Watcher.stopAfter(step);
                    new TrainingRun(other, Backends.tested(), both(killer, watcher)).train();
                    break;
                } catch (IngotException e) {
                    assertThat(e).hasMessageContaining("killed");
                    kills++;
                }
            }
        }
        assertThat(kills).isGreaterThan(6);
        assertThat(SmallRun.train(config(ON_DISK), new Watcher()).digest()).isEqualTo(expected);
    }

    private static Callback both(Killer killer, Watcher watcher) {
        return new Callback() {
            @Override
            public void onPhase(String phase, long done, long total) {
                killer.onPhase(phase, done, total);
            }

            @Override
            public void onStep(StepReport report) {
                watcher.onStep(report);
            }

            @Override
            public boolean stop() {
                return true;
            }
        };
    }

    /// Killed between the last two steps of a move: both states are there.
    @Test
    void ofTwoStatesTheNewerCounts() throws IOException {
        SmallRun.train(config(IN_MEMORY), Watcher.stopAfter(3));
        copy(path("resume"), folder.resolve("kept"));
        SmallRun.train(config(ON_DISK), Watcher.stopAfter(5));
        copy(folder.resolve("kept"), path("resume"));
        copy(folder.resolve("kept"), path("resume.old"));
        copy(folder.resolve("kept"), path("store.partial"));
        SmallRun.train(config(ON_DISK), Watcher.stopAfter(6));
        assertThat(path("resume")).doesNotExist();
        assertThat(path("resume.old")).doesNotExist();
        assertThat(path("store.partial")).doesNotExist();
        copy(path("store"), folder.resolve("kept store"));
        SmallRun.train(config(IN_MEMORY), Watcher.stopAfter(7));
        copy(folder.resolve("kept store"), path("store"));
        Watcher watcher = new Watcher();
        assertThat(SmallRun.train(config(ON_DISK), watcher).digest()).isEqualTo(expected);
        assertThat(watcher.summary.firstStep()).isEqualTo(7);
    }

    @Test
    void aBrokenNewestCheckpointIsPassedOver() throws IOException {
        SmallRun.train(config(IN_MEMORY), Watcher.stopAfter(5));
        Path newest = path("resume/step-5/state.safetensors");
        byte[] bytes = Files.readAllBytes(newest);
        bytes[bytes.length - 1] ^= 1;
        Files.write(newest, bytes);
        Watcher watcher = new Watcher();
        assertThat(SmallRun.train(config(ON_DISK), watcher).digest()).isEqualTo(expected);
        assertThat(watcher.summary.firstStep()).isEqualTo(4);
        assertThat(watcher.warnings).singleElement().asString().contains("does not have the digest");
    }

    @Test
    void anOtherTextIsRefusedBeforeAnythingMoves() throws IOException {
        SmallRun.train(config(IN_MEMORY), Watcher.stopAfter(2));
        for (int i = 0; i < 12; i++) {
            Path file = folder.resolve("corpus/f" + i + ".txt");
            Files.writeString(file, Files.readString(file) + "one more line\n");
        }
        assertThatThrownBy(() -> SmallRun.train(config(ON_DISK), new Watcher()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("the training text is");
        assertThat(path("resume/step-2")).exists();
        assertThat(path("store")).doesNotExist();
    }

    private static void copy(Path from, Path to) throws IOException {
        try (Stream<Path> paths = Files.walk(from)) {
            for (Path path : paths.toList()) {
                Files.copy(path, to.resolve(from.relativize(path)));
            }
        }
    }
}
