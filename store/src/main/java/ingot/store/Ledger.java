package ingot.store;

import ingot.ir.IngotException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// The rows of an open store and the writes under way: everything that its threads share, under one lock.
///
/// A write takes free extents, or waits for them; when all its parts are on the device the row flips to it, in the
/// order in which the writes of a row began. What the row leaves is dead, and free again after the next commit.
final class Ledger {
    private static final long MAX_FLUSH_BYTES = 64 << 20;

    final ReentrantLock lock = new ReentrantLock();
    final Condition changed = lock.newCondition();

    private final Geometry geometry;
    private final RowTable table;
    private final Extents extents;
    private final Consumer<Write> start;
    private final BitSet[] dirty; // per index copy: pages that are newer in memory
    private final long[] changes; // per tensor
    private final Map<Integer, ArrayDeque<Write>> byRow = new HashMap<>();
    private final SequencedMap<Write, Long> underWay = new LinkedHashMap<>(); // in order of their beginning
    private final List<ArrayDeque<Write>> waiting = new ArrayList<>(); // per size class
    private final Map<Long, Integer> readers = new HashMap<>();
    private final long flushBytes;
    private long unflushed; // bytes written since the last flush began
    private long begun;
    private @Nullable Throwable failure;
    private boolean closed;

    /// `start` hands a write that has its extents to the threads.
    Ledger(Geometry geometry, RowTable table, Extents extents, BitSet[] dirty, Consumer<Write> start) {
        this.geometry = geometry;
        this.table = table;
        this.extents = extents;
        this.dirty = dirty;
        this.start = start;
        long slack = geometry.classes().stream()
                .mapToLong(c -> (long) c.extentBytes() * c.slack())
                .sum();
        flushBytes = Math.min(MAX_FLUSH_BYTES, slack / 4);
        changes = new long[geometry.layout().tensors().size()];
        geometry.classes().forEach(_ -> waiting.add(new ArrayDeque<>()));
    }

    /// Refuses everything after a failed write or flush: what the device then holds is unknown.
    void checkUsable() {
        if (closed) {
            throw new IllegalStateException("the store is closed");
        }
        if (failure != null) {
            throw new IngotException(
                    "store: stopped by an earlier failure (" + failure.getMessage()
                            + "); the last commit is safe: solve the cause and start again",
                    failure);
        }
    }

    RowTable table() {
        return table;
    }

    Extents extents() {
        return extents;
    }

    BitSet dirty(int copy) {
        return dirty[copy];
    }

    long changes(int tensor) {
        lock.lock();
        try {
            return changes[tensor];
        } finally {
            lock.unlock();
        }
    }

    void begin(Write write) {
        lock.lock();
        try {
            checkUsable();
            long newest = table.generation(write.row);
            ArrayDeque<Write> queue = byRow.computeIfAbsent(write.row, _ -> new ArrayDeque<>());
            for (Write earlier : queue) {
                newest = earlier.isUpdate() ? earlier.generation : newest;
            }
            if (write.generation <= newest) {
                throw new IllegalStateException(geometry.name(write.row) + " is at generation " + newest + ", its "
                        + (write.isUpdate() ? "update" : "gradient") + " has generation " + write.generation);
            }
            queue.add(write);
            underWay.put(write, ++begun);
            int sizeClass = geometry.sizeClass(write.row);
            waiting.get(sizeClass).add(write);
            dispatch(sizeClass);
        } finally {
            lock.unlock();
        }
    }

    private void dispatch(int sizeClass) {
        ArrayDeque<Write> queue = waiting.get(sizeClass);
        while (!queue.isEmpty() && extents.take(sizeClass, queue.getFirst().blocks)) {
            start.accept(queue.removeFirst());
        }
        if (wantsCommit(sizeClass)) {
            changed.signalAll();
        }
    }

    private boolean wantsCommit(int sizeClass) {
        return extents.wantsCommit(sizeClass, !waiting.get(sizeClass).isEmpty());
    }

    /// True when a commit would make room that is needed.
    boolean wantsCommit() {
        for (int c = 0; failure == null && c < waiting.size(); c++) {
            if (wantsCommit(c)) {
                return true;
            }
        }
        return false;
    }

    /// The transfer of one part of a write is over.
    void written(Write write, int index, int crc) {
        lock.lock();
        try {
            write.crcs[index] = crc;
            write.left--;
            int sizeClass = geometry.sizeClass(write.row);
            extents.written(sizeClass, 1);
            unflushed += geometry.payloadBytes(write.row);
            if (write.left == 0 && failure == null) {
                flip(write.row);
            } else if (write.left == 0) {
                end(write);
            }
            if (wantsCommit(sizeClass) || wantsFlush()) {
                changed.signalAll();
            }
        } finally {
            lock.unlock();
        }
    }

    /// True when so much was written since the last flush that the next commit would wait long.
    boolean wantsFlush() {
        return failure == null && unflushed > 0 && unflushed >= flushBytes;
    }

    /// A flush begins: it covers what was written before.
    void flushing() {
        unflushed = 0;
    }

    private void flip(int row) {
        ArrayDeque<Write> queue = byRow.get(row);
        while (queue != null && !queue.isEmpty() && queue.getFirst().left == 0) {
            Write write = queue.removeFirst();
            for (int i = 0; i < write.blocks.length; i++) {
                drop(row, write.firstPart + i);
                table.part(row, write.firstPart + i, write.blocks[i], write.crcs[i]);
            }
            if (write.isUpdate()) {
                table.generation(row, write.generation);
                if (table.gradientGeneration(row) <= write.generation) {
                    drop(row, table.parts() - 1);
                    table.part(row, table.parts() - 1, RowTable.NOWHERE, 0);
                    table.gradientGeneration(row, RowTable.NONE);
                }
            } else {
                table.gradientGeneration(row, write.generation);
            }
            dirty[0].set(geometry.page(row));
            dirty[1].set(geometry.page(row));
            changes[geometry.tensor(row)]++;
            underWay.remove(write);
            write.work.end(null);
            changed.signalAll();
        }
        if (queue != null && queue.isEmpty()) {
            byRow.remove(row);
        }
    }

    /// The first values of a row were read from a file: later reads are compared with this checksum.
    void firstRead(int row, int crc) {
        lock.lock();
        try {
            if (table.generation(row) == 0 && table.crc(row, 0) == 0) {
                table.part(row, 0, RowTable.NOWHERE, crc);
                dirty[0].set(geometry.page(row));
                dirty[1].set(geometry.page(row));
            }
        } finally {
            lock.unlock();
        }
    }

    private void drop(int row, int part) {
        long block = table.block(row, part);
        if (block != RowTable.NOWHERE) {
            extents.drop(geometry.sizeClass(row), block);
        }
    }

    /// The number of the newest write: a commit that waits for it waits for all before it.
    long ticket() {
        return begun;
    }

    /// True when every write up to a ticket has flipped its row.
    boolean complete(long ticket) {
        return underWay.isEmpty() || underWay.firstEntry().getValue() > ticket;
    }

    /// Keeps an extent from being written while somebody reads it.
    void hold(long block) {
        readers.merge(block, 1, Integer::sum);
    }

    void letGo(long block) {
        lock.lock();
        try {
            readers.computeIfPresent(block, (_, count) -> count == 1 ? null : count - 1);
        } finally {
            lock.unlock();
        }
    }

    /// Frees what was dead when a commit began that is now durable.
    void release(int[] dead) {
        extents.release(dead, readers::containsKey);
        for (int c = 0; c < dead.length; c++) {
            dispatch(c);
        }
        changed.signalAll();
    }

    /// Ends every write, those that are being transferred when that is over, and refuses all that comes later.
    void fail(Throwable cause) {
        lock.lock();
        try {
            if (failure == null) {
                failure = cause;
            }
            byRow.clear();
            List<Write> idle = new ArrayList<>();
            waiting.forEach(idle::addAll);
            waiting.forEach(ArrayDeque::clear);
            underWay.keySet().stream().filter(write -> write.left == 0).forEach(idle::add);
            idle.forEach(this::end);
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /// Ends a failed write whose memory no thread uses any more.
    private void end(Write write) {
        underWay.remove(write);
        write.work.end(failure);
        changed.signalAll();
    }

    @Nullable
    Throwable failure() {
        return failure;
    }

    /// Refuses new work and waits until all writes are over; false when it was closed before.
    boolean close() {
        lock.lock();
        try {
            if (closed) {
                return false;
            }
            closed = true;
            while (!underWay.isEmpty()) {
                changed.awaitUninterruptibly();
            }
            return true;
        } finally {
            lock.unlock();
        }
    }

    boolean closed() {
        return closed;
    }
}
