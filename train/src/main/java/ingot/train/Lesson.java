package ingot.train;

import ingot.store.WeightStore;
import java.nio.file.Path;
import java.util.Map;

/// What a run trains, with its data: parameters, loss and feed (`task`), how it is measured, and how it is saved.
///
/// Everything else about a run (steps, checkpoints, streaming, resuming, metrics) knows only this.
interface Lesson extends AutoCloseable {
    /// What is learned, fed with the batches of every step.
    Task task();

    /// Rows of the training data: an epoch.
    int rows();

    /// Fingerprints of everything beside settings and origin that decides bits, under names that begin with `the `.
    Map<String, String> fingerprints();

    /// What was read and what is trained.
    DataSummary summary();

    /// Measures the model on the data held out.
    Evaluation evaluate(Inference inference, Callback callback);

    /// Writes the model with its weights from a store, in which nothing may be pending, and all that belongs to it.
    void save(Path folder, WeightStore store);

    @Override
    void close();
}
