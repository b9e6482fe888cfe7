package ingot.compiler;

/// A piece of memory that steps name.
public sealed interface Buffer {
    /// Given by the caller at every run.
    record Input(String name) implements Buffer {}

    /// Read by the caller after the run.
    record Output(String name) implements Buffer {}

    /// A weight, resident between the `Load` and `Free` of a stage that lists it.
    record Weight(String name) implements Buffer {}

    /// The gradient of a weight, summed over the batch; kept by the store until its update.
    record Gradient(String weight) implements Buffer {}

    /// Bytes [offset, offset + bytes) of the planned activation memory.
    record Activation(long offset, long bytes) implements Buffer {}

    /// Constant `index` of the program.
    record Constant(int index) implements Buffer {}
}
