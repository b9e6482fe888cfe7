package ingot.data;

import ingot.ir.IngotException;

/// Which sequences each step sees: a pure function of (seed, step), with no shuffled list and no state to save.
///
/// Row r of step s is at position p = s·B + r of an endless row of epochs. Epoch p / n visits all n sequences once, in
/// an order of its own keyed by (seed, epoch); a batch may end one epoch and begin the next.
public final class Batches {
    private final int count;
    private final int size;
    private final long seed;
    private Permutation order; // of the epoch asked for last; only a cache
    private long orderEpoch;

    /// Batches of `size` out of `count` sequences.
    public Batches(int count, int size, long seed) {
        if (count < 1) throw new IngotException("batches: there are " + count + " sequences; expected at least 1");
        if (size < 1) throw new IngotException("batch size " + size + ": expected at least 1");
        this.count = count;
        this.size = size;
        this.seed = seed;
        this.order = new Permutation(count, seed, 0);
    }

    public int size() {
        return size;
    }

    /// Steps after which every sequence was seen at least `epochs` times.
    public long steps(double epochs) {
        return (long) Math.ceil(epochs * count / size);
    }

    /// How many times the data was seen before this step.
    public double epoch(long step) {
        return (double) step * size / count;
    }

    /// The sequences of a step, row by row.
    public int[] batch(long step) {
        var rows = new int[size];
        for (int r = 0; r < size; r++) rows[r] = sequence(step, r);
        return rows;
    }

    /// The sequence in one row of a step.
    public int sequence(long step, int row) {
        if (step < 0 || row < 0 || row >= size) {
            throw new IndexOutOfBoundsException("row " + row + " of step " + step + ", batch size " + size);
        }
        long position = Math.addExact(Math.multiplyExact(step, size), row);
        return (int) order(position / count).apply(position % count);
    }

    /// The epoch that one row of a step belongs to.
    public long epoch(long step, int row) {
        return Math.addExact(Math.multiplyExact(step, size), row) / count;
    }

    private synchronized Permutation order(long epoch) {
        if (epoch != orderEpoch) {
            order = new Permutation(count, seed, epoch);
            orderEpoch = epoch;
        }
        return order;
    }
}
