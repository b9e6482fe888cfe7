package ingot.train;

import ingot.ir.IngotException;
import org.jspecify.annotations.Nullable;

/// Watches a training run; every method may be left out.
public interface Callback {
    /// A phase beside the steps begins or advances: `fetching`, `training the tokenizer`, `encoding`, `compiling`,
    /// `evaluating`; total 0 if unknown.
    default void onPhase(String phase, long done, long total) {}

    /// Training starts, or continues at a step greater than 0.
    default void onStart(TrainingRun.Summary summary) {}

    default void onStep(StepReport report) {}

    default void onEvaluate(long step, Evaluation evaluation) {}

    default void onCheckpoint(long step) {}

    /// A problem that does not stop the run.
    default void onWarning(String message) {}

    /// Asked after every step: true ends the run there, with a checkpoint.
    default boolean stop() {
        return false;
    }

    /// Where a run is.
    ///
    /// @param step steps done
    /// @param steps steps of the whole run
    /// @param gflops 6 · parameters · tokens / s, the usual count of a training step's work
    /// @param memoryBytes off-heap memory in use
    /// @param seconds that the step took
    /// @param stream what the step has read and written and how long it waited for the disk; null if nothing streams
    /// @param secondsLeft estimate for the remaining steps
    record StepReport(
            long step,
            long steps,
            double loss,
            double norm,
            double learningRate,
            double tokensPerSecond,
            double gflops,
            long memoryBytes,
            @Nullable StreamReport stream,
            double seconds,
            double secondsLeft) {}

    /// Ends a run when the held-out loss has not improved for `patience` evaluations.
    final class EarlyStopping implements Callback {
        private final int patience;
        private double best = Double.POSITIVE_INFINITY;
        private int worse;

        public EarlyStopping(int patience) {
            if (patience < 1) {
                throw new IngotException("early stopping: patience expected at least 1, got " + patience);
            }
            this.patience = patience;
        }

        @Override
        public void onEvaluate(long step, Evaluation evaluation) {
            worse = evaluation.loss() < best ? 0 : worse + 1;
            best = Math.min(best, evaluation.loss());
        }

        @Override
        public boolean stop() {
            return worse >= patience;
        }
    }
}
