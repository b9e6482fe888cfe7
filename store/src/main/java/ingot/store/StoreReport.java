package ingot.store;

import ingot.ir.Type;
import java.nio.file.Path;
import java.util.List;

/// What a store on disk holds, from its header, superblocks and index; tensor data is not read.
///
/// @param sequence the newest commit, -1 where none is whole: then there are no tensors and extents to report
/// @param durable false for a store that was written without flushes and checksums
public record StoreReport(
        Path file,
        int version,
        long id,
        String created,
        String identity,
        long fileBytes,
        StoreLayout layout,
        List<Slot> superblocks,
        long sequence,
        String note,
        boolean durable,
        List<TensorRows> tensors,
        List<Room> extents) {
    /// One of the two superblocks with its index. `damage` is empty when both are whole.
    public record Slot(int number, long sequence, String time, List<String> damage) {}

    /// The rows of one tensor: how many were never updated, the oldest and newest generation of the others (0: none),
    /// the pending gradients, and what it occupies.
    public record TensorRows(
            String name,
            Type type,
            int chunks,
            int untouched,
            long oldest,
            long newest,
            int gradients,
            int extents,
            long bytes) {}

    /// The extents of one size.
    public record Room(int extentBytes, int count, int used) {
        public int free() {
            return count - used;
        }
    }

    /// Something in the file that is not as it was written. Tensor is empty, chunk -1 and part empty for what belongs
    /// to no tensor; `message` says all of it.
    public record Damage(String tensor, int chunk, String part, String message) {}

    /// What a scrub did: what it rewrote from a good copy, and what has no second copy.
    public record Scrub(List<Damage> repaired, List<Damage> remaining) {}
}
