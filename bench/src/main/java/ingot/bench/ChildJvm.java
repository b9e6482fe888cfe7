package ingot.bench;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// A JVM of its own for a main class of this program.
final class ChildJvm {
    private ChildJvm() {}

    /// Starts it; what it says to stderr comes with what it says to stdout.
    static Process start(List<String> flags, Class<?> main, List<String> arguments) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(flags);
        command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "-cp", classPath(), main.getName()));
        command.addAll(arguments);
        return new ProcessBuilder(command).redirectErrorStream(true).start();
    }

    /// What this JVM has on its module path is on the class path of the other.
    private static String classPath() {
        return Stream.of("jdk.module.path", "java.class.path")
                .map(System::getProperty)
                .filter(Objects::nonNull)
                .filter(path -> !path.isEmpty())
                .collect(Collectors.joining(System.getProperty("path.separator")));
    }
}
