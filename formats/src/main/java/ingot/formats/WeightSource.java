package ingot.formats;

import ingot.ir.Type;
import ingot.store.RamStore;
import ingot.store.Safetensors;
import ingot.store.WeightStore.Key;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.SequencedMap;
import java.util.Set;

/// The weights of a model in somebody's files: names and types at once, bytes when they are asked for.
///
/// Opening one reads no weights, so it costs little however large the model is.
public interface WeightSource extends AutoCloseable {
    /// Types by name, as the model uses them: F16 and BF16 files give F32.
    SequencedMap<String, Type> types();

    /// Types by name as the files have them.
    default SequencedMap<String, Type> stored() {
        return types();
    }

    /// Writes the elements of a tensor, row-major and little-endian, to `target`, which has exactly their size.
    void read(String name, MemorySegment target);

    /// The tensors one at a time, for a file that is written.
    default Safetensors.Contents contents() {
        return (name, reader) -> {
            Type type = Objects.requireNonNull(types().get(name), name);
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment memory =
                        arena.allocate(Math.max(1, type.bytes()), 64).asSlice(0, type.bytes());
                read(name, memory);
                reader.accept(memory);
            }
        };
    }

    /// Creates the tensors in a store, as weights, and fills them; those that are there already stay.
    default void load(RamStore store) {
        Set<Key> there = Set.copyOf(store.keys());
        types().forEach((name, type) -> {
            Key key = Key.weight(name);
            if (!there.contains(key)) {
                store.create(key, type);
                read(name, store.pin(key));
                store.release(key, true);
            }
        });
    }

    @Override
    void close();
}
