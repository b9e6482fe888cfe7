package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Compiler;
import ingot.compiler.Program;
import ingot.compiler.TrainingSpec;
import ingot.nn.Parameter;
import ingot.store.DiskStore;
import ingot.store.Storage;
import ingot.store.StoreLayout;
import java.nio.file.Path;
import java.util.List;
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
    static final Compiler.Options OPTIONS = new Compiler.Options(Set.of(), 8L << 20, Long.MAX_VALUE);

    /// For small budgets: what lies between forward and backward goes to disk.
    private static final Compiler.Options SPILLING = new Compiler.Options(Set.of(), 8L << 20, 1 << 14);

    /// The program of a step and its plan: one that keeps activations in memory, unless that leaves no room to read and
    /// compute at the same time.
    static StreamPlan plan(
            TrainingSpec spec, List<Parameter> parameters, Optimizer optimizer, Backend backend, Streamed settings) {
        Program keeping = Compiler.training(spec, OPTIONS);
        if (StreamPlan.fits(keeping, parameters, optimizer, backend, settings)) {
            return StreamPlan.of(keeping, parameters, optimizer, backend, settings);
        }
        return StreamPlan.of(Compiler.training(spec, SPILLING), parameters, optimizer, backend, settings);
    }

    /// True if a folder has a store.
    public static boolean exists(Path folder) {
        return DiskStore.exists(folder, Storage.Opener.files(note -> {}));
    }

    /// The steps that a store's commit holds, by its note.
    public static long steps(String note) {
        return StreamedState.Note.of(note).steps();
    }

    /// The store of a run folder.
    public static Path folder(Path run) {
        return run.resolve("store");
    }

    /// A durable store with chunks of 1 MiB.
    public static Streamed of(Path folder, MemoryBudget budget, String identity, Consumer<String> warn) {
        return new Streamed(folder, budget, identity, StoreLayout.CHUNK_ELEMENTS, true, warn);
    }
}
