package ingot.cpu;

import static ingot.cpu.Memory.getFloat;
import static ingot.cpu.Memory.getInt;
import static ingot.cpu.Memory.putFloat;
import static ingot.cpu.Memory.putInt;

import ingot.ir.DType;
import ingot.ir.Op.ReduceKind;

/// The reduction of the contract: element i goes to lane i mod 16, lanes combine in a fixed tree.
final class Lanes {
    private Lanes() {}

    /// What every lane starts from, as bits.
    static int identity(ReduceKind kind, DType dtype) {
        boolean floats = dtype == DType.F32;
        return switch (kind) {
            case SUM -> 0;
            case PRODUCT -> floats ? Float.floatToRawIntBits(1f) : 1;
            case MIN -> floats ? Float.floatToRawIntBits(Float.POSITIVE_INFINITY) : Integer.MAX_VALUE;
            case MAX -> floats ? Float.floatToRawIntBits(Float.NEGATIVE_INFINITY) : Integer.MIN_VALUE;
            case AND -> -1;
            case OR -> 0;
        };
    }

    static float combine(ReduceKind kind, float a, float b) {
        return switch (kind) {
            case SUM -> a + b;
            case PRODUCT -> a * b;
            case MIN -> Math.min(a, b);
            case MAX -> Math.max(a, b);
            case AND, OR -> throw new IllegalArgumentException("lanes: " + kind + " of floats");
        };
    }

    static int combine(ReduceKind kind, int a, int b) {
        return switch (kind) {
            case SUM -> a + b;
            case PRODUCT -> a * b;
            case MIN -> Math.min(a, b);
            case MAX -> Math.max(a, b);
            case AND -> a & b;
            case OR -> a | b;
        };
    }

    /// Adds values[0 … n) to the 16 lanes at `lanes`; values[0] belongs to lane 0.
    static void combine(ReduceKind kind, long lanes, float[] values, int n) {
        for (int j = 0; j < n; j++) {
            long lane = lanes + 4L * (j & 15);
            putFloat(lane, combine(kind, getFloat(lane), values[j]));
        }
    }

    static void combine(ReduceKind kind, long lanes, int[] values, int n) {
        for (int j = 0; j < n; j++) {
            long lane = lanes + 4L * (j & 15);
            putInt(lane, combine(kind, getInt(lane), values[j]));
        }
    }

    /// Combines the 16 lanes into one number at `result`: lane l with lane l + h, for h = 8, 4, 2, 1.
    static void finish(ReduceKind kind, DType dtype, long lanes, long result) {
        if (dtype == DType.F32) {
            putFloat(
                    result,
                    kind == ReduceKind.SUM
                            ? combine(sum(lanes), sum(lanes + 8), sum(lanes + 4), sum(lanes + 12))
                            : floats(kind, lanes));
        } else {
            putInt(result, ints(kind, lanes));
        }
    }

    private static float combine(float a, float c, float b, float d) {
        return (a + c) + (b + d);
    }

    /// Lanes l, l + 4, l + 8, l + 12 for l at `lane`: h = 8, then h = 4.
    private static float sum(long lane) {
        return (getFloat(lane) + getFloat(lane + 32)) + (getFloat(lane + 16) + getFloat(lane + 48));
    }

    private static float floats(ReduceKind kind, long lanes) {
        for (int h = 8; h > 0; h >>= 1) {
            for (int l = 0; l < h; l++) {
                long lane = lanes + 4L * l;
                putFloat(lane, combine(kind, getFloat(lane), getFloat(lane + 4L * h)));
            }
        }
        return getFloat(lanes);
    }

    private static int ints(ReduceKind kind, long lanes) {
        int x = getInt(lanes);
        for (int l = 1; l < 16; l++) {
            x = combine(kind, x, getInt(lanes + 4L * l)); // integers: any order
        }
        return x;
    }
}
