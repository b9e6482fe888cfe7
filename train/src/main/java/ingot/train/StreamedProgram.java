package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Compiler;
import ingot.compiler.Program;
import ingot.ir.Graph;
import ingot.ir.IngotException;
import ingot.nn.Parameter;
import ingot.runtime.Executor;
import ingot.runtime.Residency;
import ingot.runtime.SpillFile;
import ingot.runtime.StateUpdates;
import ingot.runtime.Streaming;
import ingot.runtime.Visit;
import ingot.runtime.WindowPlan;
import ingot.store.DiskStore;
import ingot.store.HugePages;
import ingot.store.StoreLayout;
import ingot.store.StoredTensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;

/// A graph over weights that do not fit into memory and do not change: they pass through a window from where they
/// begin, the files of a base or the seed. Nothing of them is written to disk.
public final class StreamedProgram implements AutoCloseable {
    private static final int CHUNKS_IN_FLIGHT = 4;
    private static final Compiler.Options WHOLE = Compiler.Options.DEFAULT.withLogitBytes(8L << 20);

    private final Program program;
    private final WindowPlan window;
    private final Arena arena = Arena.ofShared();
    private final InitialValues initial;
    private final DiskStore store;
    private final Executor executor;

    /// Opens a graph whose weights are among `parameters`.
    ///
    /// @param folder for the store's own file, which stays small
    /// @param watching wraps the residency: for progress
    /// @param background makes first values while `backend` computes
    public static StreamedProgram open(
            Graph graph,
            List<Parameter> parameters,
            Start start,
            long seed,
            MemoryBudget budget,
            Backend backend,
            Backend background,
            Path folder,
            UnaryOperator<Residency> watching,
            Consumer<String> warn) {
        StoreLayout layout = new StoreLayout(
                parameters.stream()
                        .map(parameter -> new StoredTensor(parameter.name(), parameter.type(), true))
                        .toList(),
                List.of(),
                StoreLayout.CHUNK_ELEMENTS);
        long ring = Streaming.ringBytes(layout, CHUNKS_IN_FLIGHT);
        long least = Long.MAX_VALUE;
        for (Compiler.Options options : Streamed.tilings(WHOLE, budget, layout.chunkElements())) {
            Program program = Compiler.inference(graph, options);
            long fixed = Executor.bytes(program, backend) + ring;
            List<Visit> visits = Visit.of(program);
            if (fixed + WindowPlan.overlapping(visits) <= budget.available()) {
                WindowPlan window = WindowPlan.of(visits, List.of(), budget.available() - fixed);
                InitialValues initial = new InitialValues(parameters, seed, background, start.base());
                return new StreamedProgram(program, window, layout, ring, initial, backend, folder, watching, warn);
            }
            least = Math.min(least, budget.process() + fixed + WindowPlan.overlapping(visits));
        }
        throw new IngotException("memory: a pass over this model needs about " + Math.ceilDiv(least, 1L << 20)
                + " MiB, the budget is " + (budget.bytes() >> 20) + " MiB; give it more memory or fewer tokens");
    }

    private StreamedProgram(
            Program program,
            WindowPlan window,
            StoreLayout layout,
            long ringBytes,
            InitialValues initial,
            Backend backend,
            Path folder,
            UnaryOperator<Residency> watching,
            Consumer<String> warn) {
        this.program = program;
        this.window = window;
        this.initial = initial;
        MemorySegment memory = HugePages.allocate(arena, window.bytes());
        MemorySegment ring = HugePages.allocate(arena, ringBytes);
        store = DiskStore.create(folder, layout, "reading: 1\n", "", DiskStore.Options.of(initial, warn));
        Residency passing = new Streaming(program, window, store, memory, ring, StateUpdates.NONE);
        executor = new Executor(program, backend, watching.apply(passing), SpillFile.NONE);
    }

    public Program program() {
        return program;
    }

    public WindowPlan window() {
        return window;
    }

    /// Runs the graph; its weights pass by in every run.
    public Executor executor() {
        return executor;
    }

    @Override
    public void close() {
        executor.close();
        store.close();
        initial.close();
        arena.close();
    }
}
