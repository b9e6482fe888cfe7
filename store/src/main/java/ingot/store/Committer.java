package ingot.store;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.zip.CRC32C;

/// The thread that makes what happened so far durable: when asked to, and when free extents run low.
///
/// Commit n writes the pages that changed to index n mod 2, which superblock n - 1 does not use, and flushes: now all
/// data and the whole index are on the medium. Then it writes superblock n mod 2 and flushes again. Only then may what
/// the rows have left be overwritten. Reads and writes go on meanwhile; a row that flips in between is in this commit
/// or in the next.
///
/// When much was written since the last flush it flushes ahead, so that the next commit has little to wait for.
final class Committer {
    private static final int BATCH_PAGES = 32;

    private record Request(String note, long ticket, Work work) {}

    private final Storage storage;
    private final Geometry geometry;
    private final Ledger ledger;
    private final long store;
    private final boolean durable;
    private final boolean unchecked;
    private final int[][] pageCrcs; // [copy, page]
    private final MemorySegment pages;
    private final MemorySegment superblock;
    private final ArrayDeque<Request> requests = new ArrayDeque<>();
    private final Thread thread;
    private long sequence;
    private String note;
    private boolean ending;
    private long flushNanos;
    private long bytesWritten;

    Committer(
            Storage storage,
            Header header,
            Geometry geometry,
            Ledger ledger,
            Superblock newest,
            int[] newestPages,
            boolean durable,
            Arena arena) {
        this.storage = storage;
        this.geometry = geometry;
        this.ledger = ledger;
        this.durable = durable;
        store = header.store();
        unchecked = newest.unchecked() || !durable;
        sequence = newest.sequence();
        note = newest.note();
        pageCrcs = new int[2][geometry.pages()];
        pageCrcs[newest.slot()] = newestPages;
        pages = arena.allocate((long) BATCH_PAGES * Blocks.SIZE, Blocks.SIZE);
        superblock = arena.allocate(Geometry.SUPERBLOCK_SLOT, Blocks.SIZE);
        thread = IoThreads.start("ingot-store-commit", this::loop);
    }

    /// Makes all writes begun so far durable, with a note.
    Transfer begin(String newNote) {
        ledger.lock.lock();
        try {
            ledger.checkUsable();
            Superblock.checkNote(newNote);
            Work work = new Work();
            requests.add(new Request(newNote, ledger.ticket(), work));
            ledger.changed.signalAll();
            return work;
        } finally {
            ledger.lock.unlock();
        }
    }

    /// The note of the newest commit.
    String note() {
        ledger.lock.lock();
        try {
            return note;
        } finally {
            ledger.lock.unlock();
        }
    }

    long sequence() {
        ledger.lock.lock();
        try {
            return sequence;
        } finally {
            ledger.lock.unlock();
        }
    }

    long flushNanos() {
        ledger.lock.lock();
        try {
            return flushNanos;
        } finally {
            ledger.lock.unlock();
        }
    }

    long bytesWritten() {
        ledger.lock.lock();
        try {
            return bytesWritten;
        } finally {
            ledger.lock.unlock();
        }
    }

    /// Ends the thread after the commits that were asked for.
    void close() {
        ledger.lock.lock();
        try {
            ending = true;
            ledger.changed.signalAll();
        } finally {
            ledger.lock.unlock();
        }
        IoThreads.join(thread);
    }

    private void loop() {
        while (true) {
            Request request;
            String text;
            boolean commits;
            ledger.lock.lock();
            try {
                while (!ready() && !ledger.wantsCommit() && !ledger.wantsFlush()) {
                    if (ledger.failure() != null) {
                        requests.forEach(r -> r.work().end(ledger.failure()));
                        requests.clear();
                    }
                    if (ending && requests.isEmpty()) {
                        return;
                    }
                    ledger.changed.awaitUninterruptibly();
                }
                commits = ready() || ledger.wantsCommit();
                request = ready() ? requests.removeFirst() : null;
                text = request == null ? note : request.note();
            } finally {
                ledger.lock.unlock();
            }
            Throwable failure = null;
            try {
                if (commits) {
                    commit(text);
                } else {
                    flushAhead();
                }
            } catch (IOException | RuntimeException | Error e) {
                failure = new ingot.ir.IngotException(
                        "store: commit " + (sequence + 1) + " failed: " + e.getMessage()
                                + "; the commit before it is safe",
                        e);
                ledger.fail(failure);
            }
            if (request != null) {
                request.work().end(failure);
            }
        }
    }

    private boolean ready() {
        return ledger.failure() == null
                && !requests.isEmpty()
                && ledger.complete(requests.getFirst().ticket());
    }

    private void flushAhead() throws IOException {
        ledger.lock.lock();
        try {
            ledger.flushing();
        } finally {
            ledger.lock.unlock();
        }
        long nanos = flush();
        ledger.lock.lock();
        try {
            flushNanos += nanos;
        } finally {
            ledger.lock.unlock();
        }
    }

    private void commit(String text) throws IOException {
        long next;
        int[] dead;
        BitSet changed;
        ledger.lock.lock();
        try {
            ledger.flushing();
            next = sequence + 1;
            dead = ledger.extents().dead();
            changed = (BitSet) ledger.dirty((int) (next & 1)).clone();
        } finally {
            ledger.lock.unlock();
        }
        int copy = (int) (next & 1);
        long nanos = 0;
        long bytes = 0;
        for (int page = changed.nextSetBit(0); page >= 0; page = changed.nextSetBit(page)) {
            int end = Math.min(changed.nextClearBit(page), page + BATCH_PAGES);
            MemorySegment batch = pages.asSlice(0, (long) (end - page) * Blocks.SIZE);
            encode(page, end, copy, next, batch);
            Blocks.write(storage, geometry.pagePosition(copy, page), batch);
            bytes += batch.byteSize();
            page = end;
        }
        nanos += flush();
        checkNothingFailed();
        Superblock root = new Superblock(store, next, crc(pageCrcs[copy]), unchecked, System.currentTimeMillis(), text);
        MemorySegment blocks = superblock.asSlice(0, root.encode(superblock));
        Blocks.write(storage, geometry.superblockPosition(root.slot()), blocks);
        bytes += blocks.byteSize();
        nanos += flush();
        ledger.lock.lock();
        try {
            sequence = next;
            note = text;
            flushNanos += nanos;
            bytesWritten += bytes;
            ledger.release(dead);
        } finally {
            ledger.lock.unlock();
        }
    }

    /// After a failed write nothing more is written, and no flush is tried again.
    private void checkNothingFailed() throws IOException {
        ledger.lock.lock();
        try {
            Throwable failure = ledger.failure();
            if (failure != null) {
                throw new IOException(failure.getMessage(), failure);
            }
        } finally {
            ledger.lock.unlock();
        }
    }

    private void encode(int page, int end, int copy, long next, MemorySegment batch) {
        ledger.lock.lock();
        try {
            for (int p = page; p < end; p++) {
                MemorySegment into = batch.asSlice((long) (p - page) * Blocks.SIZE, Blocks.SIZE);
                pageCrcs[copy][p] = IndexPage.encode(ledger.table(), p, store, next, into);
                ledger.dirty(copy).clear(p);
            }
        } finally {
            ledger.lock.unlock();
        }
    }

    private long flush() throws IOException {
        if (!durable) {
            return 0;
        }
        long start = System.nanoTime();
        storage.flush();
        return System.nanoTime() - start;
    }

    /// The checksum of an index: over those of its pages.
    static int crc(int[] pageCrcs) {
        CRC32C crc = new CRC32C();
        byte[] four = new byte[Integer.BYTES];
        for (int page : pageCrcs) {
            MemorySegment.ofArray(four).set(LittleEndian.INT, 0, page);
            crc.update(four);
        }
        return (int) crc.getValue();
    }

    /// Bytes of memory it takes.
    long bytes() {
        return pages.byteSize() + superblock.byteSize() + 2L * Integer.BYTES * geometry.pages();
    }
}
