package ingot.store;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongConsumer;
import java.util.random.RandomGenerator;
import java.util.random.RandomGeneratorFactory;

/// A device in memory with the faults of real ones: what was not flushed may be lost, torn between sectors and
/// reordered when the power fails; operations fail, stop halfway, or do nothing.
final class FaultyStorage implements Storage {
    static final int SECTOR = 512;

    /// What changes a device.
    sealed interface Operation {
        record Write(long position, byte[] data) implements Operation {}

        record Flush() implements Operation {}
    }

    /// Which operations fail, by their number from 0 on; -1: none.
    static final class Faults {
        int read = -1;
        int write = -1;
        int flush = -1;
        /// From this write or flush on everything fails.
        int powerOff = -1;
        /// One transfer in four moves less than it should.
        boolean transfersAreShort;
        /// One read in sixteen takes its time.
        boolean readsAreSlow;
        /// Flushes take longer than writes.
        boolean flushesAreSlow;
    }

    final Faults faults = new Faults();

    private byte[] seen; // what reads see
    private byte[] medium; // what survives a power failure
    private final List<Operation> log = new ArrayList<>();
    private final List<Operation.Write> unflushed = new ArrayList<>();
    private final RandomGenerator random = random(1);
    private int reads;
    private int writes;
    private int flushes;
    private boolean flushFailed;
    private final List<Operation> afterFailedFlush = new ArrayList<>();

    FaultyStorage() {
        this(new byte[0]);
    }

    FaultyStorage(byte[] image) {
        seen = image.clone();
        medium = image.clone();
    }

    /// A device whose last writes are visible, but not flushed.
    FaultyStorage(byte[] medium, List<Operation.Write> unflushed) {
        this(medium);
        for (Operation.Write write : unflushed) {
            apply(write, seen);
            this.unflushed.add(write);
        }
    }

    static RandomGenerator random(long seed) {
        return RandomGeneratorFactory.of("L64X128MixRandom").create(seed);
    }

    @Override
    public int read(long position, MemorySegment into) throws IOException {
        if (faults.readsAreSlow && ThreadLocalRandom.current().nextInt(16) == 0) {
            LockSupport.parkNanos(20_000_000);
        }
        return readNow(position, into);
    }

    private synchronized int readNow(long position, MemorySegment into) throws IOException {
        checkPower();
        if (reads++ == faults.read) {
            throw new IOException("Input/output error");
        }
        if (position >= seen.length) {
            return -1;
        }
        int n = length(Math.min(into.byteSize(), seen.length - position));
        MemorySegment.copy(MemorySegment.ofArray(seen), position, into, 0, n);
        return n;
    }

    @Override
    public synchronized int write(long position, MemorySegment from) throws IOException {
        checkPower();
        if (writes++ == faults.write) {
            throw new IOException("Input/output error");
        }
        int n = length(from.byteSize());
        byte[] data = from.asSlice(0, n).toArray(java.lang.foreign.ValueLayout.JAVA_BYTE);
        System.arraycopy(data, 0, seen, (int) position, n);
        Operation.Write write = new Operation.Write(position, data);
        log.add(write);
        unflushed.add(write);
        if (flushFailed) {
            afterFailedFlush.add(write);
        }
        return n;
    }

    private int length(long bytes) {
        return faults.transfersAreShort && random.nextInt(4) == 0
                ? (int) random.nextLong(bytes / SECTOR) * SECTOR
                : (int) bytes;
    }

    @Override
    public void flush() throws IOException {
        if (faults.flushesAreSlow) {
            LockSupport.parkNanos(2_000_000);
        }
        flushNow();
    }

    private synchronized void flushNow() throws IOException {
        checkPower();
        if (flushes++ == faults.flush) {
            // What Linux does: the data is gone, and the next flush would succeed.
            flushFailed = true;
            unflushed.clear();
            throw new IOException("Input/output error");
        }
        unflushed.forEach(write -> apply(write, medium));
        unflushed.clear();
        log.add(new Operation.Flush());
        if (flushFailed) {
            afterFailedFlush.add(new Operation.Flush());
        }
    }

    private void checkPower() throws IOException {
        if (faults.powerOff >= 0 && writes + flushes >= faults.powerOff) {
            throw new IOException("no power");
        }
    }

    private static void apply(Operation.Write write, byte[] image) {
        System.arraycopy(write.data(), 0, image, (int) write.position(), write.data().length);
    }

    @Override
    public synchronized void allocate(long bytes, LongConsumer progress) throws IOException {
        checkPower();
        seen = Arrays.copyOf(seen, (int) bytes);
        medium = Arrays.copyOf(medium, (int) bytes);
        progress.accept(bytes);
    }

    @Override
    public synchronized long size() {
        return seen.length;
    }

    @Override
    public void close() {
        // the device outlives its user
    }

    Storage.Opener opener() {
        return new Opener() {
            @Override
            public Storage open(Path file, boolean create) {
                return FaultyStorage.this;
            }

            @Override
            public boolean exists(Path file) {
                return seen.length > 0;
            }

            @Override
            public void delete(Path file) throws IOException {
                checkPower();
                seen = new byte[0];
                medium = new byte[0];
            }

            @Override
            public long freeBytes(Path folder) {
                return Integer.MAX_VALUE;
            }
        };
    }

    /// Writes and flushes so far.
    synchronized List<Operation> log() {
        return List.copyOf(log);
    }

    synchronized int writesAndFlushes() {
        return writes + flushes;
    }

    synchronized int reads() {
        return reads;
    }

    /// What came after a failed flush.
    synchronized List<Operation> afterFailedFlush() {
        return List.copyOf(afterFailedFlush);
    }

    /// What reads see now.
    synchronized byte[] image() {
        return seen.clone();
    }

    /// The medium after a power failure in which the chosen sectors of what was not flushed survive: bit `i` stands for
    /// the i-th sector written since the last flush.
    synchronized byte[] afterPowerFailure(BitSet survivors) {
        return survive(medium, unflushed, survivors);
    }

    synchronized int unflushedSectors() {
        return sectors(unflushed);
    }

    static int sectors(List<Operation.Write> writes) {
        return writes.stream()
                .mapToInt(w -> Math.ceilDiv(w.data().length, SECTOR))
                .sum();
    }

    static byte[] survive(byte[] medium, List<Operation.Write> unflushed, BitSet survivors) {
        byte[] image = medium.clone();
        int sector = 0;
        for (Operation.Write write : unflushed) {
            for (int at = 0; at < write.data().length; at += SECTOR, sector++) {
                if (survivors.get(sector)) {
                    int n = Math.min(SECTOR, write.data().length - at);
                    System.arraycopy(write.data(), at, image, (int) write.position() + at, n);
                }
            }
        }
        return image;
    }
}
