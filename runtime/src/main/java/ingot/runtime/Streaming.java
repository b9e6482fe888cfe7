package ingot.runtime;

import ingot.compiler.Program;
import ingot.ir.IngotException;
import ingot.store.DiskStore;
import ingot.store.Storage;
import ingot.store.StoreLayout;
import ingot.store.Transfer;
import ingot.store.WeightStore.Key;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;

/// A model on disk that passes through a window of memory.
///
///     disk ─ read ──→ window: weights of stage l+1 ─ update ─→ write ──→ disk        one thread, ahead of the program
///                     window: weights of stage l                                     the program computes
///                     window: gradients of stage l−1 ────────→ write ──→ disk        the store's threads
///
/// One thread walks ahead of the program in the order of the plan. It waits until the memory of the next stay is free,
/// reads the weight in chunks, applies the pending update chunk by chunk (moments and gradient pass through a small
/// ring of buffers) and writes the result. So a stage's optimizer step happens while the stage before it computes.
///
/// Forward is a quarter to a third of a step's computation, but would be three quarters of its reading and writing. So
/// for a part of the weights the forward applies the update only in memory, and the backward, which reads the weight
/// again anyway, applies the same update once more and writes it. How large that part is follows from where the program
/// waited in the steps before.
///
/// Which update is pending is a property of the data: after S committed steps every chunk is at generation S, or at S −
/// 1 with a gradient of generation S. Anything else is damage.
public final class Streaming implements Residency {
    /// Elements that an update gets at a time, if a chunk has so many.
    public static final int PIECE = ChunkPipe.PIECE;

    private static final double GOLDEN = 0.618;
    private static final double STEP = 0.125;

    /// A wait of less than this part of a run is no reason to do more work.
    private static final double NOTICED = 0.02;

    private final Program program;
    private final WindowPlan plan;
    private final DiskStore store;
    private final StoreLayout layout;
    private final MemorySegment window;
    private final StateUpdates updates;
    private final ChunkPipe pipe;
    private final Thread thread = new Thread(this::stream, "ingot-stream");

    private final List<Place> places = new ArrayList<>(); // of the plan's stays
    private final Map<Key, Place> pinned = new LinkedHashMap<>();
    private final List<TreeMap<Integer, String>> names = new ArrayList<>(); // of a tensor's parts, by first chunk
    private final List<List<Place>> touched = new ArrayList<>(); // of every visit
    private final List<Task> tasks = new ArrayList<>(); // of the thread, per run
    private long begun; // runs
    private long walked; // runs that the thread has finished or given up
    private boolean abandoned;
    private boolean closed;
    private boolean interrupted; // of the caller's thread, while it waited
    private boolean writing; // the thread waits for memory that is still being written to disk
    private @Nullable Throwable failure;
    private volatile double late = 0.5; // part of the updates that are written in the backward; changes between runs
    private long beginning; // of the run under way
    private long forwardStall; // of it
    private long backwardStall;
    private long readStall;
    private long writeStall;

    /// Memory of one stay, or of one pinned array. Its flags belong to the lock of `Streaming.this`.
    private final class Place {
        final Key key;
        final boolean forGood;
        final int tensor;
        final int firstChunk; // of the tensor: more than 0 in a tile
        final int endChunk;
        final long start; // element of the tensor
        final MemorySegment memory;
        final long offset;
        final List<Place> neighbours = new ArrayList<>(); // share bytes with it
        final List<Place> earlier = new ArrayList<>(); // stays of the same array
        final Collection<Transfer> writes = new ConcurrentLinkedQueue<>();
        long added; // jobs in the pipe when the last of this place was added
        double share; // late if the late part is larger
        boolean last = true; // no later stay of the same array
        boolean taken; // holds its memory
        boolean ready; // the program may use it
        boolean present; // pinned: its content is the newest

        Place(Key key, long offset, boolean forGood) {
            this.key = key;
            this.forGood = forGood;
            this.offset = offset;
            Program.Tile tile = program.tile(key.tensor());
            tensor = layout.index(tile.weight());
            if (tile.first() % layout.chunkElements() != 0) {
                throw new IllegalStateException(key + " begins inside of a chunk, at element " + tile.first());
            }
            start = tile.first();
            firstChunk = Math.toIntExact(start / layout.chunkElements());
            endChunk = Math.toIntExact(Math.ceilDiv(start + tile.elements(), layout.chunkElements()));
            memory = window.asSlice(offset, 4 * tile.elements());
        }

        /// Memory of a chunk, up to the end of its last page.
        MemorySegment chunk(int chunk) {
            long bytes = 4L * layout.elements(tensor, chunk);
            long at = 4L * (chunk - firstChunk) * layout.chunkElements();
            return window.asSlice(offset + at, Storage.roundUp(bytes));
        }

        boolean isWeight() {
            return key.part().equals(Key.WEIGHT);
        }

        void awaitWrites() {
            writes.forEach(Transfer::await);
            writes.removeIf(Transfer::done);
        }
    }

    /// What the thread does at a point of its walk: takes the memory of a stay, brings a weight up to date.
    private record Task(Place place, int start, int first) {}

    /// `program` is what runs, `window` is what the plan asks for, `ring` has room for some chunks with all their arrays (`ringBytes`); both
    /// are 4 KiB aligned.
    public Streaming(
            Program program,
            WindowPlan plan,
            DiskStore store,
            MemorySegment window,
            MemorySegment ring,
            StateUpdates updates) {
        this.program = program;
        this.plan = plan;
        this.store = store;
        this.layout = store.layout();
        List<Visit> visits = Visit.of(program);
        this.window = window;
        this.updates = updates;
        plan.pinned().forEach((key, offset) -> pinned.put(key, new Place(key, offset, true)));
        for (WindowPlan.Stay stay : plan.stays()) {
            Place place = new Place(stay.key(), stay.offset(), false);
            for (int i = 0; i < places.size(); i++) {
                if (stay.shares(plan.stays().get(i))) {
                    place.neighbours.add(places.get(i));
                    places.get(i).neighbours.add(place);
                }
                if (stay.key().equals(plan.stays().get(i).key())) {
                    place.earlier.add(places.get(i));
                    places.get(i).last = false;
                }
            }
            places.add(place);
            tasks.add(new Task(place, stay.start(), stay.first()));
        }
        Map<Place, Integer> firstTouch = new HashMap<>();
        for (int tensor = 0; tensor < layout.tensors().size(); tensor++) {
            names.add(new TreeMap<>(Map.of(0, layout.tensors().get(tensor).name())));
        }
        program.tiles()
                .forEach((name, tile) -> names.get(layout.index(tile.weight()))
                        .put(Math.toIntExact(tile.first() / layout.chunkElements()), name));
        for (Visit visit : visits) {
            touched.add(visit.touches().stream()
                    .map(touch -> place(visit.index(), touch.key()))
                    .toList());
            touched.getLast().forEach(place -> firstTouch.putIfAbsent(place, visit.index()));
        }
        firstTouch.forEach((place, visit) -> {
            if (place.forGood && place.isWeight()) {
                tasks.add(new Task(place, Math.max(0, visit - 1), visit));
            }
        });
        spread();
        tasks.sort(Comparator.comparingInt(Task::start)
                .thenComparingInt(Task::first)
                .thenComparingInt(task -> task.place().tensor));
        pipe = new ChunkPipe(store, ring, updates);
        thread.setDaemon(true);
        thread.start();
    }

    /// Gives every weight its share so that any late part is spread over all stages.
    private void spread() {
        for (int i = 0; i < places.size(); i++) {
            Place place = places.get(i);
            int visit = plan.stays().get(i).first();
            place.share = place.earlier.isEmpty() ? visit * GOLDEN % 1 : place.earlier.getFirst().share;
        }
    }

    /// Bytes of a ring for so many chunks in flight.
    public static long ringBytes(StoreLayout layout, int chunks) {
        return chunks * ChunkPipe.slotBytes(layout);
    }

    private Place place(int visit, Key key) {
        Place fixed = pinned.get(key);
        if (fixed != null) {
            return fixed;
        }
        for (int i = 0; i < places.size(); i++) {
            WindowPlan.Stay stay = plan.stays().get(i);
            if (stay.key().equals(key) && stay.first() <= visit && visit <= stay.last()) {
                return places.get(i);
            }
        }
        throw new IllegalStateException("visit " + visit + " touches " + key + ", which the plan does not have");
    }

    /// So many steps are committed; their last update is pending where a chunk is one generation behind.
    public synchronized void committed(long steps) {
        pipe.steps(steps);
    }

    @Override
    public synchronized void begin() {
        check();
        updates.begin();
        balance();
        pinned.values().forEach(place -> place.ready = !place.isWeight());
        abandoned = false;
        begun++;
        notifyAll();
    }

    @Override
    public synchronized void load(Visit visit, long[] addresses) {
        List<Place> needed = touched.get(visit.index());
        for (int i = 0; i < addresses.length; i++) {
            Place place = needed.get(i);
            while (place.isWeight() ? !place.ready : !place.taken && !place.forGood) {
                check();
                stall(visit);
            }
            addresses[i] = place.memory.address();
        }
        restoreInterrupt();
    }

    /// Moves work from the forward to the backward if the program waited there, and back if not: what is late is read
    /// and updated twice.
    private void balance() {
        long now = System.nanoTime();
        if (forwardStall > Math.max(1.25 * backwardStall, NOTICED * (now - beginning))) {
            late = Math.min(1, late + STEP);
        } else {
            late = Math.max(0, late - STEP);
        }
        beginning = now;
        forwardStall = 0;
        backwardStall = 0;
    }

    private void stall(Visit visit) {
        long start = System.nanoTime();
        boolean write = writing;
        pause();
        long time = System.nanoTime() - start;
        if (visit.index() > 0 && visit.index() <= touched.size() / 2) {
            forwardStall += time;
        } else if (visit.index() > 0) { // the first one waits for its reads, wherever updates are written
            backwardStall += time;
        }
        if (write) {
            writeStall += time;
        } else {
            readStall += time;
        }
    }

    @Override
    public void stored(Visit visit) {
        for (Place place : touched.get(visit.index())) {
            if (!place.isWeight() && isLastTouch(visit, place)) {
                updates.complete(layout.tensors().get(place.tensor).name(), place.start, place.memory);
                // an update uses up the gradient before it, so it comes first
                places.stream()
                        .filter(other -> other.key.tensor().equals(place.key.tensor()))
                        .forEach(Place::awaitWrites);
                List<Transfer> writes = new ArrayList<>();
                for (int chunk = place.firstChunk; chunk < place.endChunk; chunk++) {
                    writes.add(store.gradient(place.tensor, chunk, pipe.steps() + 1, place.chunk(chunk)));
                }
                synchronized (this) {
                    place.writes.addAll(writes);
                    place.present = true;
                }
            }
        }
    }

    private boolean isLastTouch(Visit visit, Place place) {
        return touched.subList(visit.index() + 1, touched.size()).stream().noneMatch(later -> later.contains(place));
    }

    @Override
    public synchronized void free(Visit visit) {
        for (int i = 0; i < places.size(); i++) {
            if (plan.stays().get(i).last() == visit.index()) {
                places.get(i).taken = false;
                places.get(i).ready = false;
            }
        }
        notifyAll();
    }

    @Override
    public void abandon() {
        synchronized (this) {
            abandoned = true;
            notifyAll();
            while (walked < begun && failure == null) {
                pause();
            }
            restoreInterrupt();
        }
        park();
    }

    /// Applies every pending update; returns when the results are on their way to disk. Not while a run is under way.
    public void flush() {
        synchronized (this) {
            check();
        }
        for (int tensor = 0; tensor < layout.tensors().size(); tensor++) {
            for (int chunk = 0; chunk < layout.chunks(tensor); chunk++) {
                if (pipe.pending(tensor, chunk)) {
                    String name = names.get(tensor).floorEntry(chunk).getValue();
                    Place weight = pinned.get(Key.weight(name));
                    pipe.add(tensor, chunk, true, homes(name, chunk, weight), new ArrayList<>());
                }
            }
        }
        pipe.drain();
    }

    /// Forgets what is in memory, so that the window can serve something else until the next run.
    public synchronized void park() {
        for (Place place : places) {
            place.awaitWrites();
            place.taken = false;
            place.ready = false;
        }
        for (Place place : pinned.values()) {
            place.awaitWrites();
            place.present = false;
        }
    }

    /// Nanoseconds the program has waited for reads and updates.
    public synchronized long readStall() {
        return readStall;
    }

    /// Nanoseconds the program has waited because memory was still being written to disk.
    public synchronized long writeStall() {
        return writeStall;
    }

    private void stream() {
        try {
            while (awaitRun()) {
                if (walk()) {
                    pipe.drain();
                } else {
                    pipe.drop();
                }
                synchronized (this) {
                    walked++;
                    notifyAll();
                }
            }
        } catch (Throwable e) {
            synchronized (this) {
                failure = e;
                notifyAll();
            }
        }
    }

    private synchronized boolean awaitRun() {
        while (walked == begun && !closed) {
            pause();
        }
        return !closed;
    }

    /// One run ahead of the program; false if the run was given up.
    private boolean walk() {
        for (Task task : tasks) {
            if (!take(task.place())) {
                return false;
            }
            if (task.place().isWeight()) {
                fill(task.place());
            }
        }
        return true;
    }

    /// Waits until nothing else is in the memory of a stay; what was added to the pipe goes on meanwhile.
    private boolean take(Place place) {
        while (true) {
            synchronized (this) {
                if (abandoned || closed) {
                    return false;
                }
                if (place.neighbours.stream().noneMatch(other -> other.taken)) {
                    break;
                }
            }
            if (!pipe.drainOne()) {
                synchronized (this) {
                    if (!abandoned && !closed && place.neighbours.stream().anyMatch(other -> other.taken)) {
                        pause();
                    }
                }
            }
        }
        if (place.neighbours.stream().anyMatch(Streaming::isWriting)) {
            pipe.drain();
            setWriting(true);
            place.neighbours.forEach(Place::awaitWrites);
            setWriting(false);
        }
        synchronized (this) {
            place.taken = true;
            notifyAll();
        }
        return true;
    }

    private static boolean isWriting(Place place) {
        place.writes.removeIf(Transfer::done);
        return !place.writes.isEmpty();
    }

    private synchronized void setWriting(boolean now) {
        writing = now;
    }

    /// Brings a weight into its place: read if it is not there, updated if an update is pending.
    private void fill(Place place) {
        boolean write = place.last || place.share >= late;
        for (Place earlier : place.earlier) {
            // its update may still be on the way
            pipe.drainTo(earlier.added);
            earlier.awaitWrites();
        }
        boolean updated = true;
        for (int chunk = place.firstChunk; chunk < place.endChunk; chunk++) {
            updated &= pipe.pending(place.tensor, chunk);
            pipe.add(place.tensor, chunk, write, homes(place.key.tensor(), chunk, place), place.writes);
        }
        boolean moments = updated;
        pipe.then(() -> ready(place, moments));
        place.added = pipe.added();
    }

    private synchronized void ready(Place place, boolean moments) {
        place.ready = true;
        place.present = true;
        if (moments) {
            for (String moment : layout.moments()) {
                Place at = pinned.get(new Key(place.key.tensor(), moment));
                if (at != null) {
                    at.present = true;
                }
            }
        }
        notifyAll();
    }

    /// `name` of a weight of the program that has the chunk.
    private List<ChunkPipe.Home> homes(String name, int chunk, @Nullable Place weight) {
        List<ChunkPipe.Home> homes = new ArrayList<>();
        homes.add(home(weight, chunk));
        layout.moments().forEach(moment -> homes.add(home(pinned.get(new Key(name, moment)), chunk)));
        homes.add(home(pinned.get(Key.gradient(name)), chunk));
        return homes;
    }

    private static ChunkPipe.Home home(@Nullable Place place, int chunk) {
        return place == null
                ? ChunkPipe.Home.NONE
                : new ChunkPipe.Home(place.chunk(chunk), place.forGood && place.present);
    }

    /// Waits for any change; every caller asks again in a loop. An interrupt is kept for later: a step is not given up
    /// in its middle.
    @SuppressWarnings("WaitNotInLoop")
    private void pause() {
        try {
            wait();
        } catch (InterruptedException e) {
            interrupted = true;
        }
    }

    /// Tells the caller of an interrupt that came while it waited here.
    private void restoreInterrupt() {
        if (interrupted) {
            interrupted = false;
            Thread.currentThread().interrupt();
        }
    }

    private void check() {
        switch (failure) {
            case null -> {}
            case IngotException e -> throw new IngotException(String.valueOf(e.getMessage()), e);
            case Throwable e -> throw new IllegalStateException("streaming failed", e);
        }
        if (closed) {
            throw new IllegalStateException("streaming is closed");
        }
    }

    /// Ends the thread; the store stays open.
    @Override
    public void close() {
        synchronized (this) {
            closed = true;
            abandoned = true;
            notifyAll();
        }
        boolean interrupted = false;
        while (thread.isAlive()) {
            try {
                thread.join();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
