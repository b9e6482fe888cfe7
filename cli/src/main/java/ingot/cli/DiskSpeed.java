package ingot.cli;

import com.sun.nio.file.ExtendedOpenOption;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashSet;
import java.util.Set;

/// Bytes per second to and from the disk below a folder, measured with one small file that is deleted again.
///
/// @param direct past the page cache; without it reading may only show the speed of memory
record DiskSpeed(double write, double read, boolean direct) {
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
        ByteBuffer block = ByteBuffer.allocateDirect(BLOCK + ALIGNMENT)
                .alignedSlice(ALIGNMENT)
                .limit(BLOCK);
        for (int i = 0; i < BLOCK; i++) {
            block.put(i, (byte) (i * 31 + (i >> 9))); // not zeros, which some disks do not store
        }
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
            return new DiskSpeed(write, read / ((System.nanoTime() - start) / 1e9), !extra.isEmpty());
        }
    }

    private static Set<OpenOption> options(Set<OpenOption> extra, OpenOption mode) {
        Set<OpenOption> options = new HashSet<>(extra);
        options.add(mode);
        return options;
    }
}
