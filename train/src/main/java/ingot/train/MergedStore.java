package ingot.train;

import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.nn.Lora;
import ingot.store.WeightStore;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// A store whose matrices are read with their low-rank terms in them, one at a time.
final class MergedStore implements WeightStore {
    private final WeightStore store;
    private final Lora lora;
    private final Map<String, Lora.Site> sites = new HashMap<>();

    MergedStore(WeightStore store, Lora lora) {
        this.store = store;
        this.lora = lora;
        lora.sites().forEach(site -> sites.put(site.weight(), site));
    }

    @Override
    public <E extends Exception> void read(Key key, Reader<E> reader) throws E {
        Lora.Site site = key.part().equals(Key.WEIGHT) ? sites.get(key.tensor()) : null;
        if (site == null) {
            store.read(key, reader);
            return;
        }
        try (Arena arena = Arena.ofConfined()) {
            Tensor weight = whole(key, arena);
            Tensor a = whole(Key.weight(site.nameA()), arena);
            Tensor b = whole(Key.weight(site.nameB()), arena);
            Lora.merge(site, lora.settings().rank(), lora.settings().scale(), weight, a, b);
            reader.accept(weight.data());
        }
    }

    private Tensor whole(Key key, Arena arena) {
        Type type = store.type(key);
        MemorySegment memory = arena.allocate(type.bytes(), 64);
        long[] at = {0};
        store.read(key, piece -> {
            MemorySegment.copy(piece, 0, memory, at[0], piece.byteSize());
            at[0] += piece.byteSize();
        });
        return Tensor.over(type, memory);
    }

    @Override
    public List<Key> keys() {
        return store.keys();
    }

    @Override
    public Type type(Key key) {
        return store.type(key);
    }

    @Override
    public void prefetch(Collection<Key> keys) {
        store.prefetch(keys);
    }

    @Override
    public MemorySegment pin(Key key) {
        throw new IllegalStateException("merged weights are read, not pinned");
    }

    @Override
    public void release(Key key, boolean changed) {
        throw new IllegalStateException("merged weights are read, not pinned");
    }

    @Override
    public void commit() {
        store.commit();
    }

    @Override
    public long residentBytes() {
        return store.residentBytes();
    }

    /// The store stays open.
    @Override
    public void close() {}
}
