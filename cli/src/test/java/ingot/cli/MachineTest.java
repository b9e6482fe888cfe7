package ingot.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MachineTest {
    @TempDir
    Path root;

    private void file(String name, String content) throws IOException {
        Files.createDirectories(root.resolve(name).getParent());
        Files.writeString(root.resolve(name), content);
    }

    @Test
    void anIntelServerWithMatrixUnits() throws IOException {
        file(
                "proc/cpuinfo",
                "processor\t: 0\n"
                        + "model name\t: Xeon\n"
                        + "flags\t\t: fpu fma avx avx2 avx512f avx512_bf16 amx_bf16 amx_tile\n\n");
        file("proc/meminfo", "MemTotal:       2048 kB\nMemAvailable:   1024 kB\n");
        file("sys/fs/cgroup/memory.max", "1048576\n");
        file("etc/os-release", "NAME=x\nPRETTY_NAME=\"Some Linux 1\"\n");
        var machine = new Machine(root);
        assertThat(machine.processor()).isEqualTo("Xeon");
        assertThat(machine.vectors()).containsExactly("avx512f", "avx2", "avx", "fma");
        assertThat(machine.matrixUnits()).containsExactly("amx_bf16", "avx512_bf16");
        assertThat(machine.memory("MemTotal")).hasValue(2 << 20);
        assertThat(machine.memory("MemAvailable")).hasValue(1 << 20);
        assertThat(machine.memoryLimit()).hasValue(1 << 20);
        assertThat(machine.system()).startsWith("Some Linux 1, ");
    }

    @Test
    void anArmServer() throws IOException {
        file("proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd sve i8mm bf16\nCPU part\t: 0xd40\n");
        var machine = new Machine(root);
        assertThat(machine.processor()).isEqualTo("ARM part 0xd40");
        assertThat(machine.vectors()).containsExactly("sve", "asimd");
        assertThat(machine.matrixUnits()).containsExactly("i8mm", "bf16");
    }

    @Test
    void aLimitOfTheFirstControlGroups() throws IOException {
        file("sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
        assertThat(new Machine(root).memoryLimit()).hasValue(1 << 29);
        file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assertThat(new Machine(root).memoryLimit()).isEmpty();
    }

    @Test
    void whatIsNotThereIsUnknown() throws IOException {
        file("sys/fs/cgroup/memory.max", "max\n");
        var machine = new Machine(root);
        assertThat(machine.processor()).isEqualTo("unknown");
        assertThat(machine.matrixUnits()).isEmpty();
        assertThat(machine.memoryLimit()).isEmpty();
        assertThat(machine.memory("MemTotal")).isEmpty();
        assertThat(machine.system()).startsWith(System.getProperty("os.name"));
    }

    @Test
    void theDiskIsMeasuredAndLeftClean() throws IOException {
        var speed = DiskSpeed.measure(root);
        assertThat(speed.write()).isPositive();
        assertThat(speed.read()).isPositive();
        try (var files = Files.list(root)) {
            assertThat(files).isEmpty();
        }
    }
}
