package ingot.store;

import ingot.ir.Type;
import java.lang.foreign.MemorySegment;
import java.util.Collection;
import java.util.List;

/// Where a model's training state lives: for every tensor its weight, its optimizer moments and its gradient.
///
/// The machine holds a window of it: what is pinned is in memory, the rest may be anywhere. Callers pin what they need
/// for a stage and release it after; they announce what comes next with `prefetch`. Nothing is durable before `commit`.
public interface WeightStore extends AutoCloseable {
    /// One array of the store. `part` is `weight`, `gradient`, or an optimizer's name for a moment.
    record Key(String tensor, String part) {
        public static final String WEIGHT = "weight";
        public static final String GRADIENT = "gradient";

        public static Key weight(String tensor) {
            return new Key(tensor, WEIGHT);
        }

        public static Key gradient(String tensor) {
            return new Key(tensor, GRADIENT);
        }

        @Override
        public String toString() {
            return tensor + ":" + part;
        }
    }

    /// All keys in order of creation.
    List<Key> keys();

    Type type(Key key);

    /// Announces that these arrays will be pinned soon, in this order.
    void prefetch(Collection<Key> keys);

    /// Brings an array into memory and keeps it there until the matching `release`; pins nest. The memory is 64-byte
    /// aligned.
    MemorySegment pin(Key key);

    /// Ends one pin; `changed` tells that its content is new and must be kept, which only a store in memory can.
    void release(Key key, boolean changed);

    /// Hands the bytes of an array to `reader` in order, in as many pieces as the memory asks for; a piece need not
    /// stay after that.
    default <E extends Exception> void read(Key key, Reader<E> reader) throws E {
        MemorySegment whole = pin(key);
        try {
            reader.accept(whole);
        } finally {
            release(key, false);
        }
    }

    /// Takes the bytes of an array, piece by piece.
    @FunctionalInterface
    interface Reader<E extends Exception> {
        void accept(MemorySegment piece) throws E;
    }

    /// Makes everything changed so far one durable generation. A store without durability does nothing.
    void commit();

    /// Bytes of memory the store holds now.
    long residentBytes();

    @Override
    void close();
}
