package ingot.cpu;

import static ingot.cpu.Memory.getInt;
import static ingot.cpu.Memory.putInt;

import ingot.compiler.Backend;
import ingot.compiler.Kernel;
import ingot.ir.DType;
import ingot.ir.Shape;
import java.util.Arrays;

/// A scatter-add kernel: sorts the positions by row, stably, then every tile owns some rows and adds their updates in
/// order.
final class ScatterAddExecutable implements Backend.Executable {
    private static final int OUT = 0;
    private static final int UPDATES = 1;
    private static final int PARTIAL = 2;

    private final Crew crew;
    private final Loops positions;
    private final Loops row;
    private final RowPass clear;
    private final RowPass add;
    private final RowPass pair;
    private final RowPass copy;
    private final int size;
    private final int count;
    private final int segments;
    private final int tiles;
    private final long outRow;
    private final long partialBytes;
    private final long startBytes;
    private final long orderBytes;
    private final Worker[] workers;
    private final TileTask task = this::rows;
    private long[] addresses = {};
    private long scratch;

    /// A pass over a row; operand k moves through memory like `roles[k]`.
    private record RowPass(BoundPass pass, int... roles) {}

    /// Address lists of one worker.
    private static final class Worker {
        final long[] position = new long[2];
        final int[] positionIndex;
        final int[] rowIndex;
        final long[] moved = new long[3];
        final long[] bases = new long[3];

        Worker(Loops positions, Loops row) {
            positionIndex = new int[positions.outer().length];
            rowIndex = new int[row.outer().length];
        }
    }

    ScatterAddExecutable(Kernel.ScatterAdd kernel, Crew crew, PassCache cache) {
        this.crew = crew;
        DType dtype = kernel.out().dtype();
        segments = kernel.segments();
        size = kernel.out().shape().dim(0);
        count = Math.toIntExact(kernel.indices().shape().elements());
        int axes = kernel.indices().shape().rank();
        long[] updates = MapExecutable.bytes(kernel.updates());
        long[] out = MapExecutable.bytes(kernel.out());
        outRow = out[0];
        int[] dims = Arrays.copyOfRange(kernel.out().shape().dims(), 1, out.length);
        long[] packed = Shape.of(dims).strides();
        for (int axis = 0; axis < packed.length; axis++) {
            packed[axis] *= 4;
        }
        long[] outSteps = Arrays.copyOfRange(out, 1, out.length);
        long[] updateSteps = Arrays.copyOfRange(updates, axes, updates.length);
        positions = Loops.over(
                kernel.indices().shape().dims(),
                new long[][] {MapExecutable.bytes(kernel.indices()), Arrays.copyOf(updates, axes)});
        row = Loops.over(dims, new long[][] {outSteps, updateSteps, packed});
        long o = row.innerSteps()[OUT];
        long u = row.innerSteps()[UPDATES];
        long p = row.innerSteps()[PARTIAL];
        int sum = segments == 1 ? OUT : PARTIAL;
        long x = row.innerSteps()[sum];
        clear = new RowPass(cache.bind(Rows.clear(dtype), new long[] {x}), sum);
        add = new RowPass(cache.bind(Rows.add(dtype, u), new long[] {x, u, x}), sum, UPDATES, sum);
        pair = new RowPass(cache.bind(Rows.add(dtype, p), new long[] {p, p, p}), PARTIAL, PARTIAL, PARTIAL);
        copy = new RowPass(cache.bind(Rows.copy(dtype, p), new long[] {p, o}), PARTIAL, OUT);
        crew.grow(3);
        partialBytes = segments == 1 ? 0 : (Shape.of(dims).elements() * 4 + 63) / 64 * 64;
        startBytes = (4L * (size + 1) + 63) / 64 * 64;
        orderBytes = (4L * count + 63) / 64 * 64;
        tiles = (int) Math.min(size, 8L * crew.threads());
        workers = new Worker[crew.threads()];
        for (int w = 0; w < workers.length; w++) {
            workers[w] = new Worker(positions, row);
        }
    }

    @Override
    public long scratchBytes() {
        return startBytes + orderBytes + crew.threads() * segments * partialBytes;
    }

    @Override
    public void run(long[] addresses, long scratch) {
        this.addresses = addresses;
        this.scratch = scratch;
        sort();
        crew.pool().run(tiles, task);
    }

    private long start(int r) {
        return scratch + 4L * r;
    }

    private long order(int at) {
        return scratch + startBytes + 4L * at;
    }

    /// Counting sort: positions of row r end up in order[start[r] … start[r + 1]), ascending.
    private void sort() {
        Memory.fill(scratch, startBytes, (byte) 0);
        for (int p = 0; p < count; p++) {
            long at = start(target(p) + 1);
            putInt(at, getInt(at) + 1);
        }
        for (int r = 0; r < size; r++) {
            putInt(start(r + 1), getInt(start(r + 1)) + getInt(start(r)));
        }
        for (int p = count - 1; p >= 0; p--) {
            long end = start(target(p) + 1);
            int at = getInt(end) - 1;
            putInt(end, at);
            putInt(order(at), p);
        }
        // Now start[r + 1] is the beginning of row r; shift back.
        for (int r = 0; r < size; r++) {
            putInt(start(r), getInt(start(r + 1)));
        }
        putInt(start(size), count);
    }

    private int target(int position) {
        Worker own = workers[0];
        enter(position, own);
        return Math.clamp(getInt(own.position[0]), 0, size - 1);
    }

    /// Sets the addresses of a position's index and of its row of updates.
    private void enter(int position, Worker worker) {
        long[] at = worker.position;
        at[0] = addresses[0];
        at[1] = addresses[1];
        int inner = positions.inner();
        positions.enter(position / inner, worker.positionIndex, at);
        at[0] += position % inner * positions.innerSteps()[0];
        at[1] += position % inner * positions.innerSteps()[1];
    }

    private void rows(int tile, int worker) {
        int end = boundary(tile + 1);
        for (int r = boundary(tile); r < end; r++) {
            long out = addresses[2] + r * outRow;
            if (segments == 1) {
                chain(r, 0, count, out, worker);
            } else {
                divided(r, out, worker);
            }
        }
    }

    /// The first row of a tile, so that rows and positions are spread evenly.
    private int boundary(int tile) {
        long weight = ((long) size + count) * tile / tiles;
        int low = 0;
        int high = size;
        while (low < high) {
            int middle = (low + high) >>> 1;
            if ((long) middle + getInt(start(middle)) < weight) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return tile == tiles ? size : low;
    }

    /// sum = the updates of row r at positions [from, to), ascending from zero.
    private void chain(int r, int from, int to, long sum, int worker) {
        Worker own = workers[worker];
        run(clear, worker, sum, 0, 0);
        for (int at = getInt(start(r)); at < getInt(start(r + 1)); at++) {
            int p = getInt(order(at));
            if (p >= from && p < to) {
                enter(p, own);
                run(add, worker, sum, own.position[1], sum);
            }
        }
    }

    private void divided(int r, long out, int worker) {
        long partial = scratch + startBytes + orderBytes + worker * segments * partialBytes;
        int length = count / segments;
        for (int s = 0; s < segments; s++) {
            chain(r, s * length, (s + 1) * length, partial + s * partialBytes, worker);
        }
        tree(0, segments, partial, worker);
        run(copy, worker, partial, out, 0);
    }

    private void tree(int first, int n, long partial, int worker) {
        if (n == 1) {
            return;
        }
        int p = Integer.highestOneBit(n - 1);
        tree(first, p, partial, worker);
        tree(first + p, n - p, partial, worker);
        long sum = partial + first * partialBytes;
        run(pair, worker, sum, partial + (first + p) * partialBytes, sum);
    }

    private void run(RowPass pass, int worker, long a, long b, long c) {
        Worker own = workers[worker];
        long[] moved = own.moved;
        long[] at = own.bases;
        int operands = pass.roles.length;
        for (long rest = row.rows(); rest > 0; rest--) {
            at[0] = a + moved[pass.roles[0]];
            at[1] = operands > 1 ? b + moved[pass.roles[1]] : 0;
            at[2] = operands > 2 ? c + moved[pass.roles[2]] : 0;
            pass.pass.run(at, row.inner(), crew.workspace(worker));
            row.next(own.rowIndex, moved); // back at zero after the last
        }
    }
}
