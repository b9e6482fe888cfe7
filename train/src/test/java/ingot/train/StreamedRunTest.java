package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.IngotException;
import ingot.store.Storage;
import ingot.train.SmallRun.Watcher;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;
import org.assertj.core.api.AbstractThrowableAssert;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Places where a run cannot stream, and what it says then.
class StreamedRunTest {
    @TempDir
    Path folder;

    @BeforeEach
    void text() {
        SmallRun.corpus(folder);
    }

    private RunConfig config(String run, String... overrides) {
        String[] all =
                Stream.concat(Stream.of("memory=8GiB"), Stream.of(overrides)).toArray(String[]::new);
        return SmallRun.config(folder, run, all);
    }

    private AbstractThrowableAssert<?, ? extends Throwable> assertRefused(RunConfig config, Storage.Opener disk) {
        return assertThatThrownBy(
                        () -> new TrainingRun(config, Backends.tested(), new Watcher(), Long.MAX_VALUE, disk).train())
                .isInstanceOf(IngotException.class);
    }

    private AbstractThrowableAssert<?, ? extends Throwable> assertRefused(RunConfig config) {
        return assertRefused(config, new Disk());
    }

    /// Files, but for what a test changes.
    private static class Disk implements Storage.Opener {
        private final Storage.Opener files = Storage.Opener.files(note -> {});

        @Override
        public Storage open(Path file, boolean create) throws IOException {
            return files.open(file, create);
        }

        @Override
        public boolean exists(Path file) {
            return files.exists(file);
        }

        @Override
        public void delete(Path file) throws IOException {
            files.delete(file);
        }

        @Override
        public long freeBytes(Path at) throws IOException {
            return files.freeBytes(at);
        }
    }

    private static final class FullDisk extends Disk {
        @Override
        public long freeBytes(Path at) {
            return 12_345;
        }
    }

    private static final class ReadOnlyDisk extends Disk {
        @Override
        public Storage open(Path file, boolean create) throws IOException {
            if (create) {
                throw new AccessDeniedException(file.toString());
            }
            return super.open(file, false);
        }
    }

    @Test
    void aDiskThatIsTooSmallIsRefusedBeforeTheRun() {
        assertRefused(config("run"), new FullDisk())
                .hasMessageContaining("is too small: the store needs ")
                .hasMessageMatching("(?s).*needs \\d{6,} bytes, 12345 are free.*")
                .hasMessageContaining("make room");
        assertThat(folder.resolve("run/store/state.ingot")).doesNotExist();
        assertThat(folder.resolve("run/metrics.jsonl")).doesNotExist();
        assertThat(SmallRun.train(config("run"), Watcher.stopAfter(1)).step()).isEqualTo(1);
    }

    @Test
    void aDiskThatIsTooSmallForAStateThatMovesLeavesItWhereItIs() {
        SmallRun.train(config("run", "memory="), Watcher.stopAfter(2));
        assertRefused(config("run"), new FullDisk()).hasMessageContaining("12345 are free");
        assertThat(folder.resolve("run/store")).doesNotExist();
        Watcher watcher = Watcher.stopAfter(3);
        assertThat(SmallRun.train(config("run", "memory="), watcher).step()).isEqualTo(3);
        assertThat(watcher.summary.firstStep()).isEqualTo(2);
    }

    @Test
    void aFolderThatMayNotBeWritten() throws IOException {
        Files.writeString(folder.resolve("file"), "no folder");
        assertRefused(config("file/run"))
                .hasMessageContaining("run: cannot write to the folder " + folder.resolve("file/run"))
                .hasMessageContaining("run=");
        assertRefused(config("run"), new ReadOnlyDisk())
                .hasMessageContaining("store: cannot create ")
                .hasMessageContaining("permission denied");
    }

    @Test
    void somethingElseInTheStoresPlace() throws IOException {
        Path store = Files.createDirectories(folder.resolve("run")).resolve("store");
        Files.writeString(store, "my shop");
        assertRefused(config("run")).hasMessageContaining(store + " is a file").hasMessageContaining("run=");
        Files.delete(store);
        Files.createDirectory(store);
        for (String name : new String[] {"apples", "pears", "plums", "figs"}) {
            Files.writeString(store.resolve(name), name);
        }
        assertRefused(config("run"))
                .hasMessageContaining(store + " is no store: it holds apples, figs, pears, …")
                .hasMessageContaining("move the folder away");
        assertThat(store.resolve("state.ingot")).doesNotExist();
        for (String name : new String[] {"apples", "pears", "plums", "figs"}) {
            Files.delete(store.resolve(name));
        }
        Files.writeString(store.resolve("state.ingot"), "x".repeat(5000));
        assertRefused(config("run")).hasMessageContaining("is no store of Ingot");
    }

    @Test
    void otherSettingsAreRefusedBeforeTheTextIsRead() throws IOException {
        SmallRun.train(config("run"), Watcher.stopAfter(1));
        try (Stream<Path> files = Files.walk(folder.resolve("corpus"))) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
        assertRefused(config("run", "train.batch=2", "train.seed=7"))
                .hasMessageContaining("train.batch is 2, it was 4")
                .hasMessageContaining("train.seed is 7, it was 1");
        assertRefused(config("run")).hasMessageContaining("corpus");
    }
}
