package ingot.runtime;

import ingot.ir.IngotException;
import ingot.store.Arrival;
import ingot.store.Departure;
import ingot.store.DiskStore;
import ingot.store.StoreLayout;
import ingot.store.Transfer;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Chunks on their way from disk to memory, several at a time, in order: read, update if one is pending, write back.
///
/// Not thread-safe: one thread adds and drains.
final class ChunkPipe {
    private static final int IN_FLIGHT = 32;

    /// Elements that are checked, updated and summed at a time: of all arrays together they fit in a processor's cache.
    static final int PIECE = 1 << 14;

    private final DiskStore store;
    private final StoreLayout layout;
    private final StateUpdates updates;
    private final List<Slot> ring = new ArrayList<>();
    private final ArrayDeque<Job> jobs = new ArrayDeque<>();
    private int next; // slot of the ring
    private long added;
    private long steps;
    private boolean halfway; // an update has begun and did not come to its end

    /// Buffers for one chunk: weight, moments, gradient.
    private static final class Slot {
        final List<MemorySegment> buffers = new ArrayList<>();

        @Nullable
        Job job;

        @Nullable
        Transfer write;
    }

    /// Where the arrays of a chunk lie in memory: the weight, the moments in the order of the layout, the gradient;
    /// null for what only passes through.
    ///
    /// @param present the memory holds the content already
    record Home(@Nullable MemorySegment memory, boolean present) {
        static final Home NONE = new Home(null, false);
    }

    /// A read of an array that the update checks.
    private record Incoming(int part, Arrival arrival) {}

    /// A chunk whose reads are under way, or something to do after the chunks before it.
    private record Job(
            int tensor,
            int chunk,
            boolean update,
            boolean write,
            List<MemorySegment> memory,
            List<Transfer> reads,
            List<Incoming> incoming,
            @Nullable Slot slot,
            Collection<Transfer> writes,
            @Nullable Runnable done) {}

    /// `ring` is memory for as many chunks in flight as it has room for, at least one.
    ChunkPipe(DiskStore store, MemorySegment ring, StateUpdates updates) {
        this.store = store;
        this.updates = updates;
        layout = store.layout();
        long chunkBytes = 4L * layout.chunkElements();
        long slots = ring.byteSize() / slotBytes(layout);
        if (slots < 1) {
            throw new IllegalArgumentException(
                    "ring of " + ring.byteSize() + " bytes, expected at least " + slotBytes(layout));
        }
        for (long i = 0; i < slots; i++) {
            Slot slot = new Slot();
            for (int part = 0; part < parts(layout); part++) {
                slot.buffers.add(ring.asSlice((i * parts(layout) + part) * chunkBytes, chunkBytes));
            }
            this.ring.add(slot);
        }
    }

    /// Bytes of the ring per chunk in flight.
    static long slotBytes(StoreLayout layout) {
        return 4L * layout.chunkElements() * parts(layout);
    }

    private static int parts(StoreLayout layout) {
        return layout.moments().size() + 2;
    }

    /// So many steps are committed: chunks are at this generation, or one update behind.
    void steps(long committed) {
        steps = committed;
    }

    long steps() {
        return steps;
    }

    /// True if the update of a chunk is pending; refuses a generation that cannot be.
    boolean pending(int tensor, int chunk) {
        if (layout.frozen(tensor)) {
            return false;
        }
        long generation = store.generation(tensor, chunk);
        if (generation != steps && generation != steps - 1) {
            throw new IngotException("store: chunk " + chunk + " of "
                    + layout.tensors().get(tensor).name() + " has had " + generation + " updates, expected "
                    + (steps == 0 ? "none" : steps - 1 + " or " + steps)
                    + "; the store is damaged, go back to a copy of the run folder");
        }
        return generation < steps;
    }

    /// Starts what a chunk needs: its weight into memory, its pending update.
    ///
    /// @param write the result of the update goes to disk; false if the same update will be applied once more later in
    /// the step, and written then
    /// @param homes of the weight, the moments and the gradient
    /// @param writes gets the write-back, if there is one; the homes stay untouched until it is done
    void add(int tensor, int chunk, boolean write, List<Home> homes, Collection<Transfer> writes) {
        boolean update = pending(tensor, chunk);
        int needed = update ? homes.size() : 1;
        @Nullable Slot slot = null;
        List<MemorySegment> memory = new ArrayList<>();
        List<Transfer> reads = new ArrayList<>();
        List<Incoming> incoming = new ArrayList<>();
        for (int part = 0; part < needed; part++) {
            Home home = homes.get(part);
            MemorySegment at = home.memory();
            if (at == null) {
                slot = slot == null ? slot() : slot;
                at = slot.buffers.get(part);
            }
            memory.add(at);
            if (!home.present() && !update) {
                reads.add(store.read(tensor, chunk, part, at));
            } else if (!home.present()) {
                Arrival arrival = part <= layout.moments().size()
                        ? store.arrival(tensor, chunk, part, at)
                        : store.gradientArrival(tensor, chunk, steps, at);
                reads.add(arrival);
                incoming.add(new Incoming(part, arrival));
            }
        }
        if (!update && reads.isEmpty()) {
            return;
        }
        Job job = new Job(tensor, chunk, update, write, memory, reads, incoming, slot, writes, null);
        if (slot != null) {
            slot.job = job;
        }
        add(job);
    }

    /// Runs `done` when everything added before is in memory.
    void then(Runnable done) {
        add(new Job(0, 0, false, false, List.of(), List.of(), List.of(), null, List.of(), done));
    }

    private void add(Job job) {
        while (jobs.size() >= IN_FLIGHT) {
            drainOne();
        }
        jobs.add(job);
        added++;
    }

    /// Finishes the oldest chunk; false if there is none.
    boolean drainOne() {
        Job job = jobs.poll();
        if (job == null) {
            return false;
        }
        job.reads.forEach(Transfer::await);
        if (job.update) {
            Departure sums = update(job);
            if (job.write) {
                Transfer write =
                        store.update(job.tensor, job.chunk, steps, job.memory.subList(0, layout.stateParts()), sums);
                job.writes.add(write);
                if (job.slot != null) {
                    job.slot.write = write;
                }
            }
        }
        if (job.slot != null) {
            job.slot.job = null;
        }
        if (job.done != null) {
            job.done.run();
        }
        return true;
    }

    /// Checks what was read, updates it and sums what will be written, in one pass through memory.
    private Departure update(Job job) {
        if (halfway) {
            throw new IllegalStateException("an update failed halfway: what is in memory is neither old nor new");
        }
        halfway = true;
        String name = layout.tensors().get(job.tensor).name();
        long start = (long) job.chunk * layout.chunkElements();
        int elements = layout.elements(job.tensor, job.chunk);
        int parts = layout.stateParts();
        Departure sums = store.departure(job.tensor, job.chunk, steps);
        for (int at = 0; at < elements; at += PIECE) {
            int count = Math.min(PIECE, elements - at);
            List<MemorySegment> pieces = new ArrayList<>();
            for (MemorySegment memory : job.memory) {
                pieces.add(memory.asSlice(4L * at, 4L * count));
            }
            for (Incoming incoming : job.incoming) {
                incoming.arrival().pass(pieces.get(incoming.part()));
            }
            updates.apply(name, start + at, count, pieces.getFirst(), pieces.subList(1, parts), pieces.getLast());
            for (int part = 0; job.write && part < parts; part++) {
                sums.pass(part, pieces.get(part));
            }
        }
        job.incoming.forEach(incoming -> incoming.arrival().check());
        halfway = false;
        return sums;
    }

    /// How many chunks and actions were added so far.
    long added() {
        return added;
    }

    /// Finishes the first `count` of everything that was ever added.
    void drainTo(long count) {
        while (added - jobs.size() < count && drainOne()) {}
    }

    void drain() {
        while (drainOne()) {}
    }

    /// Gives up what was added: waits for reads that are under way, applies nothing.
    void drop() {
        for (Job job : jobs) {
            job.reads.forEach(Transfer::await);
            if (job.slot != null) {
                job.slot.job = null;
            }
        }
        jobs.clear();
    }

    private Slot slot() {
        Slot slot = ring.get(next);
        next = (next + 1) % ring.size();
        while (slot.job != null) {
            drainOne();
        }
        if (slot.write != null) {
            slot.write.await();
            slot.write = null;
        }
        return slot;
    }
}
