package ingot.store;

import com.sun.nio.file.ExtendedOpenOption;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.LongConsumer;

/// A file, read and written directly, without the page cache, where its file system can.
///
/// A thread that is interrupted while it uses a `FileChannel` closes it: only the store's own threads may come here.
final class FileStorage implements Storage {
    private static final int ZEROS = 4 << 20;

    private final Path file;
    private final FileChannel channel;

    private FileStorage(Path file, FileChannel channel) {
        this.file = file;
        this.channel = channel;
    }

    record Files(Consumer<String> note) implements Opener {
        @Override
        public Storage open(Path file, boolean create) throws IOException {
            Set<OpenOption> options = new LinkedHashSet<>(Set.of(StandardOpenOption.READ, StandardOpenOption.WRITE));
            if (create) {
                options.add(StandardOpenOption.CREATE);
            }
            FileChannel direct = direct(file, options);
            return new FileStorage(file, direct == null ? FileChannel.open(file, options) : direct);
        }

        private @org.jspecify.annotations.Nullable FileChannel direct(Path file, Set<OpenOption> options)
                throws IOException {
            if (options.contains(StandardOpenOption.CREATE) && !java.nio.file.Files.exists(file)) {
                FileChannel.open(file, options).close();
            }
            String reason;
            try {
                if (java.nio.file.Files.getFileStore(file).getBlockSize() <= Blocks.SIZE) {
                    Set<OpenOption> withDirect = new LinkedHashSet<>(options);
                    withDirect.add(ExtendedOpenOption.DIRECT);
                    return FileChannel.open(file, withDirect);
                }
                reason = "its blocks are larger than " + Blocks.SIZE + " bytes";
            } catch (UnsupportedOperationException e) {
                reason = "its system has no direct access";
            } catch (java.nio.file.AccessDeniedException | java.nio.file.NoSuchFileException e) {
                throw e;
            } catch (IOException e) {
                reason = String.valueOf(e.getMessage());
            }
            note.accept("store: " + file + " is read and written through the page cache (" + reason + ")");
            return null;
        }

        @Override
        public boolean exists(Path file) {
            return java.nio.file.Files.exists(file);
        }

        @Override
        public void delete(Path file) throws IOException {
            java.nio.file.Files.deleteIfExists(file);
        }

        @Override
        public long freeBytes(Path folder) throws IOException {
            return java.nio.file.Files.getFileStore(folder).getUsableSpace();
        }
    }

    @Override
    public int read(long position, MemorySegment into) throws IOException {
        return channel.read(buffer(into), position);
    }

    @Override
    public int write(long position, MemorySegment from) throws IOException {
        return channel.write(buffer(from), position);
    }

    /// A buffer holds less than 2 GiB: the rest is a short transfer.
    private static ByteBuffer buffer(MemorySegment memory) {
        return memory.asSlice(0, Math.min(memory.byteSize(), 1 << 30)).asByteBuffer();
    }

    @Override
    public void flush() throws IOException {
        channel.force(false);
    }

    @Override
    public void allocate(long bytes, LongConsumer progress) throws IOException {
        if (Fallocate.reserve(file, bytes)) {
            progress.accept(bytes);
            flushAll();
        } else {
            fill(bytes, progress);
        }
    }

    /// Reserves room where the system has no call for it.
    void fill(long bytes, LongConsumer progress) throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment zeros = arena.allocate(ZEROS, Blocks.SIZE);
            for (long at = 0; at < bytes; ) {
                long n = Math.min(ZEROS, bytes - at);
                Blocks.write(this, at, zeros.asSlice(0, n));
                at += n;
                progress.accept(at);
            }
        }
        flushAll();
    }

    /// The file, its length and its name in the folder.
    private void flushAll() throws IOException {
        channel.force(true);
        Durable.flushFolderOf(file);
    }

    @Override
    public long size() throws IOException {
        return channel.size();
    }

    @Override
    public void close() throws IOException {
        channel.close();
    }
}
