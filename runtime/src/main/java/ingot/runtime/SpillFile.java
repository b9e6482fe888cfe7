package ingot.runtime;

import ingot.ir.IngotException;
import ingot.store.Storage;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.jspecify.annotations.Nullable;

/// A file for activations between their forward and their backward: scratch, of no worth after the step.
///
/// A thread of its own moves them, in the order of the requests, while the program computes. One caller at a time.
public final class SpillFile implements AutoCloseable {
    /// For programs that spill nothing.
    public static final SpillFile NONE = new SpillFile(null, Path.of(""));

    private static final long PIECE = 4 << 20;

    private final @Nullable Storage storage;
    private final @Nullable ExecutorService thread;
    private final Path path;
    private final Map<Long, Request> requests = new HashMap<>(); // under way, by position
    private long bytesRead;
    private long bytesWritten;
    private long readStall;
    private long writeStall;

    private record Request(boolean read, CompletableFuture<Void> done) {}

    private SpillFile(@Nullable Storage storage, Path path) {
        this.storage = storage;
        this.path = path;
        // its own: an interrupted thread closes the file it uses
        thread = storage == null
                ? null
                : Executors.newSingleThreadExecutor(task -> {
                    Thread own = new Thread(null, task, "ingot-spill", 512 << 10);
                    own.setDaemon(true);
                    return own;
                });
    }

    /// Makes the file and reserves `bytes` of disk, so that no step can find it full.
    public static SpillFile create(Path path, long bytes) {
        SpillFile file = null;
        try {
            Storage made = Storage.Opener.files(note -> {}).open(path, true);
            file = new SpillFile(made, path);
            made.allocate(bytes, done -> {});
            return file;
        } catch (IOException e) {
            if (file != null) {
                file.close();
            }
            throw new IngotException(
                    "spill: cannot reserve " + bytes + " bytes for activations in " + path + ": " + e.getMessage()
                            + "; free some space, choose another run folder, or give more memory",
                    e);
        }
    }

    /// Begins to write; `from` stays as it is until `await`.
    void write(long position, MemorySegment from) {
        bytesWritten += from.byteSize();
        begin(position, false, file -> {
            for (long at = 0; at < from.byteSize(); ) {
                try {
                    at += file.write(position + at, piece(from, at));
                } catch (IOException e) {
                    throw failed("write", position + at, e);
                }
            }
        });
    }

    /// Begins to read what was written there; nobody else touches `into` until `await`.
    void read(long position, MemorySegment into) {
        bytesRead += into.byteSize();
        begin(position, true, file -> {
            for (long at = 0; at < into.byteSize(); ) {
                try {
                    int read = file.read(position + at, piece(into, at));
                    if (read < 0) {
                        throw new IOException("the file ends there");
                    }
                    at += read;
                } catch (IOException e) {
                    throw failed("read", position + at, e);
                }
            }
        });
    }

    /// Small enough that what others ask of the disk comes in between.
    private static MemorySegment piece(MemorySegment memory, long at) {
        return memory.asSlice(at, Math.min(PIECE, memory.byteSize() - at));
    }

    private interface Work {
        void run(Storage storage);
    }

    private void begin(long position, boolean read, Work work) {
        if (storage == null || thread == null) {
            throw new IllegalStateException("a program spills activations, but its executor has no file for them");
        }
        Storage file = storage;
        Request request = new Request(read, CompletableFuture.runAsync(() -> work.run(file), thread));
        if (requests.putIfAbsent(position, request) != null) {
            throw new IllegalStateException("spill: a transfer at byte " + position + " is under way already");
        }
    }

    /// Waits for the transfer that was begun at a position.
    void await(long position) {
        Request request = requests.remove(position);
        if (request == null) {
            throw new IllegalStateException("spill: no transfer at byte " + position + " is under way");
        }
        long start = System.nanoTime();
        try {
            request.done().join(); // an interrupt has to wait: the memory is in use
        } catch (CompletionException e) {
            throw e.getCause() instanceof IngotException known
                    ? new IngotException(String.valueOf(known.getMessage()), known)
                    : e;
        }
        long time = System.nanoTime() - start;
        if (request.read()) {
            readStall += time;
        } else {
            writeStall += time;
        }
    }

    /// Waits for what is under way, whatever becomes of it.
    void drop() {
        requests.values()
                .forEach(request -> request.done().exceptionally(e -> null).join());
        requests.clear();
    }

    public long bytesRead() {
        return bytesRead;
    }

    public long bytesWritten() {
        return bytesWritten;
    }

    /// Nanoseconds the program has waited for what it reads back.
    public long readStall() {
        return readStall;
    }

    /// Nanoseconds the program has waited because memory was still being written.
    public long writeStall() {
        return writeStall;
    }

    private IngotException failed(String what, long position, IOException e) {
        return new IngotException(
                "spill: cannot " + what + " activations at byte " + position + " of " + path + ": " + e.getMessage()
                        + "; the step is lost, the same command does it again",
                e);
    }

    /// Deletes the file.
    @Override
    public void close() {
        drop();
        if (thread != null) {
            thread.close();
        }
        if (storage != null) {
            try (storage) {
                Files.deleteIfExists(path);
            } catch (IOException e) {
                throw new IngotException("spill: cannot delete " + path + ": " + e.getMessage(), e);
            }
        }
    }
}
