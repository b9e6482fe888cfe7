package ingot.store;

import ingot.ir.IngotException;
import ingot.ir.Type;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;

/// A store that keeps everything in memory: pins are free, a commit does nothing.
public final class RamStore implements WeightStore {
    private final Arena arena = Arena.ofShared();
    private final SequencedMap<Key, Slot> slots = new LinkedHashMap<>();
    private long bytes;

    private static final class Slot {
        private final Type type;
        private final MemorySegment data;
        private int pins;

        Slot(Type type, MemorySegment data) {
            this.type = type;
            this.data = data;
        }
    }

    /// Adds an array of zeros; the key is new.
    public void create(Key key, Type type) {
        if (slots.containsKey(key)) {
            throw new IngotException("store: " + key + " exists already as " + type(key));
        }
        MemorySegment data;
        try {
            data = HugePages.allocate(arena, Math.max(1, type.bytes()));
        } catch (OutOfMemoryError e) {
            throw new IngotException(
                    "store: no memory for " + key + " " + type + " (" + type.bytes() + " bytes) after " + bytes
                            + " bytes; use a smaller model or a machine with more memory",
                    e);
        }
        slots.put(key, new Slot(type, data.asSlice(0, type.bytes())));
        bytes += type.bytes();
    }

    @Override
    public List<Key> keys() {
        return List.copyOf(slots.keySet());
    }

    @Override
    public Type type(Key key) {
        return slot(key).type;
    }

    @Override
    public void prefetch(Collection<Key> keys) {
        keys.forEach(this::slot);
    }

    @Override
    public MemorySegment pin(Key key) {
        Slot slot = slot(key);
        slot.pins++;
        return slot.data;
    }

    @Override
    public void release(Key key, boolean changed) {
        Slot slot = slot(key);
        if (slot.pins == 0) {
            throw new IllegalStateException("store: " + key + " is released more often than pinned");
        }
        slot.pins--;
    }

    @Override
    public void commit() {
        // memory only: there is nothing to make durable
    }

    @Override
    public long residentBytes() {
        return bytes;
    }

    @Override
    public void close() {
        arena.close();
    }

    private Slot slot(Key key) {
        Slot slot = slots.get(key);
        if (slot == null) {
            throw new IngotException("store: no tensor " + key + "; it has " + slots.size() + " arrays");
        }
        return slot;
    }
}
