package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.IngotException;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// Wrong configurations: each file says in its first line what the message must contain.
class MustFailTest {
    static List<Path> files() throws IOException, URISyntaxException {
        Path folder = Path.of(Objects.requireNonNull(MustFailTest.class.getResource("/must-fail"))
                .toURI());
        try (Stream<Path> files = Files.list(folder)) {
            return files.sorted().toList();
        }
    }

    @ParameterizedTest
    @MethodSource("files")
    void isRefused(Path file) throws IOException {
        String yaml = Files.readString(file);
        String message = yaml.lines().findFirst().orElseThrow();
        assertThat(message).startsWith("# ").hasSizeGreaterThan(6);
        assertThatThrownBy(() -> {
                    RunConfig config = RunConfig.parse(yaml, List.of());
                    config.train().recipe(config.train().steps());
                })
                .isInstanceOf(IngotException.class)
                .hasMessageContaining(message.substring(2));
    }

    @Test
    void thereAreMany() throws IOException, URISyntaxException {
        assertThat(files()).hasSizeGreaterThan(40);
    }

    @ParameterizedTest
    @MethodSource("overrides")
    void overridesAreRefused(String override, String message) {
        assertThatThrownBy(() -> RunConfig.parse("data: {corpus: c}", List.of(override)))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining(message);
    }

    static List<Arguments> overrides() {
        return List.of(
                Arguments.of("steps", "override: expected key=value"),
                Arguments.of("=5", "override: expected key=value"),
                Arguments.of("steps=5", "unknown key steps"),
                Arguments.of("train.step=5", "did you mean train.steps?"),
                Arguments.of("train.batch=[", "is no YAML"),
                Arguments.of("train=5", "train expected keys and values, got '5'"));
    }
}
