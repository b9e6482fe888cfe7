package ingot.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

class ScreenTest {
    private static final long SECOND = 1_000_000_000L;

    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private long now;

    private Screen screen(boolean terminal) {
        return new Screen(Invocation.stream(bytes), Invocation.stream(bytes), terminal, terminal, () -> now);
    }

    private String printed() {
        var text = bytes.toString(StandardCharsets.UTF_8);
        bytes.reset();
        return text;
    }

    @Test
    void elsewhereALineEveryFewSecondsAndTheLastOne() {
        var screen = screen(false);
        for (int step = 1; step <= 22; step++) {
            screen.live("step " + step);
            now += SECOND;
        }
        screen.end(true);
        assertThat(printed().lines()).containsExactly("step 1", "step 6", "step 11", "step 16", "step 21", "step 22");
    }

    @Test
    void elsewhereNothingIsPrintedTwiceAndWhatIsNotKeptIsDropped() {
        var screen = screen(false);
        screen.live("a");
        screen.end(true);
        screen.live("b");
        screen.live("c");
        screen.end(false);
        screen.live("d");
        assertThat(printed().lines()).containsExactly("a", "b", "d");
    }

    @Test
    void elsewhereThereAreNoControlSequences() {
        var screen = screen(false);
        screen.live("a");
        screen.line(screen.bold("b") + screen.dim("c"));
        screen.end(false);
        assertThat(printed()).isEqualTo("a\nbc\n");
    }

    @Test
    void aTerminalKeepsOneLiveLineBelowTheOthers() {
        var screen = screen(true);
        screen.live("step 1");
        assertThat(printed()).isEqualTo("\r\033[K\033[?7lstep 1\033[?7h");
        screen.line("saved");
        assertThat(printed()).isEqualTo("\r\033[Ksaved\n\r\033[K\033[?7lstep 1\033[?7h");
        screen.warn("beware");
        assertThat(printed()).isEqualTo("\r\033[Kbeware\n\r\033[K\033[?7lstep 1\033[?7h");
        screen.end(true);
        assertThat(printed()).isEqualTo("\n");
        screen.line("done");
        assertThat(printed()).isEqualTo("done\n");
    }

    @Test
    void aTerminalRemovesALiveLineThatIsNotKept() {
        var screen = screen(true);
        screen.live("working");
        printed();
        screen.end(false);
        assertThat(printed()).isEqualTo("\r\033[K");
        screen.end(true);
        assertThat(printed()).isEmpty();
    }
}
