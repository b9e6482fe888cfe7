package ingot.cli;

import ingot.store.Storage;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/// Bytes per second to and from the disk below a folder, measured as a store uses it, with one small file that is
/// deleted again.
///
/// @param mixed bytes per second in all while two threads write and two read
/// @param cpu seconds of processor time per byte, reading and writing
/// @param flush seconds until a small write is safe
/// @param direct past the page cache; without it reading may only show the speed of memory
record DiskSpeed(double write, double read, double mixed, double cpu, double flush, boolean direct) {
    private static final int BLOCK = 1 << 20;
    private static final long BYTES = 64L << 20;
    private static final long NANOSECONDS = 500_000_000L;
    private static final int FLUSHES = 4;
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    /// At most 64 MiB and about two seconds in all.
    static DiskSpeed measure(Path folder) throws IOException {
        return measure(folder, () -> LockSupport.parkNanos(NANOSECONDS));
    }

    /// The same where the processor is as busy as in a training step: `busy` runs again and again while reading and
    /// writing at once are measured.
    static DiskSpeed measure(Path folder, Runnable busy) throws IOException {
        Path file = Files.createTempFile(folder, ".ingot-doctor", ".tmp");
        AtomicBoolean direct = new AtomicBoolean(true);
        try (Storage storage = Storage.Opener.files(note -> direct.set(false)).open(file, false);
                Arena arena = Arena.ofShared()) {
            MemorySegment block = block(arena);
            long start = System.nanoTime();
            long written = 0;
            while (written < BYTES && System.nanoTime() - start < NANOSECONDS) {
                written += storage.write(written, block);
            }
            storage.flush();
            double write = written / seconds(start);
            start = System.nanoTime();
            long read = 0;
            while (read < written && System.nanoTime() - start < NANOSECONDS) {
                read += storage.read(read, block);
            }
            double reading = read / seconds(start);
            AtomicLong processor = new AtomicLong();
            AtomicBoolean over = new AtomicBoolean();
            Thread computing = Thread.ofPlatform().start(() -> {
                while (!over.get()) {
                    busy.run();
                }
            });
            double[] mixed;
            try {
                mixed = mixed(storage, written / BLOCK, block, arena, processor);
            } finally {
                over.set(true);
                LockSupport.unpark(computing);
                join(computing);
            }
            start = System.nanoTime();
            for (int i = 0; i < FLUSHES; i++) {
                storage.write(0, block.asSlice(0, Storage.BLOCK));
                storage.flush();
            }
            double flush = seconds(start) / FLUSHES;
            return new DiskSpeed(
                    write, reading, mixed[0] / mixed[1], processor.get() / 1e9 / mixed[0], flush, direct.get());
        } finally {
            Files.deleteIfExists(file);
        }
    }

    private static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static double seconds(long start) {
        return (System.nanoTime() - start) / 1e9;
    }

    /// Two threads read, two overwrite, in blocks all over the file, as streaming does; bytes and seconds.
    private static double[] mixed(Storage storage, long blocks, MemorySegment full, Arena arena, AtomicLong processor)
            throws IOException {
        AtomicLong moved = new AtomicLong();
        long start = System.nanoTime();
        List<Future<?>> ends = new ArrayList<>();
        try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
            for (int i = 0; i < 4; i++) {
                int thread = i;
                ends.add(threads.submit(() -> {
                    MemorySegment block = thread % 2 == 0 ? arena.allocate(BLOCK, Storage.BLOCK) : full;
                    long before = THREADS.getCurrentThreadCpuTime();
                    for (long at = thread; System.nanoTime() - start < NANOSECONDS; at += 5) {
                        long position = at % blocks * BLOCK;
                        moved.addAndGet(
                                thread % 2 == 0 ? storage.read(position, block) : storage.write(position, block));
                    }
                    processor.addAndGet(THREADS.getCurrentThreadCpuTime() - before);
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
        return new double[] {Math.max(1, moved.get()), seconds(start)};
    }

    /// Not zeros, which some disks do not store.
    private static MemorySegment block(Arena arena) {
        MemorySegment block = arena.allocate(BLOCK, Storage.BLOCK);
        for (int i = 0; i < BLOCK; i++) {
            block.set(ValueLayout.JAVA_BYTE, i, (byte) (i * 31 + (i >> 9)));
        }
        return block;
    }
}
