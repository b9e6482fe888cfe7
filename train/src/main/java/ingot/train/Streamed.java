package ingot.train;

import ingot.compiler.Compiler;
import ingot.store.DiskStore;
import ingot.store.Storage;
import ingot.store.StoreLayout;
import java.nio.file.Path;
import java.util.Set;
import java.util.function.Consumer;

/// How a run streams its state from disk. Nothing here changes a bit.
///
/// @param folder where the store lies
/// @param budget what it may use of memory
/// @param identity what the store belongs to, one `key: value` per line; another identity is refused
/// @param chunkElements elements that are read, updated and written at a time
/// @param durable false only to measure what durability costs
/// @param warn told what the user should know
public record Streamed(
        Path folder, MemoryBudget budget, String identity, int chunkElements, boolean durable, Consumer<String> warn) {
    /// Logits take less memory than in a run without a budget.
    static final Compiler.Options OPTIONS = new Compiler.Options(Set.of(), 8L << 20);

    /// True if a folder has a store.
    public static boolean exists(Path folder) {
        return DiskStore.exists(folder, Storage.Opener.files(note -> {}));
    }

    /// A durable store with chunks of 1 MiB.
    public static Streamed of(Path folder, MemoryBudget budget, String identity, Consumer<String> warn) {
        return new Streamed(folder, budget, identity, StoreLayout.CHUNK_ELEMENTS, true, warn);
    }
}
