package ingot.store;

import java.lang.foreign.MemorySegment;
import java.util.List;

/// Checksums of what an update will write, from who made it: piece by piece, in order, while it is in the cache.
public final class Departure {
    private final List<Checksum> parts; // none: the store has no checksums

    Departure(List<Checksum> parts) {
        this.parts = List.copyOf(parts);
    }

    /// The next piece of a part is done.
    public void pass(int part, MemorySegment piece) {
        if (!parts.isEmpty()) {
            parts.get(part).add(piece);
        }
    }

    int[] values() {
        return parts.stream().mapToInt(Checksum::value).toArray();
    }
}
