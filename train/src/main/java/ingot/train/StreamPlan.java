package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Program;
import ingot.ir.IngotException;
import ingot.nn.Parameter;
import ingot.runtime.Executor;
import ingot.runtime.Streaming;
import ingot.runtime.Visit;
import ingot.runtime.WindowPlan;
import ingot.store.StoreLayout;
import ingot.store.StoredTensor;
import java.util.List;

/// How a model's training state goes through the memory of a budget: made before the run, kept by it.
///
/// @param program of one step
/// @param window what is in memory when
/// @param fixedBytes activations, inputs, constants and what kernels need besides
/// @param ringBytes chunks on their way to and from the disk
/// @param traffic what a step reads and writes
/// @param leastBytes the smallest budget with which a step can be done
public record StreamPlan(
        MemoryBudget budget,
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

    /// True if the budget has room to read while computing.
    static boolean fits(
            Program program, List<Parameter> parameters, Optimizer optimizer, Backend backend, Streamed settings) {
        StoreLayout layout = layout(parameters, optimizer, settings.chunkElements());
        long available = settings.budget().available() - Executor.bytes(program, backend) - OTHER_BYTES;
        return WindowPlan.overlapping(Visit.of(program)) + Streaming.ringBytes(layout, LEAST_CHUNKS) <= available;
    }

    /// The plan for a program; refuses a budget that is too small, with the least that would do.
    static StreamPlan of(
            Program program, List<Parameter> parameters, Optimizer optimizer, Backend backend, Streamed settings) {
        StoreLayout layout = layout(parameters, optimizer, settings.chunkElements());
        List<Visit> visits = Visit.of(program);
        long fixed = Executor.bytes(program, backend) + OTHER_BYTES;
        long available = settings.budget().available() - fixed;
        long least = settings.budget().process()
                + fixed
                + Streaming.ringBytes(layout, LEAST_CHUNKS)
                + WindowPlan.minimum(visits);
        if (settings.budget().bytes() < least) {
            throw new IngotException("memory: a training step needs at least " + mebibytes(least)
                    + ", the budget is " + mebibytes(settings.budget().bytes()) + ": "
                    + mebibytes(settings.budget().process()) + " for Java, " + mebibytes(fixed)
                    + " for activations, " + mebibytes(Streaming.ringBytes(layout, LEAST_CHUNKS))
                    + " for chunks in flight, " + mebibytes(WindowPlan.minimum(visits))
                    + " for the weights and gradients of the largest stage. Give it more memory, or fewer tokens at a"
                    + " time (train.micro-batch, model.context)");
        }
        int chunks = LEAST_CHUNKS;
        while (chunks < MOST_CHUNKS && Streaming.ringBytes(layout, 2 * chunks) <= available / 16) {
            chunks *= 2;
        }
        long ring = Streaming.ringBytes(layout, chunks);
        WindowPlan window = WindowPlan.of(visits, layout.moments(), available - ring);
        return new StreamPlan(
                settings.budget(),
                program,
                layout,
                window,
                fixed,
                ring,
                Traffic.of(window, visits, layout.moments(), program.memory().spillBytes()),
                least);
    }

    static StoreLayout layout(List<Parameter> parameters, Optimizer optimizer, int chunkElements) {
        return new StoreLayout(
                parameters.stream()
                        .map(parameter -> new StoredTensor(parameter.name(), parameter.type()))
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
