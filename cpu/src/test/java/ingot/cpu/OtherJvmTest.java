package ingot.cpu;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.compiler.Kernel;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// The same bits in a JVM without the vector module, and with other vector widths.
class OtherJvmTest {
    @Test
    void withoutTheVectorModule() throws Exception {
        assertThat(run(List.of())).containsExactly("lanes 1", MatmulBits.hash());
    }

    @Test
    void withTheModuleSwitchedOff() throws Exception {
        assertThat(run(List.of("--add-modules", "jdk.incubator.vector", "-Dingot.vector=off")))
                .containsExactly("lanes 1", MatmulBits.hash());
    }

    @Test
    void withNarrowVectors() throws Exception {
        assertThat(run(List.of("--add-modules", "jdk.incubator.vector", "-Dingot.vector=128")))
                .containsExactly("lanes 4", MatmulBits.hash());
    }

    private static List<String> run(List<String> options) throws Exception {
        var command = new ArrayList<String>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(options);
        command.addAll(List.of("-Xmx256m", "--enable-native-access=ALL-UNNAMED", "-cp"));
        command.add(String.join(
                System.getProperty("path.separator"),
                root(Matmul.class).toString(),
                root(MatmulBits.class).toString(),
                library(Kernel.class).toString()));
        command.add("ingot.cpu.MatmulBits");
        var process = new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        var output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).isZero();
        return output.lines().toList();
    }

    /// The folder or the jar of another module.
    private static Path library(Class<?> type) throws Exception {
        return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI());
    }

    /// The folder that holds the class file's package tree.
    private static Path root(Class<?> type) throws Exception {
        var url = type.getResource(type.getSimpleName() + ".class");
        assertThat(url).isNotNull();
        return Path.of(URI.create(url.toString())).getParent().getParent().getParent();
    }
}
