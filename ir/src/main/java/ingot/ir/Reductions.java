package ingot.ir;

import ingot.ir.Op.ReduceKind;
import java.util.ArrayList;
import java.util.List;

/// Sums, products and extremes along axes.
final class Reductions {
    private static final int LANES = 16;

    private Reductions() {}

    static void reduce(Op.Reduce op, Tensor x, Tensor result) {
        List<Integer> order = new ArrayList<>();
        for (int i = 0; i < x.shape().rank(); i++) {
            if (!op.axes().contains(i)) {
                order.add(i);
            }
        }
        order.addAll(op.axes());
        Tensor arranged = Movement.arranged(x, order); // [kept…, reduced…]
        int outer = Elements.count(result.type());
        int n = 1;
        for (int axis : op.axes()) {
            n *= x.shape().dim(axis);
        }
        if (x.type().dtype().isFloating()) {
            float[] values = Elements.floats(arranged);
            float[] out = Elements.target(result);
            float[] parts = new float[op.segments()];
            int run = n / op.segments();
            for (int o = 0; o < outer; o++) {
                for (int s = 0; s < parts.length; s++) {
                    parts[s] = reduce(op.kind(), values, o * n + s * run, run);
                }
                out[o] = FixedTree.sum(parts);
            }
            Elements.store(result, out);
        } else {
            long[] values = Elements.longs(arranged);
            long[] out = new long[outer];
            for (int o = 0; o < outer; o++) {
                long acc = identity(op.kind(), x.type().dtype());
                for (int i = 0; i < n; i++) {
                    acc = combine(op.kind(), acc, values[o * n + i]);
                }
                out[o] = acc;
            }
            Elements.store(result, out);
        }
    }

    private static float reduce(ReduceKind kind, float[] x, int start, int n) {
        float[] lane = new float[LANES];
        java.util.Arrays.fill(lane, identity(kind));
        for (int i = 0; i < n; i++) {
            lane[i % LANES] = combine(kind, lane[i % LANES], x[start + i]);
        }
        for (int h = LANES / 2; h >= 1; h /= 2) {
            for (int l = 0; l < h; l++) {
                lane[l] = combine(kind, lane[l], lane[l + h]);
            }
        }
        return lane[0];
    }

    static void cumulative(Op.Cumulative op, Tensor x, Tensor result) {
        int size = x.shape().dim(op.axis());
        int inner = (int) x.shape().strides()[op.axis()];
        int n = Elements.count(x.type());
        int lines = size == 0 ? 0 : n / size;
        int first = op.reverse() ? size - 1 : 0;
        int step = op.reverse() ? -inner : inner;
        if (x.type().dtype().isFloating()) {
            float[] values = Elements.floats(x);
            float[] out = Elements.target(result);
            for (int line = 0; line < lines; line++) {
                int at = line / inner * size * inner + line % inner + first * inner;
                float acc = identity(op.kind());
                for (int i = 0; i < size; i++, at += step) {
                    acc = combine(op.kind(), acc, values[at]);
                    out[at] = acc;
                }
            }
            Elements.store(result, out);
        } else {
            long[] values = Elements.longs(x);
            long[] out = new long[n];
            for (int line = 0; line < lines; line++) {
                int at = line / inner * size * inner + line % inner + first * inner;
                long acc = identity(op.kind(), x.type().dtype());
                for (int i = 0; i < size; i++, at += step) {
                    acc = combine(op.kind(), acc, values[at]);
                    out[at] = acc;
                }
            }
            Elements.store(result, out);
        }
    }

    static float identity(ReduceKind kind) {
        return switch (kind) {
            case SUM -> 0f;
            case PRODUCT -> 1f;
            case MIN -> Float.POSITIVE_INFINITY;
            case MAX -> Float.NEGATIVE_INFINITY;
            case AND, OR -> throw new IllegalArgumentException(kind + ": undefined for floats");
        };
    }

    static float combine(ReduceKind kind, float a, float b) {
        return switch (kind) {
            case SUM -> a + b;
            case PRODUCT -> a * b;
            case MIN -> Math.min(a, b);
            case MAX -> Math.max(a, b);
            case AND, OR -> throw new IllegalArgumentException(kind + ": undefined for floats");
        };
    }

    static long identity(ReduceKind kind, DType dtype) {
        int bits = 8 * dtype.bytes();
        return switch (kind) {
            case SUM, OR -> 0;
            case PRODUCT, AND -> 1;
            case MIN -> dtype == DType.U8 ? 255 : -1L >>> (65 - bits);
            case MAX -> dtype == DType.U8 ? 0 : -1L << (bits - 1);
        };
    }

    static long combine(ReduceKind kind, long a, long b) {
        return switch (kind) {
            case SUM -> a + b;
            case PRODUCT -> a * b;
            case MIN -> Math.min(a, b);
            case MAX -> Math.max(a, b);
            case AND -> a & b;
            case OR -> a | b;
        };
    }
}
