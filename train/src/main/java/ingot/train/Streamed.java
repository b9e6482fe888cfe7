package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Compiler;
import ingot.compiler.Program;
import ingot.compiler.TrainingSpec;
import ingot.store.DiskStore;
import ingot.store.Storage;
import ingot.store.StoreLayout;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Consumer;

/// How a run streams its state from disk. Nothing here changes a bit.
///
/// @param folder where the store lies
/// @param budget what it may use of memory
/// @param identity what the store belongs to, one `key: value` per line; another identity is refused
/// @param chunkElements elements that are read, updated and written at a time
/// @param durable false only to measure what durability costs
/// @param warn told what the user should know
/// @param storage opens the device below
public record Streamed(
        Path folder,
        MemoryBudget budget,
        String identity,
        int chunkElements,
        boolean durable,
        Consumer<String> warn,
        Storage.Opener storage) {
    /// Logits take less memory than in a run without a budget.
    static final Compiler.Options OPTIONS = Compiler.Options.DEFAULT.withLogitBytes(8L << 20);

    /// For small budgets: what lies between forward and backward goes to disk.
    private static final Compiler.Options SPILLING = OPTIONS.withSpillBytes(1 << 14);

    /// The program of a step and its plan: one that keeps activations in memory, unless that leaves no room to read and
    /// compute at the same time.
    static StreamPlan plan(Task task, Recipe recipe, Backend backend, Streamed settings) {
        TrainingSpec spec = Trainer.spec(task, recipe);
        Program keeping = Compiler.training(spec, OPTIONS);
        StoreLayout layout = StreamPlan.layout(task, recipe.optimizer(), settings.chunkElements());
        StreamPlan.Sizes sizes = StreamPlan.Sizes.of(keeping, task, layout, backend);
        if (sizes.overlaps(settings.budget())) {
            return StreamPlan.of(keeping, layout, sizes, settings.budget());
        }
        Program spilling = Compiler.training(spec, SPILLING);
        return StreamPlan.of(spilling, layout, StreamPlan.Sizes.of(spilling, task, layout, backend), settings.budget());
    }

    /// The same in files.
    public Streamed(
            Path folder,
            MemoryBudget budget,
            String identity,
            int chunkElements,
            boolean durable,
            Consumer<String> warn) {
        this(folder, budget, identity, chunkElements, durable, warn, Storage.Opener.files(warn));
    }

    Streamed withStorage(Storage.Opener opener) {
        return new Streamed(folder, budget, identity, chunkElements, durable, warn, opener);
    }

    /// True if a folder has a store.
    public static boolean exists(Path folder) {
        return DiskStore.exists(folder, Storage.Opener.files(note -> {}));
    }

    /// What the store of a folder belongs to.
    static String identity(Path folder) {
        return DiskStore.identity(folder, Storage.Opener.files(note -> {}));
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
