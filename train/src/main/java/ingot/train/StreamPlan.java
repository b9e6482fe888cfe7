package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Compiler;
import ingot.compiler.Program;
import ingot.ir.IngotException;
import ingot.ir.Type;
import ingot.runtime.Executor;
import ingot.runtime.Streaming;
import ingot.runtime.Visit;
import ingot.runtime.WindowPlan;
import ingot.store.BaseWeights;
import ingot.store.StoreLayout;
import ingot.store.StoredTensor;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.ToLongFunction;

/// How a model's training state goes through the memory of a budget: made before the run, kept by it.
///
/// @param options what the program was compiled with
/// @param program of one step
/// @param window what is in memory when
/// @param fixedBytes activations, inputs, constants and what kernels need besides
/// @param ringBytes chunks on their way to and from the disk
/// @param traffic what a step reads and writes
/// @param leastBytes the smallest budget with which a step can be done
public record StreamPlan(
        MemoryBudget budget,
        Compiler.Options options,
        Program program,
        StoreLayout layout,
        WindowPlan window,
        long fixedBytes,
        long ringBytes,
        Traffic traffic,
        long leastBytes) {
    /// More chunks in flight than this gain nothing.
    private static final int MOST_CHUNKS = 16;

    private static final int LEAST_CHUNKS = 2;

    /// The optimizer's and the initial values' programs, the store's index.
    private static final long OTHER_BYTES = 4 << 20;

    /// What a program needs at least, whatever the budget is.
    ///
    /// @param fixed activations, inputs, constants and what kernels need besides
    /// @param ring the smallest
    /// @param window the smallest
    /// @param overlapping the smallest window that lets reading and computing overlap
    record Sizes(List<Visit> visits, long fixed, long ring, long window, long overlapping) {
        static Sizes of(Program program, Task task, StoreLayout layout, Backend backend) {
            List<Visit> visits = Visit.of(program);
            long buffers = task.start().base() == null ? 0 : BaseWeights.BUFFER_BYTES;
            return new Sizes(
                    visits,
                    Executor.bytes(program, backend) + OTHER_BYTES + buffers,
                    Streaming.ringBytes(layout, LEAST_CHUNKS),
                    WindowPlan.minimum(visits),
                    WindowPlan.overlapping(visits));
        }

        /// Bytes beside the process.
        long least() {
            return fixed + ring + window;
        }

        /// True if a budget has room to read while computing.
        boolean overlaps(MemoryBudget budget) {
            return fixed + ring + overlapping <= budget.available();
        }
    }

    /// The plan for a program; refuses a budget that is too small, with the least that would do.
    static StreamPlan of(
            Compiler.Options options,
            Program program,
            Start start,
            StoreLayout layout,
            Sizes sizes,
            MemoryBudget budget) {
        long available = budget.available() - sizes.fixed();
        long least = budget.process() + sizes.least();
        if (budget.bytes() < least) {
            throw new IngotException("memory: a training step needs at least " + mebibytes(least)
                    + ", the budget is " + mebibytes(budget.bytes()) + ": " + mebibytes(budget.process())
                    + " for Java, " + mebibytes(sizes.fixed()) + " for activations, " + mebibytes(sizes.ring())
                    + " for chunks in flight, " + mebibytes(sizes.window())
                    + " for the weights and gradients of the largest stage. Give it more memory, or fewer tokens at a"
                    + " time (train.micro-batch, model.context)");
        }
        int chunks = LEAST_CHUNKS;
        while (chunks < MOST_CHUNKS && Streaming.ringBytes(layout, 2 * chunks) <= available / 16) {
            chunks *= 2;
        }
        long ring = Streaming.ringBytes(layout, chunks);
        WindowPlan window = WindowPlan.of(sizes.visits(), layout.moments(), available - ring);
        return new StreamPlan(
                budget,
                options,
                program,
                layout,
                window,
                sizes.fixed(),
                ring,
                Traffic.of(
                        window,
                        sizes.visits(),
                        layout.moments(),
                        program.memory().spillBytes(),
                        arriving(program, start)),
                least);
    }

    /// Bytes that are read for one stay of a weight. A frozen one is read as its base has it; without a base its first
    /// values are made anew, of nothing.
    private static ToLongFunction<WindowPlan.Stay> arriving(Program program, Start start) {
        Map<String, Type> base = start.base() == null ? Map.of() : start.base().types();
        return stay -> {
            Program.Tile tile = program.tile(stay.key().tensor());
            if (!start.frozen().contains(tile.weight())) {
                return stay.bytes();
            }
            Type type = base.get(tile.weight());
            return type == null ? 0 : tile.elements() * type.dtype().bytes();
        };
    }

    static StoreLayout layout(Task task, Optimizer optimizer, int chunkElements) {
        Set<String> frozen = task.start().frozen();
        return new StoreLayout(
                task.parameters().stream()
                        .map(parameter ->
                                new StoredTensor(parameter.name(), parameter.type(), frozen.contains(parameter.name())))
                        .toList(),
                optimizer.moments(),
                chunkElements);
    }

    /// Bytes of the process by this plan.
    public long totalBytes() {
        return budget.process() + fixedBytes + ringBytes + window.bytes();
    }

    private static String mebibytes(long bytes) {
        return Math.ceilDiv(bytes, 1L << 20) + " MiB";
    }
}
