package ingot.ir;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/// Ops that read or write where an index tensor says.
final class Indexing {
    private Indexing() {}

    static void gather(int axis, Tensor x, Tensor indices, Tensor result) {
        Shape shape = x.shape();
        int size = shape.dim(axis);
        long block = shape.strides()[axis] * x.type().dtype().bytes(); // bytes of one slice
        long outer = outer(shape, axis);
        int[] at = Elements.ints(indices);
        long to = 0;
        for (long o = 0; o < outer; o++) {
            for (int index : at) {
                MemorySegment.copy(x.data(), (o * size + clamp(index, size)) * block, result.data(), to, block);
                to += block;
            }
        }
    }

    static void scatterAdd(Op.ScatterAdd op, Tensor indices, Tensor updates, Tensor result) {
        int[] at = Elements.ints(indices);
        int inner = (int) result.shape().strides()[op.axis()];
        int outer = (int) outer(result.shape(), op.axis());
        int run = at.length / op.segments();
        if (updates.type().dtype().isFloating()) {
            float[] u = Elements.floats(updates);
            FixedTree.Rows rows = new FixedTree.Rows();
            for (int s = 0; s < op.segments(); s++) {
                float[] sum = new float[Elements.count(result.type())];
                for (int o = 0; o < outer; o++) {
                    for (int p = s * run; p < (s + 1) * run; p++) {
                        int to = (o * op.size() + clamp(at[p], op.size())) * inner;
                        int from = (o * at.length + p) * inner;
                        for (int i = 0; i < inner; i++) {
                            sum[to + i] = sum[to + i] + u[from + i];
                        }
                    }
                }
                rows.push(sum);
            }
            Elements.store(result, rows.total());
        } else {
            long[] u = Elements.longs(updates);
            long[] sum = new long[Elements.count(result.type())];
            for (int o = 0; o < outer; o++) {
                for (int p = 0; p < at.length; p++) {
                    int to = (o * op.size() + clamp(at[p], op.size())) * inner;
                    int from = (o * at.length + p) * inner;
                    for (int i = 0; i < inner; i++) {
                        sum[to + i] += u[from + i];
                    }
                }
            }
            Elements.store(result, sum);
        }
    }

    static void takeAlong(int axis, Tensor x, Tensor indices, Tensor result) {
        int size = x.shape().dim(axis);
        long inner = x.shape().strides()[axis];
        int length = indices.shape().dim(axis);
        int width = x.type().dtype().bytes();
        int[] at = Elements.ints(indices);
        for (int i = 0; i < at.length; i++) {
            long outer = i / (length * inner);
            long from = (outer * size + clamp(at[i], size)) * inner + i % inner;
            MemorySegment.copy(x.data(), from * width, result.data(), (long) i * width, width);
        }
    }

    static void addAlong(int axis, Tensor indices, Tensor updates, Tensor result) {
        int size = result.shape().dim(axis);
        int inner = (int) result.shape().strides()[axis];
        int length = indices.shape().dim(axis);
        int[] at = Elements.ints(indices);
        if (updates.type().dtype().isFloating()) {
            float[] u = Elements.floats(updates);
            float[] sum = new float[Elements.count(result.type())];
            for (int i = 0; i < at.length; i++) {
                int to = (i / (length * inner) * size + clamp(at[i], size)) * inner + i % inner;
                sum[to] = sum[to] + u[i];
            }
            Elements.store(result, sum);
        } else {
            long[] u = Elements.longs(updates);
            long[] sum = new long[Elements.count(result.type())];
            for (int i = 0; i < at.length; i++) {
                int to = (i / (length * inner) * size + clamp(at[i], size)) * inner + i % inner;
                sum[to] += u[i];
            }
            Elements.store(result, sum);
        }
    }

    static void argSort(int axis, boolean descending, Tensor x, Tensor result) {
        int size = x.shape().dim(axis);
        int inner = (int) x.shape().strides()[axis];
        int n = Elements.count(x.type());
        long[] keys = keys(x);
        Integer[] order = new Integer[size];
        for (int line = 0; size > 0 && line < n / size; line++) {
            int start = line / inner * size * inner + line % inner;
            Arrays.setAll(order, i -> i);
            Arrays.sort(order, (i, j) -> {
                int ascending = Long.compare(keys[start + i * inner], keys[start + j * inner]);
                return descending ? -ascending : ascending;
            });
            for (int i = 0; i < size; i++) {
                result.setLong(start + (long) i * inner, order[i]);
            }
        }
    }

    /// Integers in the order of the elements: −∞ < … < −0 < +0 < … < +∞ < NaN.
    private static long[] keys(Tensor x) {
        if (!x.type().dtype().isFloating()) {
            return Elements.longs(x);
        }
        float[] values = Elements.floats(x);
        long[] keys = new long[values.length];
        for (int i = 0; i < keys.length; i++) {
            int bits = Float.floatToIntBits(values[i]);
            keys[i] = bits >= 0 ? bits : ~(bits & ScalarMath.MAGNITUDE);
        }
        return keys;
    }

    private static int clamp(int index, int size) {
        return Math.max(0, Math.min(index, size - 1));
    }

    private static long outer(Shape shape, int axis) {
        long outer = 1;
        for (int i = 0; i < axis; i++) {
            outer *= shape.dim(i);
        }
        return outer;
    }
}
