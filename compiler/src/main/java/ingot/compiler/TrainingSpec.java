package ingot.compiler;

import ingot.ir.Graph;
import ingot.ir.IngotException;
import java.util.Set;
import java.util.function.IntFunction;

/// What a training step computes and how it is divided.
///
/// The step sees `batch` sequences. Sums over the batch are chains inside of `shard` sequences and a fixed tree over
/// the shards, so the bits depend on `batch` and `shard` only; `microBatch`, the stages and `recompute` decide memory
/// and speed. Where the batch is one shard its rows may meet outside of sums too.
///
/// @param lossGraph the loss for a batch of the given size; its outputs become the outputs of the program, those that
/// carry the batch must
///     do so on axis 0
/// @param loss the output to differentiate: a scalar that is a sum over the batch
/// @param batch sequences per step
/// @param microBatch sequences computed at a time: the whole batch, or `shard` times a power of two
/// @param shard sequences per chain
/// @param batchedInputs inputs with the batch on axis 0: the caller gives all `batch` rows, each micro-batch reads its
/// own @param perMicroBatchInputs inputs that differ between micro-batches (a random key): the caller gives them
/// stacked, [micro-batches, …] @param recompute backward runs the forward of its stage again instead of keeping
/// activations @param frozen weights without a gradient
public record TrainingSpec(
        IntFunction<Graph> lossGraph,
        String loss,
        int batch,
        int microBatch,
        int shard,
        Set<String> batchedInputs,
        Set<String> perMicroBatchInputs,
        boolean recompute,
        Set<String> frozen) {
    public TrainingSpec {
        batchedInputs = Set.copyOf(batchedInputs);
        perMicroBatchInputs = Set.copyOf(perMicroBatchInputs);
        frozen = Set.copyOf(frozen);
        if (batch < 1 || shard < 1 || batch % shard != 0) {
            throw new IngotException("training: a batch of " + batch + " does not divide into shards of " + shard);
        }
        if (microBatch != batch
                && (microBatch < 1
                        || microBatch > batch
                        || microBatch % shard != 0
                        || Integer.bitCount(microBatch / shard) != 1)) {
            throw new IngotException("training: micro-batch " + microBatch + " must be the batch (" + batch
                    + ") or a power of two times the shard (" + shard + "), else the sums over the batch would change");
        }
    }

    /// How many micro-batches a step has; the last one may be smaller.
    public int microBatches() {
        return (batch + microBatch - 1) / microBatch;
    }

    /// Sequences of micro-batch `index`.
    public int rows(int index) {
        return Math.min(microBatch, batch - index * microBatch);
    }
}
