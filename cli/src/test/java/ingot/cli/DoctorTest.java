package ingot.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DoctorTest {
    @TempDir
    Path folder;

    @Test
    void itLooksAtEverything() {
        var doctor = Invocation.of("doctor", "--folder", folder.resolve("runs").toString());
        assertThat(doctor.err()).isEmpty();
        assertThat(doctor.status()).isZero();
        assertThat(doctor.out())
                .contains("JDK ", "cores ", "vector module", "matrix units", "memory ", "GFLOP/s", "GB/s", "disk ");
        assertThat(folder.resolve("runs")).doesNotExist();
    }

    @Test
    void aFolderThatCannotBeWrittenIsAFault() throws IOException {
        Path sealed = Files.createDirectory(folder.resolve("sealed"));
        assumeTrue(sealed.toFile().setWritable(false) && !Files.isWritable(sealed), "a user whom permissions bind");
        var doctor = Invocation.of("doctor", "--folder", sealed.toString());
        assertThat(doctor.status()).isEqualTo(1);
        assertThat(doctor.out()).contains("UNUSABLE: runs cannot be written to " + sealed);
    }
}
