package ingot.bench;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// `ingot bench kill`, a few kills long.
class KillLoopTest {
    @TempDir
    Path folder;

    @Test
    void aKilledRunHasTheBitsOfOneThatNothingStopped() throws IOException {
        List<String> notes = new ArrayList<>();
        KillLoop.Report report = new KillLoop(folder.resolve("store"), 8, 4096, 1, notes::add).run(5, progress -> {});
        assertThat(report.kills()).isEqualTo(5);
        assertThat(report.runs()).isPositive();
        assertThat(report.redone()).isLessThanOrEqualTo(report.kills());
        assertThat(report.digest()).hasSize(64);
        assertThat(notes).noneMatch(note -> note.contains("damaged"));
        assertThat(folder).isEmptyDirectory();
    }
}
