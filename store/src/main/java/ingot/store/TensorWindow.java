package ingot.store;

import ingot.ir.IngotException;
import ingot.ir.Type;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/// Whole tensors of a store on disk, in memory of the caller: room is found first-fit and free again after the last
/// release. Weights and moments that were never updated have their first values, a missing gradient is zeros.
final class TensorWindow implements WeightStore {
    private final DiskStore store;
    private final StoreLayout layout;
    private final MemorySegment memory;
    private final Map<String, Integer> tensors = new HashMap<>();
    private final SequencedMap<Key, Resident> residents = new LinkedHashMap<>(); // in order of arrival
    private final TreeMap<Long, Resident> byOffset = new TreeMap<>();

    private static final class Resident {
        private final Key key;
        private final long offset;
        private final long bytes;
        private final long changes; // of the tensor, when it was read
        private List<Transfer> reads = List.of();
        private int pins;

        Resident(Key key, long offset, long bytes, long changes) {
            this.key = key;
            this.offset = offset;
            this.bytes = bytes;
            this.changes = changes;
        }
    }

    TensorWindow(DiskStore store, MemorySegment memory) {
        this.store = store;
        this.layout = store.layout();
        this.memory = memory;
        for (int t = 0; t < layout.tensors().size(); t++) {
            tensors.put(layout.tensors().get(t).name(), t);
        }
    }

    @Override
    public List<Key> keys() {
        List<Key> keys = new ArrayList<>();
        for (StoredTensor tensor : layout.tensors()) {
            keys.add(Key.weight(tensor.name()));
            if (tensor.frozen()) {
                continue;
            }
            keys.add(Key.gradient(tensor.name()));
            layout.moments().forEach(moment -> keys.add(new Key(tensor.name(), moment)));
        }
        return keys;
    }

    @Override
    public Type type(Key key) {
        return layout.tensors().get(tensor(key)).type();
    }

    private int tensor(Key key) {
        Integer tensor = tensors.get(key.tensor());
        if (tensor == null || part(key) < 0 || (part(key) > 0 && layout.frozen(tensor))) {
            throw new IngotException("store: no tensor " + key + "; it has " + tensors.size() + " tensors with weight, "
                    + "gradient and the moments " + layout.moments());
        }
        return tensor;
    }

    private int part(Key key) {
        return switch (key.part()) {
            case Key.WEIGHT -> 0;
            case Key.GRADIENT -> layout.stateParts();
            default -> {
                int moment = layout.moments().indexOf(key.part());
                yield moment < 0 ? -1 : moment + 1;
            }
        };
    }

    @Override
    public synchronized void prefetch(Collection<Key> keys) {
        for (Key key : keys) {
            tensor(key);
        }
        for (Key key : keys) {
            if (current(key) == null) {
                Long offset = room(bytes(key));
                if (offset == null) {
                    return;
                }
                load(key, offset);
            }
        }
    }

    @Override
    public synchronized MemorySegment pin(Key key) {
        Resident resident = current(key);
        if (resident == null) {
            resident = load(key, makeRoom(key, bytes(key)));
        }
        try {
            resident.reads.forEach(Transfer::await);
        } catch (IngotException e) {
            if (resident.pins == 0) {
                forget(resident);
            }
            throw e;
        }
        resident.reads = List.of();
        resident.pins++;
        return memory.asSlice(resident.offset, type(key).bytes());
    }

    /// What is resident and, unless it is pinned, up to date.
    private @Nullable Resident current(Key key) {
        int tensor = tensor(key);
        Resident resident = residents.get(key);
        if (resident != null && resident.pins == 0 && resident.changes != store.changes(tensor)) {
            forget(resident);
            return null;
        }
        return resident;
    }

    private Resident load(Key key, long offset) {
        int tensor = tensor(key);
        int part = part(key);
        Resident resident = new Resident(key, offset, bytes(key), store.changes(tensor));
        residents.put(key, resident);
        byOffset.put(offset, resident);
        resident.reads = new ArrayList<>();
        try {
            read(tensor, part, resident);
        } catch (RuntimeException e) {
            forget(resident);
            throw e;
        }
        return resident;
    }

    private void read(int tensor, int part, Resident resident) {
        for (int chunk = 0; chunk < layout.chunks(tensor); chunk++) {
            long payload = (long) layout.elements(tensor, chunk) * Float.BYTES;
            MemorySegment into =
                    memory.asSlice(resident.offset + layout.start(chunk) * Float.BYTES, Storage.roundUp(payload));
            Transfer read = read(tensor, part, chunk, into);
            if (read != null) {
                resident.reads.add(read);
            }
        }
    }

    /// Chunk by chunk, so that arrays may be larger than the window.
    @Override
    public synchronized <E extends Exception> void read(Key key, Reader<E> reader) throws E {
        int tensor = tensor(key);
        long offset = makeRoom(key, Storage.roundUp((long) layout.elements(tensor, 0) * Float.BYTES));
        for (int chunk = 0; chunk < layout.chunks(tensor); chunk++) {
            long payload = (long) layout.elements(tensor, chunk) * Float.BYTES;
            Transfer read = read(tensor, part(key), chunk, memory.asSlice(offset, Storage.roundUp(payload)));
            if (read != null) {
                read.await();
            }
            reader.accept(memory.asSlice(offset, payload));
        }
    }

    /// Starts reading a chunk; null if it is zeros, which are there at once.
    private @Nullable Transfer read(int tensor, int part, int chunk, MemorySegment into) {
        if (part < layout.stateParts()) {
            return store.read(tensor, chunk, part, into);
        }
        long gradient = store.gradientGeneration(tensor, chunk);
        if (gradient == RowTable.NONE) {
            into.fill((byte) 0);
            return null;
        }
        return store.readGradient(tensor, chunk, gradient, into);
    }

    private void forget(Resident resident) {
        resident.reads.forEach(TensorWindow::settle);
        residents.remove(resident.key);
        byOffset.remove(resident.offset);
    }

    /// Waits for a read whose outcome nobody needs.
    private static void settle(Transfer read) {
        try {
            read.await();
        } catch (IngotException e) {
            // whoever pins the tensor reads it again and learns of it
            return;
        }
    }

    private long bytes(Key key) {
        return Math.max(Blocks.SIZE, Storage.roundUp(type(key).bytes()));
    }

    /// The first gap that is large enough.
    private @Nullable Long room(long bytes) {
        long at = 0;
        for (Resident resident : byOffset.values()) {
            if (resident.offset - at >= bytes) {
                return at;
            }
            at = resident.offset + resident.bytes;
        }
        return memory.byteSize() - at >= bytes ? at : null;
    }

    /// Gives up what was fetched early and not pinned, as far as needed.
    private long makeRoom(Key key, long bytes) {
        Long offset = room(bytes);
        while (offset == null) {
            Iterator<Resident> idle =
                    residents.values().stream().filter(r -> r.pins == 0).iterator();
            if (!idle.hasNext()) {
                long pinned =
                        residents.values().stream().mapToLong(r -> r.bytes).sum();
                throw new IngotException("store: the window of " + memory.byteSize() + " bytes has no room for " + key
                        + " " + type(key) + " (" + bytes + " bytes) beside " + pinned
                        + " pinned bytes; give it more memory");
            }
            forget(idle.next());
            offset = room(bytes);
        }
        return offset;
    }

    @Override
    public synchronized void release(Key key, boolean changed) {
        tensor(key);
        Resident resident = residents.get(key);
        if (resident == null || resident.pins == 0) {
            throw new IllegalStateException("store: " + key + " is released more often than pinned");
        }
        if (changed) {
            throw new IllegalStateException(
                    "store: " + key + " lies on disk, its pinned copy cannot be changed; rows change by update");
        }
        if (--resident.pins == 0) {
            forget(resident);
        }
    }

    @Override
    public void commit() {
        store.commit();
    }

    @Override
    public long residentBytes() {
        return memory.byteSize();
    }

    @Override
    public synchronized void close() {
        List.copyOf(residents.values()).forEach(this::forget);
    }
}
