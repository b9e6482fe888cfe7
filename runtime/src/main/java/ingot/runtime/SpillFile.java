package ingot.runtime;

import ingot.ir.IngotException;
import ingot.store.Storage;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/// A file for activations between their forward and their backward: scratch, of no worth after the step.
public final class SpillFile implements AutoCloseable {
    /// For programs that spill nothing.
    public static final SpillFile NONE = new SpillFile(null, Path.of(""));

    private final @Nullable Storage storage;
    private final Path path;

    private SpillFile(@Nullable Storage storage, Path path) {
        this.storage = storage;
        this.path = path;
    }

    /// Makes the file and reserves `bytes` of disk, so that no step can find it full.
    public static SpillFile create(Path path, long bytes) {
        SpillFile file = null;
        try {
            file = new SpillFile(Storage.Opener.files(note -> {}).open(path, true), path);
            file.storage().allocate(bytes, done -> {});
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

    void write(long position, MemorySegment from) {
        for (long at = 0; at < from.byteSize(); ) {
            try {
                at += storage().write(position + at, from.asSlice(at));
            } catch (IOException e) {
                throw failed("write", position + at, e);
            }
        }
    }

    void read(long position, MemorySegment into) {
        for (long at = 0; at < into.byteSize(); ) {
            try {
                int read = storage().read(position + at, into.asSlice(at));
                if (read < 0) {
                    throw new IOException("the file ends there");
                }
                at += read;
            } catch (IOException e) {
                throw failed("read", position + at, e);
            }
        }
    }

    private Storage storage() {
        if (storage == null) {
            throw new IllegalStateException("a program spills activations, but its executor has no file for them");
        }
        return storage;
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
        if (storage != null) {
            try (storage) {
                Files.deleteIfExists(path);
            } catch (IOException e) {
                throw new IngotException("spill: cannot delete " + path + ": " + e.getMessage(), e);
            }
        }
    }
}
