package ingot.train;

import ingot.ir.Op;
import ingot.ir.Value;
import ingot.nn.Parameter;
import ingot.store.WeightStore;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/// What a run trains, with its data: parameters, loss and feed (`task`), how it is measured, and how it is saved.
///
/// Everything else about a run (steps, checkpoints, streaming, resuming, metrics) knows only this.
interface Lesson extends AutoCloseable {
    /// What is learned, fed with the batches of every step.
    Task task();

    /// The recipe that it is trained with, if another one is asked for: a loss that mixes rows needs the batch whole.
    default Recipe recipe(Recipe asked) {
        return asked;
    }

    /// Rows of the training data: an epoch.
    int rows();

    /// Fingerprints of everything beside settings and origin that decides bits, under names that begin with `the `.
    Map<String, String> fingerprints();

    /// What was read and what is trained.
    DataSummary summary();

    /// Measures the model on the data held out.
    Evaluation evaluate(Inference inference, Callback callback);

    /// Floating-point operations for a token (or an image) of a training step; where each weight is used once for
    /// each: two forward, two for the gradient of what it was multiplied with, two for its own.
    default double flops() {
        double all = 0;
        for (Parameter parameter : task().parameters()) {
            boolean frozen = task().start().frozen().contains(parameter.name());
            all += (frozen ? 4.0 : 6.0) * parameter.type().shape().elements();
        }
        return all;
    }

    /// The same without the weights that rows are looked up in, where a graph shows which these are.
    static double flops(Task task) {
        Set<String> tables = new HashSet<>();
        Set<String> multiplied = new HashSet<>();
        for (Value value : task.lossGraph().apply(1).values()) {
            for (Value operand : value.op().operands()) {
                if (operand.op() instanceof Op.Weight weight) {
                    (value.op() instanceof Op.Gather ? tables : multiplied).add(weight.name());
                }
            }
        }
        tables.removeAll(multiplied);
        double all = 0;
        for (Parameter parameter : task.parameters()) {
            boolean frozen = task.start().frozen().contains(parameter.name());
            double each = tables.contains(parameter.name()) ? 0 : frozen ? 4.0 : 6.0;
            all += each * parameter.type().shape().elements();
        }
        return all;
    }

    /// Writes the model with its weights from a store, in which nothing may be pending, and all that belongs to it.
    void save(Path folder, WeightStore store);

    @Override
    void close();
}
