package ingot.runtime;

import ingot.compiler.Program;

/// Applies the pending optimizer update of a stage, just before its weights are read.
@FunctionalInterface
public interface StageUpdates {
    /// For programs that change no weights.
    StageUpdates NONE = stage -> {};

    /// Called at the stage's `Update` step, while its weights are in memory.
    void update(Program.Stage stage);
}
