package ingot.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MainTest {
    @Test
    void theVersionIsThatOfTheBuild() {
        var version = Invocation.of("--version");
        assertThat(version.status()).isZero();
        assertThat(version.out()).matches("(?s)ingot \\d+\\.\\d+\\.\\d+.*\\nJDK .*");
    }

    @Test
    void withoutACommandItShowsTheHelp() {
        var nothing = Invocation.of();
        assertThat(nothing.status()).isZero();
        assertThat(nothing.out())
                .contains("ingot train examples/quickstart.yaml")
                .contains("train", "generate", "eval", "explain", "store", "doctor", "bench");
    }

    @ParameterizedTest
    @ValueSource(strings = {"train", "generate", "eval", "explain", "plan", "store", "doctor"})
    void everyCommandHasHelpThatFitsATerminal(String command) {
        var help = Invocation.of("help", command);
        assertThat(help.status()).isZero();
        assertThat(help.out()).contains("Usage: ingot " + command);
        assertThat(help.out().lines()).allMatch(line -> line.length() <= 80);
        assertThat(Invocation.of(command, "--help").out()).isEqualTo(help.out());
    }

    @Test
    void anUnexpectedExceptionIsABugWithItsStackTrace(@TempDir Path folder) throws IOException {
        var config = Files.writeString(folder.resolve("a.yaml"), "data: {corpus: nothing}\n");
        var calls = new AtomicInteger();
        var bug = Invocation.of(
                () -> {
                    calls.incrementAndGet();
                    throw new IllegalStateException("the clock stopped");
                },
                Map.of(),
                "explain",
                config.toString(),
                "model.layers=1",
                "model.width=4",
                "model.heads=1",
                "model.context=4");
        assertThat(calls.get()).isPositive();
        assertThat(bug.status()).isEqualTo(70);
        assertThat(bug.err()).contains("this is a bug in Ingot", "the clock stopped", "\tat ");
    }

    @Test
    void stackTracesOfErrorsAreForThoseWhoAskForThem() {
        assertThat(Invocation.of("train", "missing.yaml").err()).doesNotContain("\tat ");
        assertThat(Invocation.of(System::nanoTime, Map.of("INGOT_DEBUG", "time,stack"), "train", "missing.yaml")
                        .err())
                .contains("\tat ");
    }
}
