package ingot.cpu;

import ingot.compiler.Backend;
import ingot.compiler.Kernel;
import ingot.ir.DType;
import ingot.ir.Op;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Shape;
import ingot.ir.Value;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Pooling and the gradient of max pooling, over row-major F32: which element a window's position reads is a table,
/// made once for the axes along which windows move; the axes before them are independent planes.
final class WindowExecutable implements Backend.Executable {
    private static final int NONE = -1;

    private enum Kind {
        SUM,
        MAX,
        SCATTER_MAX
    }

    private final Crew crew;
    private final Kind kind;
    private final int planes;
    private final int inputs; // elements of a plane
    private final int outputs;
    private final int[] pairs; // [windows, outputs]
    private final int windows;

    private WindowExecutable(Kind kind, Shape in, List<Integer> size, Shape out, Op.Window window, Crew crew) {
        this.crew = crew;
        this.kind = kind;
        int moved = 0;
        int count = 1;
        while (moved < in.rank() && isStill(size, window, moved)) {
            count *= in.dim(moved++);
        }
        planes = count;
        int[] inner = Arrays.copyOfRange(in.dims(), moved, in.rank());
        int[] positions = Arrays.copyOfRange(out.dims(), moved, in.rank());
        int[] sizes = new int[inner.length];
        for (int i = 0; i < sizes.length; i++) {
            sizes[i] = size.get(moved + i);
        }
        inputs = product(inner);
        outputs = product(positions);
        windows = product(sizes);
        pairs = new int[Math.multiplyExact(windows, outputs)];
        for (int w = 0; w < windows; w++) {
            for (int p = 0; p < outputs; p++) {
                pairs[w * outputs + p] = element(w, p, moved, inner, positions, sizes, window);
            }
        }
    }

    /// Null for other loops.
    static @Nullable WindowExecutable of(Kernel.Loop loop, Crew crew) {
        if (loop.reads().stream().anyMatch(layout -> layout.dtype() != DType.F32)) {
            return null;
        }
        return switch (loop.body().output("0").op()) {
            case Op.ReduceWindow(var reduce, Value x, List<Integer> size, Op.Window window)
            when isFirst(x) && loop.reads().size() == 1 -> {
                Kind kind = reduce == ReduceKind.SUM ? Kind.SUM : Kind.MAX;
                yield new WindowExecutable(
                        kind, x.shape(), size, loop.writes().getFirst().shape(), window, crew);
            }
            case Op.ScatterWindowMax(Value x, Value updates, List<Integer> size, Op.Window window)
            when isFirst(x) && loop.reads().size() == 2 ->
                new WindowExecutable(Kind.SCATTER_MAX, x.shape(), size, updates.shape(), window, crew);
            default -> null;
        };
    }

    private static boolean isFirst(Value x) {
        return x.op() instanceof Op.Input(String name, _) && name.equals("0");
    }

    private static boolean isStill(List<Integer> size, Op.Window window, int axis) {
        return size.get(axis) == 1
                && window.strides().get(axis) == 1
                && window.low().get(axis) == 0
                && window.high().get(axis) == 0
                && window.inputDilation().get(axis) == 1;
    }

    private static int product(int[] sizes) {
        return Arrays.stream(sizes).reduce(1, Math::multiplyExact);
    }

    /// The element of a plane that window position w of output p reads.
    private static int element(int w, int p, int moved, int[] in, int[] positions, int[] sizes, Op.Window window) {
        int element = 0;
        int step = 1;
        for (int i = in.length - 1; i >= 0; i--) {
            int axis = moved + i;
            int dilation = window.inputDilation().get(axis);
            int at = p % positions[i] * window.strides().get(axis)
                    + w % sizes[i] * window.windowDilation().get(axis)
                    - window.low().get(axis);
            if (at < 0 || at > (in[i] - 1) * dilation || at % dilation != 0) {
                return NONE;
            }
            element += at / dilation * step;
            step *= in[i];
            p /= positions[i];
            w /= sizes[i];
        }
        return element;
    }

    private void sum(long x, long result) {
        for (int p = 0; p < outputs; p++) {
            float sum = 0;
            for (int w = 0; w < windows; w++) {
                int at = pairs[w * outputs + p];
                if (at != NONE) {
                    sum += Memory.getFloat(x + 4L * at);
                }
            }
            Memory.putFloat(result + 4L * p, sum);
        }
    }

    private void max(long x, long result) {
        for (int p = 0; p < outputs; p++) {
            float most = Float.NEGATIVE_INFINITY;
            for (int w = 0; w < windows; w++) {
                int at = pairs[w * outputs + p];
                if (at != NONE) {
                    most = Math.max(most, Memory.getFloat(x + 4L * at));
                }
            }
            Memory.putFloat(result + 4L * p, most);
        }
    }

    private void scatter(long x, long updates, long result) {
        Memory.fill(result, 4L * inputs, (byte) 0);
        for (int p = 0; p < outputs; p++) {
            int best = NONE;
            float most = 0;
            for (int w = 0; w < windows; w++) {
                int at = pairs[w * outputs + p];
                if (at != NONE) {
                    float value = Memory.getFloat(x + 4L * at);
                    if (best == NONE || Float.compare(value, most) > 0) {
                        best = at;
                        most = value;
                    }
                }
            }
            if (best != NONE) {
                long to = result + 4L * best;
                Memory.putFloat(to, Memory.getFloat(to) + Memory.getFloat(updates + 4L * p));
            }
        }
    }

    @Override
    public long scratchBytes() {
        return 0;
    }

    @Override
    public void run(long[] addresses, long scratch) {
        long result = addresses[addresses.length - 1];
        long perTile = Math.max(1, crew.tileElements((long) planes * outputs, 4L * windows) / Math.max(1, outputs));
        crew.pool().run(Math.toIntExact(Math.ceilDiv(planes, perTile)), (tile, worker) -> {
            long end = Math.min(planes, (tile + 1) * perTile);
            for (long i = tile * perTile; i < end; i++) {
                long x = addresses[0] + 4 * i * inputs;
                switch (kind) {
                    case SUM -> sum(x, result + 4 * i * outputs);
                    case MAX -> max(x, result + 4 * i * outputs);
                    case SCATTER_MAX -> scatter(x, addresses[1] + 4 * i * outputs, result + 4 * i * inputs);
                }
            }
        });
    }
}
