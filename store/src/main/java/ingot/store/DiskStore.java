package ingot.store;

import ingot.ir.IngotException;
import ingot.ir.Type;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/// A store on disk: training state far larger than memory, safe against a crash at any moment.
///
/// Rows (chunks of tensors) are read and written asynchronously, on the store's own threads, into memory of the caller:
/// 4 KiB-aligned segments that every thread may use, with room for the payload rounded up to 4 KiB, untouched until the
/// transfer is done. Reads see rows as they are when the read is asked for; a row changes when its update or gradient
/// is done. `commit` makes everything done so far durable. After a crash each row is exactly as it was at some moment
/// before or during the last commit that ended: rows are independent, weight and moments of a row always fit together,
/// and a gradient is there until the update that used it is durable.
///
/// As a `WeightStore` it shows whole tensors in a window of memory, for evaluation and export.
///
/// The file is specified in `docs/store-format.md`.
public final class DiskStore implements WeightStore {
    private final StoreFile file;
    private final Options options;
    private final Geometry geometry;
    private final StoreLayout layout;
    private final Ledger ledger;
    private final Committer committer;
    private final IoThreads threads;
    private final TensorWindow window;
    private final boolean checked;
    private final long firstCommit;
    private final Arena arena = Arena.ofShared();
    private final AtomicLong bytesRead = new AtomicLong();
    private final AtomicLong bytesWritten = new AtomicLong();

    /// How a store works; nothing of this is recorded in it.
    ///
    /// @param initial the weights that were never updated
    /// @param window memory for the tensors that are pinned, 4 KiB aligned; none: nothing can be pinned
    /// @param ioThreads threads that read and write
    /// @param durable false: no flushes and no checksums, to measure what they cost; a crash then loses the store
    /// @param slackBytes room for what is written before the old is free, when a store is made; negative: a part of the
    ///        state between 64 MiB and 1/32
    /// @param storage opens the device below
    /// @param warnings learns of damage that the store can do without
    /// @param progress learns how far the creation is
    public record Options(
            Initial initial,
            MemorySegment window,
            int ioThreads,
            boolean durable,
            long slackBytes,
            Storage.Opener storage,
            Consumer<String> warnings,
            Progress progress) {
        static final long SLACK = 64 << 20;

        public Options {
            if (ioThreads < 1 || ioThreads > 64) {
                throw new IllegalArgumentException(ioThreads + " I/O threads, expected 1 to 64");
            }
            if (window.address() % Blocks.SIZE != 0) {
                throw new IllegalArgumentException("the window does not begin at a multiple of " + Blocks.SIZE);
            }
        }

        /// Durable, with four threads and no window, in a file.
        public static Options of(Initial initial, Consumer<String> warnings) {
            return new Options(
                    initial, MemorySegment.NULL, 4, true, -1, Storage.Opener.files(warnings), warnings, Progress.NONE);
        }

        public Options withWindow(MemorySegment memory) {
            return new Options(initial, memory, ioThreads, durable, slackBytes, storage, warnings, progress);
        }

        public Options withThreads(int count) {
            return new Options(initial, window, count, durable, slackBytes, storage, warnings, progress);
        }

        public Options withDurability(boolean on) {
            return new Options(initial, window, ioThreads, on, slackBytes, storage, warnings, progress);
        }

        public Options withSlack(long bytes) {
            return new Options(initial, window, ioThreads, durable, bytes, storage, warnings, progress);
        }

        public Options withStorage(Storage.Opener opener) {
            return new Options(initial, window, ioThreads, durable, slackBytes, opener, warnings, progress);
        }

        public Options withProgress(Progress listener) {
            return new Options(initial, window, ioThreads, durable, slackBytes, storage, warnings, listener);
        }
    }

    /// What a store has done since it was opened.
    public record Statistics(long bytesRead, long bytesWritten, long commits, double flushSeconds) {}

    private DiskStore(StoreFile file, Options options, Root root) {
        this.file = file;
        this.options = options;
        geometry = file.geometry();
        layout = geometry.layout();
        Superblock newest = root.whole();
        checked = options.durable() && !newest.unchecked();
        if (options.durable() && newest.unchecked()) {
            throw new IngotException(
                    "store: " + file.path() + " was written without checksums and flushes, to measure; "
                            + "it cannot go on as a durable store: start anew in another folder");
        }
        Extents extents = Extents.of(geometry, root.table(), file.path().toString());
        BitSet[] dirty = {new BitSet(), new BitSet()};
        dirty[1 - root.slot()].set(0, geometry.pages());
        ledger = new Ledger(geometry, root.table(), extents, dirty, this::start);
        firstCommit = newest.sequence();
        threads = new IoThreads(options.ioThreads());
        committer = new Committer(
                file.storage(), file.header(), geometry, ledger, newest, root.pageCrcs(), options.durable(), arena);
        window = new TensorWindow(this, options.window());
    }

    /// Makes a store in a folder that has none, and reserves all the disk it will ever use. `identity` is the caller's
    /// text for what a store must agree on, a line per item; `note` belongs to the state before the first update.
    public static DiskStore create(Path folder, StoreLayout layout, String identity, String note, Options options) {
        return over(StoreFile.create(folder, layout, identity, note, options), options);
    }

    /// Opens a store at its newest commit; refuses one of another model, identity, chunk size or version.
    public static DiskStore open(Path folder, StoreLayout expected, String identity, Options options) {
        StoreFile file = StoreFile.open(folder, options.storage());
        try {
            file.header().check(expected, identity, file.path().toString());
        } catch (IngotException e) {
            file.close();
            throw e;
        }
        return over(file, options);
    }

    /// True when a folder has a store whose creation came to an end.
    public static boolean exists(Path folder, Storage.Opener opener) {
        return StoreFile.exists(folder, opener);
    }

    /// What a store belongs to, from its header alone: the identity it was made with.
    public static String identity(Path folder, Storage.Opener opener) {
        try (StoreFile file = StoreFile.open(folder, opener)) {
            return file.header().identity();
        }
    }

    /// Bytes of disk a store will use.
    public static long diskBytes(StoreLayout layout) {
        return StoreFile.header(layout, "", -1).geometry().fileBytes();
    }

    /// Writes the newest commit once more, over whatever superblock and index are not its own.
    static void rewrite(StoreFile file, Root root) {
        Options options = Options.of((_, _, _) -> {}, _ -> {}).withThreads(1);
        try (DiskStore store = new DiskStore(file, root.unchecked() ? options.withDurability(false) : options, root)) {
            store.commit();
        }
    }

    private static DiskStore over(StoreFile file, Options options) {
        DiskStore store = null;
        try {
            Root root = file.newest(options.warnings());
            if (options.durable()) {
                // The process before may have died between the last write and its flush.
                file.storage().flush();
            }
            store = new DiskStore(file, options, root);
            return store;
        } catch (IOException e) {
            throw new IngotException("store: cannot read " + file.path() + ": " + StoreLock.reason(e), e);
        } finally {
            if (store == null) {
                file.close();
            }
        }
    }

    public StoreLayout layout() {
        return layout;
    }

    /// The note of the newest commit.
    public String note() {
        return committer.note();
    }

    /// The number of the newest commit.
    public long sequence() {
        return committer.sequence();
    }

    /// Updates that weight and moments of a row have seen; 0: they have their first values.
    public long generation(int tensor, int chunk) {
        int row = geometry.row(tensor, chunk);
        ledger.lock.lock();
        try {
            return ledger.table().generation(row);
        } finally {
            ledger.lock.unlock();
        }
    }

    /// The update that a row's gradient is for; 0: it has none.
    public long gradientGeneration(int tensor, int chunk) {
        int row = geometry.row(tensor, chunk);
        ledger.lock.lock();
        try {
            return ledger.table().gradientGeneration(row);
        } finally {
            ledger.lock.unlock();
        }
    }

    /// Counts the changes of a tensor's rows.
    long changes(int tensor) {
        return ledger.changes(tensor);
    }

    /// Reads weight (part 0) or a moment (from part 1 on) of a row.
    public Transfer read(int tensor, int chunk, int part, MemorySegment into) {
        if (part < 0 || part >= layout.stateParts()) {
            throw new IllegalArgumentException("part " + part + " of " + layout.stateParts());
        }
        return begin(geometry.row(tensor, chunk), part, RowTable.NONE, into, false);
    }

    /// Reads the gradient of a row; refuses when it is not the one for update `generation`.
    public Transfer readGradient(int tensor, int chunk, long generation, MemorySegment into) {
        if (generation <= RowTable.NONE) {
            throw new IllegalArgumentException("a gradient of generation " + generation);
        }
        return begin(geometry.row(tensor, chunk), layout.stateParts(), generation, into, false);
    }

    /// `read`, to be checked by the reader.
    public Arrival arrival(int tensor, int chunk, int part, MemorySegment into) {
        return begin(geometry.row(tensor, chunk), part, RowTable.NONE, into, true);
    }

    /// `readGradient`, to be checked by the reader.
    public Arrival gradientArrival(int tensor, int chunk, long generation, MemorySegment into) {
        return begin(geometry.row(tensor, chunk), layout.stateParts(), generation, into, true);
    }

    private Arrival begin(int row, int part, long asked, MemorySegment into, boolean byReader) {
        int payload = geometry.payloadBytes(row);
        checkMemory(into, payload, row);
        ledger.lock.lock();
        try {
            ledger.checkUsable();
            long generation = ledger.table().generationOf(row, part);
            if (asked != RowTable.NONE && generation != asked) {
                throw new IngotException("store: " + geometry.name(row) + " has "
                        + (generation == RowTable.NONE ? "no gradient" : "the gradient of update " + generation)
                        + ", expected the one of update " + asked + "; the row is at generation "
                        + ledger.table().generation(row));
            }
            long block = ledger.table().block(row, part);
            int crc = ledger.table().crc(row, part);
            ledger.hold(block);
            Work work = new Work();
            threads.submit(() -> {
                Throwable failure = null;
                try {
                    if (block != RowTable.NOWHERE) {
                        fetch(row, part, block, into, payload);
                        if (checked && !byReader) {
                            check(row, part, generation, block, crc, into.asSlice(0, payload));
                        }
                    } else if (part == 0) {
                        fillInitial(row, crc, into.asSlice(0, payload));
                    } else {
                        into.asSlice(0, payload).fill((byte) 0);
                    }
                } catch (RuntimeException | Error e) {
                    failure = e;
                } finally {
                    ledger.letGo(block);
                    work.end(failure);
                }
            });
            boolean open = checked && byReader && block != RowTable.NOWHERE;
            return new Arrival(
                    work,
                    open
                            ? new Arrival.Expected(
                                    new Checksum(
                                            file.header().store(),
                                            geometry.tensor(row),
                                            geometry.chunk(row),
                                            part,
                                            generation),
                                    crc,
                                    found -> damaged(row, part, generation, block, crc, found))
                            : null);
        } finally {
            ledger.lock.unlock();
        }
    }

    private void fillInitial(int row, int crc, MemorySegment into) {
        String tensor = layout.tensors().get(geometry.tensor(row)).name();
        options.initial().fill(tensor, layout.start(geometry.chunk(row)), into);
        String source = options.initial().source(tensor);
        if (source.isEmpty()) {
            return;
        }
        bytesRead.addAndGet(into.byteSize());
        if (checked) {
            int found = checksum(row, 0, 0, into);
            if (crc == 0) {
                ledger.firstRead(row, found);
            } else if (found != crc) {
                throw new IngotException("store: " + geometry.name(row) + " has changed in " + source + ": checksum "
                        + Integer.toHexString(found) + ", it was " + Integer.toHexString(crc)
                        + " when this run first read it; put the file back as it was, or start anew in another folder");
            }
        }
    }

    private void fetch(int row, int part, long block, MemorySegment into, int payload) {
        String what = geometry.name(row) + " " + layout.part(part);
        MemorySegment blocks = into.asSlice(0, Storage.roundUp(payload));
        try {
            Blocks.read(file.storage(), block * Blocks.SIZE, blocks);
        } catch (IOException e) {
            throw new IngotException(
                    "store: cannot read " + what + " at byte " + block * Blocks.SIZE + " of " + file.path() + ": "
                            + StoreLock.reason(e) + "; see `ingot store verify`",
                    e);
        }
        bytesRead.addAndGet(blocks.byteSize());
    }

    private void check(int row, int part, long generation, long block, int crc, MemorySegment payload) {
        int found = checksum(row, part, generation, payload);
        if (found != crc) {
            throw damaged(row, part, generation, block, crc, found);
        }
    }

    private IngotException damaged(int row, int part, long generation, long block, int expected, int found) {
        return new IngotException("store: " + geometry.name(row) + " " + layout.part(part) + " (generation "
                + generation + ", byte " + block * Blocks.SIZE
                + " of " + file.path() + ") is damaged: checksum " + Integer.toHexString(found) + ", expected "
                + Integer.toHexString(expected)
                + "; the disk lost or changed it: see `ingot store verify`, go back to an exported copy");
    }

    private int checksum(int row, int part, long generation, MemorySegment payload) {
        return Checksum.of(file.header().store(), geometry.tensor(row), geometry.chunk(row), part, generation, payload);
    }

    /// Writes weight and moments of a row after update `generation`. When the transfer is done the row has them, and
    /// its gradient, used by this update, is gone.
    public Transfer update(int tensor, int chunk, long generation, List<MemorySegment> state) {
        return update(tensor, chunk, generation, state, new Departure(List.of()));
    }

    /// The same with the checksums that `state` has passed.
    public Transfer update(int tensor, int chunk, long generation, List<MemorySegment> state, Departure checksums) {
        if (state.size() != layout.stateParts()) {
            throw new IllegalArgumentException(state.size() + " parts, expected " + layout.stateParts());
        }
        return write(geometry.row(tensor, chunk), 0, generation, state, checksums.values());
    }

    /// For the checksums of what update `generation` of a row will write.
    public Departure departure(int tensor, int chunk, long generation) {
        List<Checksum> parts = new ArrayList<>();
        for (int part = 0; checked && part < layout.stateParts(); part++) {
            parts.add(new Checksum(file.header().store(), tensor, chunk, part, generation));
        }
        return new Departure(parts);
    }

    /// Writes the gradient of a row for update `generation`, in place of any other.
    public Transfer gradient(int tensor, int chunk, long generation, MemorySegment gradient) {
        return write(geometry.row(tensor, chunk), layout.stateParts(), generation, List.of(gradient), new int[0]);
    }

    private Transfer write(int row, int firstPart, long generation, List<MemorySegment> sources, int[] crcs) {
        int payload = geometry.payloadBytes(row);
        if (layout.frozen(geometry.tensor(row))) {
            throw new IllegalArgumentException(geometry.name(row) + " is frozen: it is never written");
        }
        sources.forEach(source -> checkMemory(source, payload, row));
        Write write = new Write(row, firstPart, generation, sources, crcs);
        ledger.begin(write);
        return write.work;
    }

    /// Called by the ledger when a write has its extents.
    private void start(Write write) {
        for (int i = 0; i < write.blocks.length; i++) {
            int index = i;
            threads.submit(() -> {
                int crc = 0;
                try {
                    crc = put(write, index);
                } catch (IOException | RuntimeException | Error e) {
                    ledger.fail(new IngotException(
                            "store: cannot write " + geometry.name(write.row) + " "
                                    + layout.part(write.firstPart + index) + " at byte "
                                    + write.blocks[index] * Blocks.SIZE + " of " + file.path() + ": " + e.getMessage(),
                            e));
                } finally {
                    ledger.written(write, index, crc);
                }
            });
        }
    }

    private int put(Write write, int index) throws IOException {
        if (ledger.failure() != null) {
            return 0;
        }
        int payload = geometry.payloadBytes(write.row);
        MemorySegment blocks = write.sources.get(index).asSlice(0, Storage.roundUp(payload));
        blocks.asSlice(payload).fill((byte) 0);
        int crc = checked && !write.summed
                ? checksum(write.row, write.firstPart + index, write.generation, blocks.asSlice(0, payload))
                : write.crcs[index];
        Blocks.write(file.storage(), write.blocks[index] * Blocks.SIZE, blocks);
        bytesWritten.addAndGet(blocks.byteSize());
        return crc;
    }

    private void checkMemory(MemorySegment memory, int payload, int row) {
        if (!memory.isNative() || memory.address() % Blocks.SIZE != 0 || memory.byteSize() < Storage.roundUp(payload)) {
            throw new IllegalArgumentException("memory for " + geometry.name(row) + ": expected "
                    + Storage.roundUp(payload) + " native bytes at a multiple of " + Blocks.SIZE + ", got " + memory);
        }
    }

    /// Waits until all transfers begun before are done, and makes them durable together with the note, atomically.
    public void commit(String note) {
        beginCommit(note).await();
    }

    /// The same without waiting. Until it is done, a commit that the store makes by itself, to make room, still carries
    /// the note before: rows that change meanwhile must fit to either.
    public Transfer beginCommit(String note) {
        return committer.begin(note);
    }

    @Override
    public void commit() {
        commit(note());
    }

    public Statistics statistics() {
        return new Statistics(
                bytesRead.get(),
                bytesWritten.get() + committer.bytesWritten(),
                committer.sequence() - firstCommit,
                committer.flushNanos() * 1e-9);
    }

    @Override
    public List<Key> keys() {
        return window.keys();
    }

    @Override
    public Type type(Key key) {
        return window.type(key);
    }

    @Override
    public void prefetch(Collection<Key> keys) {
        window.prefetch(keys);
    }

    /// Brings a whole tensor into the window. It shows the tensor as it is now: a later update does not reach it.
    @Override
    public MemorySegment pin(Key key) {
        return window.pin(key);
    }

    @Override
    public void release(Key key, boolean changed) {
        window.release(key, changed);
    }

    @Override
    public <E extends Exception> void read(Key key, Reader<E> reader) throws E {
        window.read(key, reader);
    }

    /// A view of the store through other memory than the window it was opened with; closing it leaves the store open.
    public WeightStore through(MemorySegment memory) {
        return new TensorWindow(this, memory);
    }

    /// Memory of the store itself and its window; the memory of transfers is the caller's.
    @Override
    public long residentBytes() {
        return ledger.table().bytes()
                + ledger.extents().bytes()
                + committer.bytes()
                + options.window().byteSize();
    }

    /// Ends the transfers under way. What was not committed is lost.
    @Override
    public void close() {
        if (!ledger.close()) {
            return;
        }
        try (file;
                arena) {
            committer.close();
            threads.close();
        }
    }
}
