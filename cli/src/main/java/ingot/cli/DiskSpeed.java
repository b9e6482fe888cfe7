package ingot.cli;

import com.sun.nio.file.ExtendedOpenOption;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;

/// Bytes per second to and from the disk below a folder, measured with one small file that is deleted again.
///
/// @param mixed bytes per second in all while one thread writes and one reads
/// @param direct past the page cache; without it reading may only show the speed of memory
record DiskSpeed(double write, double read, double mixed, boolean direct) {
    private static final int BLOCK = 4 << 20;
    private static final int ALIGNMENT = 4096;
    private static final long BYTES = 64L << 20;
    private static final long NANOSECONDS = 2_000_000_000L;

    /// At most 64 MiB and about two seconds each way.
    static DiskSpeed measure(Path folder) throws IOException {
        Path file = Files.createTempFile(folder, ".ingot-doctor", ".tmp");
        try {
            return measure(file, Set.of(ExtendedOpenOption.DIRECT));
        } catch (IOException | UnsupportedOperationException e) {
            return measure(file, Set.of()); // a file system without direct access, such as tmpfs
        } finally {
            Files.deleteIfExists(file);
        }
    }

    private static DiskSpeed measure(Path file, Set<OpenOption> extra) throws IOException {
        ByteBuffer block = block();
        double write;
        long written = 0;
        try (FileChannel channel = FileChannel.open(file, options(extra, StandardOpenOption.WRITE))) {
            long start = System.nanoTime();
            while (written < BYTES && System.nanoTime() - start < NANOSECONDS) {
                written += channel.write(block.rewind(), written);
            }
            channel.force(true);
            write = written / ((System.nanoTime() - start) / 1e9);
        }
        try (FileChannel channel = FileChannel.open(file, options(extra, StandardOpenOption.READ))) {
            long start = System.nanoTime();
            long read = 0;
            while (read < written && System.nanoTime() - start < NANOSECONDS) {
                read += channel.read(block.rewind(), read);
            }
            double reading = read / ((System.nanoTime() - start) / 1e9);
            return new DiskSpeed(write, reading, mixed(file, written, extra), !extra.isEmpty());
        }
    }

    /// Two threads read, two overwrite, in blocks all over the file, as streaming does.
    private static double mixed(Path file, long bytes, Set<OpenOption> extra) throws IOException {
        long blocks = bytes / BLOCK;
        AtomicLong moved = new AtomicLong();
        long start = System.nanoTime();
        List<Future<?>> ends = new ArrayList<>();
        try (ExecutorService threads = Executors.newFixedThreadPool(4);
                FileChannel reading = FileChannel.open(file, options(extra, StandardOpenOption.READ));
                FileChannel writing = FileChannel.open(file, options(extra, StandardOpenOption.WRITE))) {
            for (int i = 0; i < 4; i++) {
                int thread = i;
                ends.add(threads.submit(() -> {
                    ByteBuffer block = block();
                    for (long at = thread; System.nanoTime() - start < NANOSECONDS / 2; at += 5) {
                        long position = at % blocks * BLOCK;
                        moved.addAndGet(
                                thread % 2 == 0
                                        ? reading.read(block.rewind(), position)
                                        : writing.write(block.rewind(), position));
                    }
                    return null;
                }));
            }
            for (Future<?> end : ends) {
                end.get();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (ExecutionException e) {
            throw new IOException(e.getCause());
        }
        return moved.get() / ((System.nanoTime() - start) / 1e9);
    }

    /// Not zeros, which some disks do not store.
    private static ByteBuffer block() {
        ByteBuffer block = ByteBuffer.allocateDirect(BLOCK + ALIGNMENT)
                .alignedSlice(ALIGNMENT)
                .limit(BLOCK);
        for (int i = 0; i < BLOCK; i++) {
            block.put(i, (byte) (i * 31 + (i >> 9)));
        }
        return block;
    }

    private static Set<OpenOption> options(Set<OpenOption> extra, OpenOption mode) {
        Set<OpenOption> options = new HashSet<>(extra);
        options.add(mode);
        return options;
    }
}
