package ingot.store;

import ingot.ir.IngotException;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// The right of one process to use a store: a lock on the file `store.lock`, which also says who holds it.
///
/// The system drops the lock when its process ends, however it ends; the record of a dead process is no obstacle.
final class StoreLock implements AutoCloseable {
    static final String FILE = "store.lock";

    private static final int MAX_RECORD = 4096;
    private static final Path LINUX_HOST = Path.of("/proc/sys/kernel/hostname");

    // Closing any channel of a file drops all locks this process has on it (POSIX), so a second attempt within the
    // process must be refused before it opens the file.
    private static final Map<Path, String> HELD = new HashMap<>();

    private static @Nullable String host; // asking for it takes milliseconds

    private final Path file;
    private final FileChannel channel;

    private StoreLock(Path file, FileChannel channel) {
        this.file = file;
        this.channel = channel;
    }

    static StoreLock take(Path folder) {
        Path file;
        try {
            file = folder.toRealPath().resolve(FILE);
        } catch (IOException e) {
            throw new IngotException("store: no folder " + folder, e);
        }
        synchronized (HELD) {
            String owner = "pid " + ProcessHandle.current().pid() + " on host " + host() + " since "
                    + Instant.now().truncatedTo(ChronoUnit.SECONDS);
            String other = HELD.get(file);
            if (other != null) {
                throw inUse(folder, other + " (this process)");
            }
            FileChannel channel = null;
            try {
                channel = FileChannel.open(
                        file, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE);
                FileLock lock = channel.tryLock();
                if (lock == null) {
                    String record = record(channel);
                    throw inUse(folder, record.isEmpty() ? "another process" : record);
                }
                channel.truncate(0);
                ByteBuffer text = StandardCharsets.UTF_8.encode(owner + "\n");
                while (text.hasRemaining()) {
                    channel.write(text);
                }
                HELD.put(file, owner);
                StoreLock held = new StoreLock(file, channel);
                channel = null;
                return held;
            } catch (IOException e) {
                throw new IngotException(
                        "store: cannot lock " + file + ": " + reason(e)
                                + "; the folder must be writable, also for reading a store",
                        e);
            } finally {
                closeQuietly(channel);
            }
        }
    }

    private static IngotException inUse(Path folder, String owner) {
        return new IngotException("store: " + folder + " is in use by " + owner
                + "; a store belongs to one process at a time: wait for it to end, or stop it");
    }

    private static String record(FileChannel channel) throws IOException {
        ByteBuffer text = ByteBuffer.allocate(MAX_RECORD);
        while (text.hasRemaining() && channel.read(text, text.position()) > 0) {}
        return StandardCharsets.UTF_8.decode(text.flip()).toString().strip();
    }

    private static String host() {
        String known = host;
        if (known == null) {
            try {
                // On Linux without a name server, which may be slow or absent.
                known = Files.exists(LINUX_HOST)
                        ? Files.readString(LINUX_HOST).strip()
                        : InetAddress.getLocalHost().getHostName();
            } catch (IOException e) {
                known = "unknown";
            }
            host = known;
        }
        return known;
    }

    static String reason(IOException e) {
        String message = e.getMessage();
        return switch (e) {
            case java.nio.file.AccessDeniedException _ -> "permission denied: " + message;
            case java.nio.file.NoSuchFileException _ -> "no such file: " + message;
            default -> message == null ? e.getClass().getSimpleName() : message;
        };
    }

    private static void closeQuietly(@Nullable FileChannel channel) {
        if (channel != null) {
            try {
                channel.close();
            } catch (IOException e) {
                throw new IngotException("store: cannot close a lock file: " + reason(e), e);
            }
        }
    }

    @Override
    public void close() {
        synchronized (HELD) {
            if (HELD.remove(file) != null) {
                closeQuietly(channel);
            }
        }
    }
}
