package ingot.cpu;

import ingot.compiler.Backend;
import ingot.compiler.Kernel;
import ingot.ir.DType;
import ingot.ir.Op.ReduceKind;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/// A row kernel: blocks of rows go through the passes of its plan one after the other, so that a block stays in cache.
final class RowExecutable implements Backend.Executable, TileTask {
    /// What the operands of a block may take: well inside a second-level cache.
    private static final int BLOCK_BYTES = 3 << 16;

    private static final int MOST_ROWS = 256;

    /// A pass with its operands. `sources[k]` is where operand k lies, `rows[k]` the bytes it moves from row to row.
    private record Stage(
            boolean alongRow, BoundPass pass, Source[] sources, long[] rows, int first, Reduced[] reduced) {}

    private record Reduced(ReduceKind kind, DType dtype, int slot) {}

    private final Crew crew;
    private final Stage[] stages;
    private final Loops loops;
    private final int length;
    private final int block;
    private final int blocks;
    private final long unitsPerTile;
    private final long units;
    private final int slots;
    private final int stashes;
    private final long slotBytes;
    private final long stashBytes;
    private final long stashRow;
    private final long workerBytes;
    private final long[][] bases;
    private final long[][][] stageBases;
    private final int[][] indices;
    private long[] addresses = {};
    private long scratch;

    RowExecutable(Kernel.Row kernel, Crew crew, PassCache cache) {
        this.crew = crew;
        RowPlan plan = RowPlan.of(kernel);
        int rank = kernel.space().rank();
        int[] dims = kernel.space().dims();
        length = dims[rank - 1];
        int[] outerDims = Arrays.copyOf(dims, rank - 1);

        // How far each operand of each pass moves along the outer axes; scratch operands do not, they belong to a block.
        List<long[]> outerSteps = new ArrayList<>();
        List<Integer> firsts = new ArrayList<>();
        for (RowPlan.Step step : plan.steps()) {
            firsts.add(outerSteps.size());
            for (Source source : operands(step)) {
                outerSteps.add(Arrays.copyOf(axisSteps(kernel, source), rank - 1));
            }
        }
        loops = Loops.over(outerDims, outerSteps.toArray(long[][]::new));
        stashRow = (4L * length + 63) / 64 * 64;
        int rows = loops.inner();
        int widest = plan.steps().stream()
                .mapToInt(s -> s.alongRow() ? operands(s).size() : 1)
                .max()
                .orElse(1);
        block = block(rows, Math.max(64, 4L * length * (widest + plan.stashes())));
        blocks = rows == 0 ? 0 : (rows + block - 1) / block;
        units = loops.rows() * blocks;
        long perTile = crew.tileElements(kernel.space().elements(), 4L * (widest + plan.stashes()));
        unitsPerTile = Math.max(1, perTile / Math.max(1, (long) block * length));

        slots = plan.slots();
        stashes = plan.stashes();
        slotBytes = (4L * block + 63) / 64 * 64;
        stashBytes = stashRow * block;
        stages = new Stage[plan.steps().size()];
        int lanes = 0;
        for (int s = 0; s < stages.length; s++) {
            stages[s] = stage(kernel, plan.steps().get(s), firsts.get(s), cache);
            lanes = Math.max(lanes, stages[s].reduced.length);
            crew.grow(stages[s].sources.length + stages[s].reduced.length);
        }
        workerBytes = slots * slotBytes + stashes * stashBytes + lanes * 64L;
        bases = new long[crew.threads()][outerSteps.size()];
        indices = new int[crew.threads()][loops.outer().length];
        stageBases = new long[crew.threads()][stages.length][];
        for (long[][] perStage : stageBases) {
            for (int s = 0; s < stages.length; s++) {
                perStage[s] = new long[stages[s].sources.length + stages[s].reduced.length];
            }
        }
    }

    private static int block(int rows, long rowBytes) {
        long fit = Math.clamp(BLOCK_BYTES / rowBytes, 1, MOST_ROWS);
        if (fit >= 16) {
            fit = fit / 16 * 16;
        }
        return (int) Math.max(1, Math.min(rows, fit));
    }

    private static List<Source> operands(RowPlan.Step step) {
        List<Source> operands = new ArrayList<>(step.builder().sources());
        operands.addAll(step.writes());
        return operands;
    }

    /// Bytes (for a count: units) that a source moves along each axis of the space.
    private static long[] axisSteps(Kernel.Row kernel, Source source) {
        int rank = kernel.space().rank();
        return switch (source) {
            case Source.Argument(int index, _) -> {
                int reads = kernel.reads().size();
                yield Arrays.copyOf(
                        MapExecutable.bytes(
                                index < reads
                                        ? kernel.reads().get(index)
                                        : kernel.writes().get(index - reads)),
                        rank);
            }
            case Source.Count(int axis) -> MapExecutable.unit(rank, axis);
            case Source.Slot _, Source.Stash _ -> new long[rank];
        };
    }

    private Stage stage(Kernel.Row kernel, RowPlan.Step step, int first, PassCache cache) {
        List<Source> operands = operands(step);
        long[] inner = new long[operands.size()];
        long[] rows = new long[operands.size()];
        for (int k = 0; k < inner.length; k++) {
            Source source = operands.get(k);
            long row = switch (source) {
                case Source.Slot _ -> 4;
                case Source.Stash _ -> stashRow;
                default -> loops.innerSteps()[first + k];
            };
            rows[k] = row;
            inner[k] = !step.alongRow()
                    ? row
                    : switch (source) {
                        case Source.Slot _ -> 0;
                        case Source.Stash _ -> 4;
                        default -> axisSteps(kernel, source)[kernel.space().rank() - 1];
                    };
        }
        List<Source> sources = step.builder().sources();
        Pass pass = step.builder().build(source -> MapExecutable.kind(source, inner[sources.indexOf(source)]));
        Reduced[] reduced = new Reduced[step.reduced().size()];
        for (int r = 0; r < reduced.length; r++) {
            reduced[r] = new Reduced(
                    pass.reductions().get(r),
                    pass.reduced(r).dtype(),
                    step.reduced().get(r).index());
        }
        return new Stage(
                step.alongRow(), cache.bind(pass, inner), operands.toArray(Source[]::new), rows, first, reduced);
    }

    @Override
    public long scratchBytes() {
        return workerBytes * crew.threads();
    }

    @Override
    public void run(long[] addresses, long scratch) {
        this.addresses = addresses;
        this.scratch = scratch;
        crew.pool().run(Math.toIntExact((units + unitsPerTile - 1) / unitsPerTile), this);
    }

    @Override
    public void run(int tile, int worker) {
        long end = Math.min(units, (tile + 1) * unitsPerTile);
        for (long unit = tile * unitsPerTile; unit < end; unit++) {
            int from = (int) (unit % blocks) * block;
            enter(unit / blocks, from, worker);
            rows(Math.min(block, loops.inner() - from), worker);
        }
    }

    /// Sets the bases of all stages to a block's first row.
    private void enter(long outer, int from, int worker) {
        long[] at = bases[worker];
        for (Stage stage : stages) {
            for (int k = 0; k < stage.sources.length; k++) {
                at[stage.first + k] = stage.sources[k] instanceof Source.Argument(int index, _) ? addresses[index] : 0;
            }
        }
        loops.enter(outer, indices[worker], at);
        for (int k = 0; k < at.length; k++) {
            at[k] += from * loops.innerSteps()[k];
        }
        long own = scratch + worker * workerBytes;
        for (Stage stage : stages) {
            for (int k = 0; k < stage.sources.length; k++) {
                switch (stage.sources[k]) {
                    case Source.Slot(int index, _) -> at[stage.first + k] = own + index * slotBytes;
                    case Source.Stash(int index, _) ->
                        at[stage.first + k] = own + slots * slotBytes + index * stashBytes;
                    case Source.Argument _, Source.Count _ -> {}
                }
            }
        }
    }

    private void rows(int rows, int worker) {
        Workspace work = crew.workspace(worker);
        long own = scratch + worker * workerBytes;
        long lanes = own + slots * slotBytes + stashes * stashBytes;
        for (int s = 0; s < stages.length; s++) {
            Stage stage = stages[s];
            long[] at = stageBases[worker][s];
            System.arraycopy(bases[worker], stage.first, at, 0, stage.sources.length);
            if (!stage.alongRow) {
                stage.pass.run(at, rows, work);
                continue;
            }
            for (int r = 0; r < stage.reduced.length; r++) {
                at[stage.sources.length + r] = lanes + 64L * r;
            }
            for (int row = 0; row < rows; row++) {
                stage.pass.run(at, length, work);
                for (int r = 0; r < stage.reduced.length; r++) {
                    Reduced reduced = stage.reduced[r];
                    Lanes.finish(
                            reduced.kind, reduced.dtype, lanes + 64L * r, own + reduced.slot * slotBytes + 4L * row);
                }
                for (int k = 0; k < stage.rows.length; k++) {
                    at[k] += stage.rows[k];
                }
            }
        }
    }
}
