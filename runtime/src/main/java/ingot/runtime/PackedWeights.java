package ingot.runtime;

import ingot.compiler.Backend;
import java.lang.foreign.Arena;
import java.util.HashMap;
import java.util.Map;

/// Weights in the order that kernels read them in, packed at the first use: for inference, whose weights stay the same.
///
/// Executors of one model share them, so that a program for another batch size packs nothing again. It must outlive
/// them, and the weights of their stores must not change meanwhile. What is packed takes as much memory again as the
/// weights.
public final class PackedWeights implements AutoCloseable {
    private final Arena arena = Arena.ofShared();
    private final Map<Key, Long> addresses = new HashMap<>();
    private long bytes;

    /// Part of a weight in an order of a backend.
    record Key(String tensor, long byteOffset, Object order) {}

    /// The address of a packed weight, which is packed now if it was not before.
    synchronized long address(Key key, Backend.Packed packed, long weight) {
        return addresses.computeIfAbsent(key, _ -> {
            bytes += packed.bytes();
            long to = arena.allocate(Math.max(64, packed.bytes()), 4096).address();
            packed.packing().pack(weight, to);
            return to;
        });
    }

    /// Bytes of all that is packed so far.
    public synchronized long bytes() {
        return bytes;
    }

    @Override
    public void close() {
        arena.close();
    }
}
