package ingot.cpu;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// A JVM without the vector module runs every kind of kernel, with the same bits.
class ScalarRunTest {
    @TempDir
    Path folder;

    @Test
    void withoutVectorModule() throws Exception {
        assertThat(child(List.of())).isEqualTo(child(List.of("--add-modules", "jdk.incubator.vector")));
    }

    /// Runs [ScalarRun] on the class path, so that no module declaration asks for the vector module; what it prints.
    private String child(List<String> options) throws IOException, InterruptedException {
        Path java = Path.of(System.getProperty("java.home"), "bin", "java");
        List<String> command = new ArrayList<>(List.of(java.toString(), "-Xmx256m", "-XX:+UseSerialGC"));
        command.addAll(options);
        command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "-cp", classPath(), ScalarRun.class.getName()));
        Path output = folder.resolve("out" + options.size());
        Path errors = folder.resolve("err" + options.size());
        Process process = new ProcessBuilder(command)
                .redirectOutput(output.toFile())
                .redirectError(errors.toFile())
                .start();
        assertThat(process.waitFor(120, TimeUnit.SECONDS)).isTrue();
        assertThat(process.exitValue())
                .as(Files.readString(errors, StandardCharsets.UTF_8))
                .isZero();
        return Files.readString(output, StandardCharsets.UTF_8);
    }

    private static String classPath() {
        String modules = System.getProperty("jdk.module.path", "");
        String classes = System.getProperty("java.class.path", "");
        return modules
                + java.io.File.pathSeparator
                + classes
                + java.io.File.pathSeparator
                + Path.of(ScalarRun.class
                        .getProtectionDomain()
                        .getCodeSource()
                        .getLocation()
                        .getPath());
    }
}
