package ingot.compiler;

import java.util.List;

/// One instruction of a program. Steps are data: the planner costs them, goldens show them, the executor is a small
/// loop over them.
public sealed interface Step {
    /// The weights of a stage become readable.
    record Load(int stage) implements Step {}

    /// Applies the pending update of a stage, if the previous step left one: the optimizer step happens when the
    /// weights pass by.
    record Update(int stage) implements Step {}

    /// Runs a kernel: its reads, then its writes.
    record Run(Kernel kernel, List<Operand> operands) implements Step {
        public Run {
            operands = List.copyOf(operands);
        }
    }

    /// Adds `right` into `left`, elementwise fp32: one node of the fixed tree over micro-batches.
    record Reduce(Operand left, Operand right, long elements) implements Step {}

    /// Begins to write activations that are not needed for long to the spill file, at a byte position of it.
    record Spill(Operand from, long bytes, long position) implements Step {}

    /// Begins to read them back.
    record Fetch(Operand to, long bytes, long position) implements Step {}

    /// Waits for the spill or fetch that was begun at a position last; until then nothing touches its memory.
    record Await(Operand memory, long position) implements Step {}

    /// The gradients of a stage are complete and belong to the store.
    record Store(int stage) implements Step {}

    /// The weights of a stage are not needed for now.
    record Free(int stage) implements Step {}

    /// All gradients of this step are in the store: from here on the step counts.
    record Commit() implements Step {}

    record Operand(Buffer buffer, long byteOffset) {}
}
