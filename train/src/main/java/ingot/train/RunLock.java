package ingot.train;

import ingot.ir.IngotException;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.jspecify.annotations.Nullable;

/// One process writes one run folder. The lock dies with its process.
final class RunLock implements AutoCloseable {
    private final FileChannel channel;

    private RunLock(FileChannel channel) {
        this.channel = channel;
    }

    static RunLock take(Path folder) {
        Path path = folder.resolve(".lock");
        try {
            Files.createDirectories(folder);
            FileChannel channel = FileChannel.open(
                    path, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE);
            if (lock(channel) == null) {
                String owner = Files.readString(path).strip();
                channel.close();
                throw new IngotException("run: " + folder + " is in use by process " + owner
                        + "; wait for it, stop it, or choose another folder with run=…");
            }
            channel.truncate(0);
            channel.write(
                    StandardCharsets.UTF_8.encode(
                            Long.toString(ProcessHandle.current().pid())),
                    0);
            return new RunLock(channel);
        } catch (IOException e) {
            throw new IngotException(
                    "run: cannot write to the folder " + folder + ": "
                            + (e instanceof AccessDeniedException ? "permission denied" : e.getMessage())
                            + "; choose another with run=…",
                    e);
        }
    }

    private static @Nullable FileLock lock(FileChannel channel) throws IOException {
        try {
            return channel.tryLock();
        } catch (OverlappingFileLockException e) {
            return null;
        }
    }

    @Override
    public void close() {
        try {
            channel.close();
        } catch (IOException e) {
            throw new IngotException("run: cannot release a lock: " + e.getMessage(), e);
        }
    }
}
