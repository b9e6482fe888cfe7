package ingot.ir;

import ingot.ir.Op.ReduceKind;
import java.util.Arrays;
import java.util.List;

/// Ops that move a window over the axes of a tensor.
final class Windows {
    /// Instead of an element: what lies between elements that are spread, and what lies before and after them.
    private static final int GAP = -1;

    private static final int PADDING = -2;

    private Windows() {}

    static void convolution(Op.Convolution op, Tensor x, Tensor kernel, Tensor result) {
        int[] in = x.shape().dims();
        int[] window = kernel.shape().dims();
        int[] out = result.shape().dims();
        int spatial = in.length - 2;
        int[][] table = new int[spatial][];
        for (int i = 0; i < spatial; i++) {
            table[i] = positions(in[i + 2], window[i + 2], out[i + 2], op.window(), i);
        }
        Grid grid = new Grid(
                Arrays.copyOfRange(in, 2, in.length),
                Arrays.copyOfRange(window, 2, in.length),
                Arrays.copyOfRange(out, 2, in.length),
                table);
        float[] values = Elements.floats(x);
        float[] weights = Elements.floats(kernel);
        float[] target = Elements.target(result);
        int run = window[1] / op.segments();
        for (int n = 0; n < out[0]; n++) {
            for (int o = 0; o < out[1]; o++) {
                int batch = o / (out[1] / op.batchGroups()) * out[0] + n;
                int firstChannel = o / (out[1] / op.groups()) * window[1];
                FixedTree.Rows rows = new FixedTree.Rows();
                for (int s = 0; s < op.segments(); s++) {
                    float[] acc = new float[grid.outputs];
                    for (int c = s * run; c < (s + 1) * run; c++) {
                        int from = (batch * in[1] + firstChannel + c) * grid.inputs;
                        for (int w = 0; w < grid.windows; w++) {
                            float weight = weights[(o * window[1] + c) * grid.windows + w];
                            for (int p = 0; p < grid.outputs; p++) {
                                int at = grid.at(p, w);
                                if (at != GAP) {
                                    acc[p] = Math.fma(at == PADDING ? 0 : values[from + at], weight, acc[p]);
                                }
                            }
                        }
                    }
                    rows.push(acc);
                }
                System.arraycopy(rows.total(), 0, target, (n * out[1] + o) * grid.outputs, grid.outputs);
            }
        }
        Elements.store(result, target);
    }

    static void reduceWindow(Op.ReduceWindow op, Tensor x, Tensor result) {
        Grid grid = grid(x.shape(), op.size(), result.shape(), op.window());
        ReduceKind kind = op.kind();
        if (x.type().dtype().isFloating()) {
            float[] values = Elements.floats(x);
            float[] out = Elements.target(result);
            for (int p = 0; p < grid.outputs; p++) {
                float acc = Reductions.identity(kind);
                for (int w = 0; w < grid.windows; w++) {
                    int at = grid.at(p, w);
                    acc = at < 0 ? acc : Reductions.combine(kind, acc, values[at]);
                }
                out[p] = acc;
            }
            Elements.store(result, out);
        } else {
            long[] values = Elements.longs(x);
            long[] out = new long[grid.outputs];
            for (int p = 0; p < grid.outputs; p++) {
                long acc = Reductions.identity(kind, x.type().dtype());
                for (int w = 0; w < grid.windows; w++) {
                    int at = grid.at(p, w);
                    acc = at < 0 ? acc : Reductions.combine(kind, acc, values[at]);
                }
                out[p] = acc;
            }
            Elements.store(result, out);
        }
    }

    static void scatterMax(Op.ScatterWindowMax op, Tensor x, Tensor updates, Tensor result) {
        Grid grid = grid(x.shape(), op.size(), updates.shape(), op.window());
        if (x.type().dtype().isFloating()) {
            float[] values = Elements.floats(x);
            float[] u = Elements.floats(updates);
            float[] sum = new float[values.length];
            for (int p = 0; p < grid.outputs; p++) {
                int best = -1;
                for (int w = 0; w < grid.windows; w++) {
                    int at = grid.at(p, w);
                    if (at >= 0 && (best < 0 || Float.compare(values[at], values[best]) > 0)) {
                        best = at;
                    }
                }
                if (best >= 0) {
                    sum[best] = sum[best] + u[p];
                }
            }
            Elements.store(result, sum);
        } else {
            long[] values = Elements.longs(x);
            long[] u = Elements.longs(updates);
            long[] sum = new long[values.length];
            for (int p = 0; p < grid.outputs; p++) {
                int best = -1;
                for (int w = 0; w < grid.windows; w++) {
                    int at = grid.at(p, w);
                    if (at >= 0 && (best < 0 || values[at] > values[best])) {
                        best = at;
                    }
                }
                if (best >= 0) {
                    sum[best] += u[p];
                }
            }
            Elements.store(result, sum);
        }
    }

    private static Grid grid(Shape x, List<Integer> size, Shape out, Op.Window window) {
        int[][] table = new int[x.rank()][];
        for (int i = 0; i < table.length; i++) {
            table[i] = positions(x.dim(i), size.get(i), out.dim(i), window, i);
        }
        return new Grid(x.dims(), size.stream().mapToInt(Integer::intValue).toArray(), out.dims(), table);
    }

    /// [output position × window position] → the element on one axis, or that there is none.
    private static int[] positions(int in, int size, int out, Op.Window window, int axis) {
        int[] table = new int[out * size];
        int dilation = window.inputDilation().get(axis);
        for (int p = 0; p < out; p++) {
            for (int w = 0; w < size; w++) {
                int at = p * window.strides().get(axis)
                        + w * window.windowDilation().get(axis)
                        - window.low().get(axis);
                boolean inside = at >= 0 && at <= (in - 1) * dilation;
                table[p * size + w] = Math.floorMod(at, dilation) != 0 ? GAP : inside ? at / dilation : PADDING;
            }
        }
        return table;
    }

    /// The pairing of every output position with every window position, all axes together, row-major.
    private static final class Grid {
        final int inputs;
        final int windows;
        final int outputs;
        private final int[] pairs; // [windows, outputs]

        Grid(int[] in, int[] window, int[] out, int[][] table) {
            this.inputs = product(in);
            this.windows = product(window);
            this.outputs = product(out);
            this.pairs = new int[Math.multiplyExact(windows, outputs)];
            for (int w = 0; w < windows; w++) {
                for (int p = 0; p < outputs; p++) {
                    pairs[w * outputs + p] = pair(p, w, in, window, out, table);
                }
            }
        }

        /// The element that window position w of output position p reads, or `GAP` or `PADDING`.
        int at(int p, int w) {
            return pairs[w * outputs + p];
        }

        private static int pair(int p, int w, int[] in, int[] window, int[] out, int[][] table) {
            int at = 0;
            int stride = 1;
            boolean padding = false;
            for (int i = in.length - 1; i >= 0; i--) {
                int element = table[i][p % out[i] * window[i] + w % window[i]];
                if (element == GAP) {
                    return GAP;
                }
                padding |= element == PADDING;
                at += element * stride;
                stride *= in[i];
                p /= out[i];
                w /= window[i];
            }
            return padding ? PADDING : at;
        }

        private static int product(int[] sizes) {
            int product = 1;
            for (int size : sizes) {
                product *= size;
            }
            return product;
        }
    }
}
