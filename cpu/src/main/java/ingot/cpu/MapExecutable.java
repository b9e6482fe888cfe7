package ingot.cpu;

import ingot.compiler.Backend;
import ingot.compiler.Kernel;
import ingot.compiler.Layout;
import ingot.ir.Shape;
import java.util.ArrayList;
import java.util.List;

/// A map kernel: one pass along the innermost axis, under loops over what is left of the space.
final class MapExecutable implements Backend.Executable, TileTask {
    private final Crew crew;
    private final BoundPass pass;
    private final Loops loops;
    private final int[] arguments;
    private final int piece;
    private final int pieces;
    private final long unitsPerTile;
    private final long units;
    private final long[][] bases;
    private final int[][] indices;
    private long[] addresses = {};

    MapExecutable(Kernel.Map kernel, Crew crew, PassCache cache) {
        this.crew = crew;
        Shape space = kernel.space();
        var builder = new PassBuilder(_ -> null);
        for (int w = 0; w < kernel.writes().size(); w++) {
            builder.write(builder.scalar(kernel.body().output(Integer.toString(w))));
        }
        List<Source> sources = builder.sources();
        List<long[]> steps = new ArrayList<>();
        int operands = sources.size() + kernel.writes().size();
        arguments = new int[operands];
        for (int k = 0; k < sources.size(); k++) {
            switch (sources.get(k)) {
                case Source.Argument(int index, _) -> {
                    arguments[k] = index;
                    steps.add(bytes(kernel.reads().get(index)));
                }
                case Source.Count(int axis) -> {
                    arguments[k] = -1;
                    steps.add(unit(space.rank(), axis));
                }
                case Source.Slot _, Source.Stash _ -> throw new IllegalStateException("map: no scratch values");
            }
        }
        for (int w = 0; w < kernel.writes().size(); w++) {
            arguments[sources.size() + w] = kernel.reads().size() + w;
            steps.add(bytes(kernel.writes().get(w)));
        }
        loops = Loops.inMemoryOrder(space.dims(), steps.toArray(long[][]::new), sources.size());
        pass = cache.bind(
                builder.build(source -> kind(source, loops.innerSteps()[sources.indexOf(source)])), loops.innerSteps());
        crew.grow(operands);

        long elements = space.elements();
        int perElement = 0;
        for (int k = 0; k < operands; k++) {
            perElement += arguments[k] < 0 || loops.innerSteps()[k] == 0 ? 0 : 4;
        }
        long perTile = crew.tileElements(elements, Math.max(4, perElement));
        if (elements == 0) {
            piece = 1;
            pieces = 0;
            unitsPerTile = 1;
        } else if (loops.inner() > perTile) {
            piece = (int) Math.min(loops.inner(), (perTile + 15) / 16 * 16);
            pieces = (loops.inner() + piece - 1) / piece;
            unitsPerTile = 1;
        } else {
            piece = loops.inner();
            pieces = 1;
            unitsPerTile = perTile / loops.inner();
        }
        units = loops.rows() * pieces;
        bases = new long[crew.threads()][operands];
        indices = new int[crew.threads()][loops.outer().length];
    }

    static long[] bytes(Layout layout) {
        return layout.strides().stream()
                .mapToLong(stride -> stride * layout.dtype().bytes())
                .toArray();
    }

    static long[] unit(int rank, int axis) {
        long[] steps = new long[rank];
        steps[axis] = 1;
        return steps;
    }

    static Pass.Kind kind(Source source, long step) {
        if (source instanceof Source.Count) {
            return step == 0 ? Pass.Kind.NUMBER : Pass.Kind.COUNT;
        }
        return step == 0 ? Pass.Kind.SAME : Pass.Kind.EACH;
    }

    @Override
    public long scratchBytes() {
        return 0;
    }

    @Override
    public void run(long[] addresses, long scratch) {
        this.addresses = addresses;
        crew.pool().run(Math.toIntExact((units + unitsPerTile - 1) / unitsPerTile), this);
    }

    @Override
    public void run(int tile, int worker) {
        long unit = tile * unitsPerTile;
        long end = Math.min(units, unit + unitsPerTile);
        Workspace work = crew.workspace(worker);
        long[] at = bases[worker];
        int[] index = indices[worker];
        for (int k = 0; k < at.length; k++) {
            at[k] = arguments[k] < 0 ? 0 : addresses[arguments[k]];
        }
        loops.enter(unit / pieces, index, at);
        if (pieces > 1) {
            int from = (int) (unit % pieces) * piece;
            long[] steps = loops.innerSteps();
            for (int k = 0; k < at.length; k++) {
                at[k] += from * steps[k];
            }
            pass.run(at, Math.min(piece, loops.inner() - from), work);
            return;
        }
        while (true) {
            pass.run(at, piece, work);
            if (++unit == end) {
                return;
            }
            loops.next(index, at);
        }
    }
}
