package ingot.cpu;

import ingot.compiler.Backend;
import ingot.compiler.Kernel;
import ingot.compiler.Layout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/// A column kernel: rows are added one after the other into 16 accumulator rows, vectorised over columns.
///
/// Many columns: every tile owns a block of columns from the first row to the result. Few columns: the lanes, which do
/// not depend on each other, are divided among tiles, and a second round of tiles combines them.
final class ColumnExecutable implements Backend.Executable {
    private static final int BLOCK = 512;

    /// An operand: its argument (−1: none), and the bytes it moves per row.
    private record Operand(int argument, long row) {}

    private final Crew crew;
    private final BoundPass accumulate;
    private final BoundPass results;
    private final BoundPass[] trees;
    private final BoundPass[] pairs;
    private final int[] identities;
    private final int[] accumulators;
    private final Operand[] operands;
    private final int rows;
    private final int segments;
    private final int reads;
    private final int resultsFirst;
    private final Source[] resultSources;
    private final int reductions;
    private final Loops loops;
    private final int block;
    private final int blocks;
    private final int groups;
    private final boolean divided;
    private final long laneRow;
    private final long sumsBytes;
    private final long lanesBytes;
    private final long[][] bases;
    private final long[][][] lists;
    private final int[][] indices;
    private final TileTask whole = this::whole;
    private final TileTask part = this::part;
    private final TileTask last = this::last;
    private long[] addresses = {};
    private long scratch;

    ColumnExecutable(Kernel.Column kernel, Crew crew, PassCache cache) {
        this.crew = crew;
        ColumnPlan plan = ColumnPlan.of(kernel);
        int rank = kernel.space().rank();
        rows = kernel.space().dim(0);
        segments = plan.segments();
        reductions = plan.reductions().size();
        int[] columns = Arrays.copyOfRange(kernel.space().dims(), 1, rank);

        List<Source> sources = plan.accumulate().sources();
        reads = sources.size();
        resultsFirst = reads + reductions;
        List<Source> resultReads = plan.results().sources();
        resultSources = resultReads.toArray(Source[]::new);
        List<Operand> list = new ArrayList<>();
        List<long[]> steps = new ArrayList<>();
        for (Source source : sources) {
            switch (source) {
                case Source.Argument(int index, _) -> {
                    long[] all = MapExecutable.bytes(kernel.reads().get(index));
                    list.add(new Operand(index, all[0]));
                    steps.add(Arrays.copyOfRange(all, 1, rank));
                }
                case Source.Count(int axis) -> {
                    list.add(new Operand(-1, axis == 0 ? 1 : 0));
                    steps.add(axis == 0 ? new long[rank - 1] : MapExecutable.unit(rank - 1, axis - 1));
                }
                case Source.Slot _, Source.Stash _ -> {
                    list.add(new Operand(-1, 0));
                    steps.add(new long[rank - 1]);
                }
            }
        }
        for (int r = 0; r < reductions; r++) {
            list.add(new Operand(-1, 0));
            steps.add(new long[rank - 1]);
        }
        for (Source source : resultReads) {
            switch (source) {
                case Source.Argument(int index, _) -> {
                    list.add(new Operand(index, 0));
                    steps.add(MapExecutable.bytes(kernel.reads().get(index)));
                }
                case Source.Count(int axis) -> {
                    list.add(new Operand(-1, 0));
                    steps.add(MapExecutable.unit(rank - 1, axis));
                }
                case Source.Slot _, Source.Stash _ -> {
                    list.add(new Operand(-1, 0));
                    steps.add(new long[rank - 1]);
                }
            }
        }
        for (int w = 0; w < kernel.writes().size(); w++) {
            Layout layout = kernel.writes().get(w);
            list.add(new Operand(kernel.reads().size() + w, 0));
            steps.add(MapExecutable.bytes(layout));
        }
        operands = list.toArray(Operand[]::new);
        loops = Loops.inMemoryOrder(columns, steps.toArray(long[][]::new), lead(steps));

        accumulate = bind(plan.accumulate(), 0, reductions, cache);
        results = bind(plan.results(), resultsFirst, kernel.writes().size(), cache);
        trees = new BoundPass[reductions];
        pairs = new BoundPass[reductions];
        identities = new int[reductions];
        accumulators = new int[reductions];
        long[] packed = new long[17];
        Arrays.fill(packed, 4);
        for (int r = 0; r < reductions; r++) {
            ColumnPlan.Reduction reduction = plan.reductions().get(r);
            trees[r] = cache.bind(ColumnPlan.tree(reduction), packed);
            pairs[r] = cache.bind(ColumnPlan.pair(reduction), Arrays.copyOf(packed, 3));
            accumulators[r] = sources.indexOf(new Source.Stash(r, reduction.dtype()));
            identities[r] = Lanes.identity(reduction.kind(), reduction.dtype());
        }
        crew.grow(Math.max(17, operands.length));

        int inner = loops.inner();
        long fullBlocks = loops.rows() * ((inner + BLOCK - 1) / BLOCK);
        divided = fullBlocks < 4L * crew.threads();
        block = Math.max(1, Math.min(inner, BLOCK));
        blocks = inner == 0 ? 0 : Math.toIntExact(loops.rows() * ((inner + block - 1) / block));
        int wanted = 1;
        while (divided && wanted < 16 && (long) wanted * segments * Math.max(1, blocks) < 4L * crew.threads()) {
            wanted *= 2;
        }
        groups = wanted;
        long width = divided ? (long) blocks * block : block;
        laneRow = (4 * width + 63) / 64 * 64;
        sumsBytes = laneRow * segments * reductions;
        lanesBytes = laneRow * 16 * reductions * (divided ? segments : 1);

        int threads = crew.threads();
        bases = new long[threads][operands.length];
        indices = new int[threads][loops.outer().length];
        lists = new long[threads][3][];
        for (long[][] perWorker : lists) {
            perWorker[0] = new long[resultsFirst];
            perWorker[1] = new long[operands.length - resultsFirst];
            perWorker[2] = new long[17];
        }
    }

    /// The operand whose order of memory the columns follow: the read that moves along most axes.
    private static int lead(List<long[]> steps) {
        int lead = 0;
        long most = -1;
        for (int k = 0; k < steps.size(); k++) {
            long moving = Arrays.stream(steps.get(k)).filter(step -> step != 0).count();
            if (moving > most) {
                most = moving;
                lead = k;
            }
        }
        return lead;
    }

    private BoundPass bind(PassBuilder builder, int first, int writes, PassCache cache) {
        List<Source> sources = builder.sources();
        long[] steps = new long[sources.size() + writes];
        for (int k = 0; k < steps.length; k++) {
            boolean scratchRow =
                    k < sources.size() ? sources.get(k) instanceof Source.Stash : first == 0; // the accumulators
            steps[k] = scratchRow ? 4 : loops.innerSteps()[first + k];
        }
        return cache.bind(builder.build(source -> MapExecutable.kind(source, steps[sources.indexOf(source)])), steps);
    }

    @Override
    public long scratchBytes() {
        return (lanesBytes + sumsBytes) * (divided ? 1 : crew.threads());
    }

    @Override
    public void run(long[] addresses, long scratch) {
        this.addresses = addresses;
        this.scratch = scratch;
        if (divided) {
            crew.pool().run(segments * groups * blocks, part);
            crew.pool().run(blocks, last);
        } else {
            crew.pool().run(blocks, whole);
        }
    }

    private void whole(int tile, int worker) {
        long lanes = scratch + worker * (lanesBytes + sumsBytes);
        long sums = lanes + lanesBytes;
        int width = enter(tile, worker);
        for (int s = 0; s < segments; s++) {
            add(s, 0, 16, width, lanes, worker);
            combine(s, width, lanes, sums, worker);
        }
        finish(width, sums, worker);
    }

    private void part(int tile, int worker) {
        int s = tile / (groups * blocks);
        int group = tile / blocks % groups;
        int at = tile % blocks;
        int width = enter(at, worker);
        int perGroup = 16 / groups;
        add(s, group * perGroup, perGroup, width, scratch + lanes(s) + 4L * at * block, worker);
    }

    private void last(int tile, int worker) {
        int width = enter(tile, worker);
        long sums = scratch + lanesBytes + 4L * tile * block;
        for (int s = 0; s < segments; s++) {
            combine(s, width, scratch + lanes(s) + 4L * tile * block, sums, worker);
        }
        finish(width, sums, worker);
    }

    private long lanes(int segment) {
        return segment * (lanesBytes / segments);
    }

    /// Sets the bases to row 0 of a block of columns; returns its width.
    private int enter(int tile, int worker) {
        long[] at = bases[worker];
        for (int k = 0; k < at.length; k++) {
            at[k] = operands[k].argument < 0 ? 0 : addresses[operands[k].argument];
        }
        int perRow = (loops.inner() + block - 1) / block;
        loops.enter(tile / perRow, indices[worker], at);
        int from = tile % perRow * block;
        for (int k = 0; k < at.length; k++) {
            at[k] += from * loops.innerSteps()[k];
        }
        return Math.min(block, loops.inner() - from);
    }

    /// Adds the rows of a segment that belong to `count` lanes from `first` on.
    private void add(int segment, int first, int count, int width, long lanes, int worker) {
        for (int r = 0; r < reductions; r++) {
            for (int l = first; l < first + count; l++) {
                fill(lanes + (16L * r + l) * laneRow, width, identities[r]);
            }
        }
        Workspace work = crew.workspace(worker);
        long[] start = bases[worker];
        long[] at = lists[worker][0];
        int length = rows / segments;
        for (int from = 0; from < length; from += 16) {
            for (int l = first; l < first + count && from + l < length; l++) {
                long row = (long) segment * length + from + l;
                for (int k = 0; k < at.length; k++) {
                    at[k] = start[k] + row * operands[k].row;
                }
                for (int r = 0; r < reductions; r++) {
                    long lane = lanes + (16L * r + l) * laneRow;
                    at[accumulators[r]] = lane;
                    at[reads + r] = lane;
                }
                accumulate.run(at, width, work);
            }
        }
    }

    private static void fill(long address, int n, int bits) {
        for (int i = 0; i < n; i++) {
            Memory.putInt(address + 4L * i, bits);
        }
    }

    /// The 16 lanes of a segment become its row of sums.
    private void combine(int segment, int width, long lanes, long sums, int worker) {
        long[] at = lists[worker][2];
        for (int r = 0; r < reductions; r++) {
            for (int l = 0; l < 16; l++) {
                at[l] = lanes + (16L * r + l) * laneRow;
            }
            at[16] = sums + ((long) r * segments + segment) * laneRow;
            trees[r].run(at, width, crew.workspace(worker));
        }
    }

    private void finish(int width, long sums, int worker) {
        for (int r = 0; r < reductions; r++) {
            tree(r, 0, segments, width, sums + (long) r * segments * laneRow, worker);
        }
        long[] at = lists[worker][1];
        System.arraycopy(bases[worker], resultsFirst, at, 0, at.length);
        for (int k = 0; k < resultSources.length; k++) {
            if (resultSources[k] instanceof Source.Stash(int index, _)) {
                at[k] = sums + (long) index * segments * laneRow;
            }
        }
        results.run(at, width, crew.workspace(worker));
    }

    /// tree(x₀ … xₙ₋₁) = tree(first p) + tree(the others), p the largest power of two below n; the result replaces x₀.
    private void tree(int reduction, int first, int n, int width, long sums, int worker) {
        if (n == 1) {
            return;
        }
        int p = Integer.highestOneBit(n - 1);
        tree(reduction, first, p, width, sums, worker);
        tree(reduction, first + p, n - p, width, sums, worker);
        long[] at = lists[worker][2];
        at[0] = sums + first * laneRow;
        at[1] = sums + (first + p) * laneRow;
        at[2] = at[0];
        pairs[reduction].run(at, width, crew.workspace(worker));
    }
}
