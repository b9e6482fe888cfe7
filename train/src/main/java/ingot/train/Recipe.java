package ingot.train;

import ingot.ir.IngotException;

/// How a task is trained: the settings behind every face of this package.
///
/// `batch`, `shard`, `seed`, the optimizer, the schedule and `clip` decide the bits. `microBatch` and `recompute` decide
/// memory and speed only.
///
/// @param batch rows per step
/// @param microBatch rows computed at a time: 0 for the whole batch, or `shard` times a power of two
/// @param shard rows per chain of the sums over the batch; divides `batch`
/// @param clip greatest global norm of the gradients; 0: no clipping
/// @param recompute the backward of a stage computes its forward again instead of keeping activations
public record Recipe(
        Optimizer optimizer,
        Schedule schedule,
        int batch,
        int microBatch,
        int shard,
        long seed,
        double clip,
        boolean recompute) {
    public Recipe {
        if (batch < 1) {
            throw new IngotException("recipe: batch expected at least 1, got " + batch);
        }
        if (!(clip >= 0)) {
            throw new IngotException("recipe: clip expected at least 0 (0: none), got " + clip);
        }
    }

    /// Batches as a whole, one row per shard, seed 1, no clipping.
    public static Recipe of(Optimizer optimizer, Schedule schedule, int batch) {
        return new Recipe(optimizer, schedule, batch, 0, 1, 1, 0, false);
    }

    public Recipe withMicroBatch(int rows) {
        return new Recipe(optimizer, schedule, batch, rows, shard, seed, clip, recompute);
    }

    public Recipe withShard(int rows) {
        return new Recipe(optimizer, schedule, batch, microBatch, rows, seed, clip, recompute);
    }

    public Recipe withSeed(long other) {
        return new Recipe(optimizer, schedule, batch, microBatch, shard, other, clip, recompute);
    }

    public Recipe withClip(double norm) {
        return new Recipe(optimizer, schedule, batch, microBatch, shard, seed, norm, recompute);
    }

    public Recipe withRecompute(boolean again) {
        return new Recipe(optimizer, schedule, batch, microBatch, shard, seed, clip, again);
    }

    /// Rows computed at a time.
    int rows() {
        return microBatch == 0 ? batch : microBatch;
    }
}
