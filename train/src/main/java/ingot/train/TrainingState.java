package ingot.train;

import ingot.compiler.Program;
import ingot.runtime.Residency;
import ingot.runtime.SpillFile;
import ingot.runtime.StageUpdates;
import ingot.store.WeightStore;
import org.jspecify.annotations.Nullable;

/// Where the state of a training run lives between and during its steps: all of it in memory, or on disk with a window
/// of memory.
interface TrainingState extends AutoCloseable {
    /// How weights and gradients come into memory during a step.
    Residency residency();

    /// The same for another program that changes nothing, between two steps after `flush`.
    Residency idle(Program other);

    /// Where activations go that the program spills.
    SpillFile spill();

    /// What the executor does at the updates of a step.
    StageUpdates updates();

    /// The norm of all gradients of the step that has just run.
    float gradientNorm();

    /// Makes these gradients the pending update number `step`; each is multiplied by `scale` first. From here on the
    /// step counts.
    ///
    /// @param losses digest of the losses up to this step
    void pend(long step, double learningRate, float scale, String losses);

    /// Applies what is pending: before weights are evaluated, saved or exported.
    void flush();

    /// The arrays, for reading between two steps after `flush`.
    WeightStore store();

    /// How the state goes through memory; null if all of it is there.
    @Nullable
    StreamPlan plan();

    /// What streaming has done.
    StreamReport report();

    /// Bytes of off-heap memory in use.
    long bytes();

    @Override
    void close();
}
