package ingot.cpu;

import ingot.compiler.Backend;
import ingot.compiler.Kernel;
import java.util.Arrays;

/// A gather kernel: copies one row of the table per position.
final class GatherExecutable implements Backend.Executable, TileTask {
    private final Crew crew;
    private final Loops positions;
    private final Loops row;
    private final BoundPass copy;
    private final int size;
    private final long tableRow;
    private final long count;
    private final long perTile;
    private final long[][] bases;
    private final long[][] rowBases;
    private final int[][] indices;
    private final int[][] rowIndices;
    private long[] addresses = {};

    GatherExecutable(Kernel.Gather kernel, Crew crew, PassCache cache) {
        this.crew = crew;
        int axes = kernel.indices().shape().rank();
        int rank = kernel.out().shape().rank();
        long[] out = MapExecutable.bytes(kernel.out());
        long[] table = MapExecutable.bytes(kernel.table());
        size = kernel.table().shape().dim(0);
        tableRow = table[0];
        positions = Loops.over(
                kernel.indices().shape().dims(),
                new long[][] {MapExecutable.bytes(kernel.indices()), Arrays.copyOf(out, axes)});
        row = Loops.over(
                Arrays.copyOfRange(kernel.out().shape().dims(), axes, rank),
                new long[][] {Arrays.copyOfRange(table, 1, table.length), Arrays.copyOfRange(out, axes, rank)});
        copy = cache.bind(Rows.copy(kernel.table().dtype(), row.innerSteps()[0]), row.innerSteps());
        crew.grow(2);
        count = kernel.indices().shape().elements();
        long width = row.rows() * row.inner();
        perTile = Math.max(1, crew.tileElements(count * width, 8) / Math.max(1, width));
        bases = new long[crew.threads()][2];
        rowBases = new long[crew.threads()][2];
        indices = new int[crew.threads()][positions.outer().length];
        rowIndices = new int[crew.threads()][row.outer().length];
    }

    @Override
    public long scratchBytes() {
        return 0;
    }

    @Override
    public void run(long[] addresses, long scratch) {
        this.addresses = addresses;
        crew.pool().run(Math.toIntExact((count + perTile - 1) / perTile), this);
    }

    @Override
    public void run(int tile, int worker) {
        long[] at = bases[worker];
        long[] ends = rowBases[worker];
        int inner = positions.inner();
        long[] steps = positions.innerSteps();
        long end = Math.min(count, (tile + 1) * perTile);
        for (long p = tile * perTile; p < end; p++) {
            at[0] = addresses[1];
            at[1] = addresses[2];
            positions.enter(p / inner, indices[worker], at);
            long j = p % inner;
            int index = Math.clamp(Memory.getInt(at[0] + j * steps[0]), 0, size - 1);
            ends[0] = addresses[0] + index * tableRow;
            ends[1] = at[1] + j * steps[1];
            Rows.run(copy, row, ends, rowIndices[worker], crew.workspace(worker));
        }
    }
}
