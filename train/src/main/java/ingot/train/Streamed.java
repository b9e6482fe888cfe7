package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Compiler;
import ingot.compiler.Program;
import ingot.compiler.TrainingSpec;
import ingot.ir.IngotException;
import ingot.store.DiskStore;
import ingot.store.Storage;
import ingot.store.StoreLayout;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

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
    /// The file for activations that are spilled.
    static final String ACTIVATIONS = "activations.tmp";

    /// Logits take less memory than in a run without a budget.
    private static final Compiler.Options KEEPING = Compiler.Options.DEFAULT.withLogitBytes(8L << 20);

    /// What a store's folder holds.
    private static final Set<String> FILES = Set.of("state.ingot", "store.lock", ACTIVATIONS);

    /// For small budgets: what lies between forward and backward goes to disk.
    private static final Compiler.Options SPILLING = KEEPING.withSpillBytes(1 << 14);

    /// For smaller ones: weights of more than this part of the budget come in tiles.
    private static final int[] TILES = {8, 32, 128, 512};

    /// The program of a step and its plan: the first that has room to read and compute at the same time of those that
    /// keep activations in memory and weights whole, spill activations while others are computed, spill them one after
    /// the other, and tile weights too; else the smallest.
    static StreamPlan plan(Task task, Recipe recipe, Backend backend, Streamed settings) {
        TrainingSpec spec = Trainer.spec(task, recipe);
        StoreLayout layout = StreamPlan.layout(task, recipe.optimizer(), settings.chunkElements());
        List<Compiler.Options> candidates = new ArrayList<>(List.of(KEEPING));
        candidates.add(SPILLING.withSpillAhead(true));
        candidates.addAll(tilings(SPILLING, settings.budget(), settings.chunkElements()));
        @Nullable Compiled best = null;
        for (Compiler.Options options : candidates) {
            Program program = Compiler.training(spec, options);
            Compiled next = new Compiled(options, program, StreamPlan.Sizes.of(program, task, layout, backend));
            boolean overlaps = next.sizes().overlaps(settings.budget());
            if (best == null || overlaps || next.sizes().least() < best.sizes().least()) {
                best = next;
            }
            if (overlaps) {
                break;
            }
        }
        Compiled chosen = Objects.requireNonNull(best);
        return StreamPlan.of(
                chosen.options(), chosen.program(), task.start(), layout, chosen.sizes(), settings.budget());
    }

    /// A program that may be the one, and what it needs.
    private record Compiled(Compiler.Options options, Program program, StreamPlan.Sizes sizes) {}

    /// Weights whole, then in ever smaller tiles.
    static List<Compiler.Options> tilings(Compiler.Options whole, MemoryBudget budget, int chunkElements) {
        List<Compiler.Options> all = new ArrayList<>(List.of(whole));
        for (int part : TILES) {
            long bytes = budget.available() / part;
            if (bytes >= 4L * chunkElements) {
                all.add(whole.withTiles(bytes, chunkElements));
            }
        }
        return all;
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
        checkPlace(folder);
        return DiskStore.exists(folder, Storage.Opener.files(note -> {}));
    }

    /// Refuses a place where something else lies.
    private static void checkPlace(Path folder) {
        if (Files.isDirectory(folder)) {
            try (Stream<Path> files = Files.list(folder)) {
                List<String> others = files.map(file -> file.getFileName().toString())
                        .filter(name -> !FILES.contains(name))
                        .sorted()
                        .toList();
                if (!others.isEmpty()) {
                    throw new IngotException("store: " + folder + " is no store: it holds "
                            + String.join(", ", others.subList(0, Math.min(3, others.size())))
                            + (others.size() > 3 ? ", …" : "") + "; the state of a run that streams belongs there:"
                            + " move the folder away, or choose another run folder with run=…");
                }
            } catch (IOException e) {
                throw new IngotException("store: cannot list " + folder + ": " + e.getMessage(), e);
            }
        } else if (Files.exists(folder, LinkOption.NOFOLLOW_LINKS)) {
            throw new IngotException("store: " + folder + " is a file; the state of a run that streams belongs in a"
                    + " folder there: move it away, or choose another run folder with run=…");
        }
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
