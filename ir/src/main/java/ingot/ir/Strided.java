package ingot.ir;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Copies a box of elements between two memories with any strides (in elements; 0 repeats, negative reverses).
final class Strided {
    private static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;

    private final int width;
    private final int[] dims;
    private final MemorySegment from;
    private final long[] fromStrides;
    private final MemorySegment to;
    private final long[] toStrides;

    private Strided(int width, int[] dims, MemorySegment from, long[] fromStrides, MemorySegment to, long[] toStrides) {
        this.width = width;
        this.dims = dims;
        this.from = from;
        this.fromStrides = fromStrides;
        this.to = to;
        this.toStrides = toStrides;
    }

    /// Copies elements of `width` bytes; `fromStart` and `toStart` are the elements at index 0 on every axis.
    static void copy(
            int width,
            int[] dims,
            MemorySegment from,
            long fromStart,
            long[] fromStrides,
            MemorySegment to,
            long toStart,
            long[] toStrides) {
        for (int dim : dims) {
            if (dim == 0) {
                return;
            }
        }
        new Strided(width, dims, from, fromStrides, to, toStrides).axis(0, fromStart, toStart);
    }

    private void axis(int axis, long f, long t) {
        if (axis >= dims.length - 1) {
            if (dims.length == 0) {
                row(1, f, 0, t, 0);
            } else {
                row(dims[axis], f, fromStrides[axis], t, toStrides[axis]);
            }
            return;
        }
        for (int i = 0; i < dims[axis]; i++) {
            axis(axis + 1, f + i * fromStrides[axis], t + i * toStrides[axis]);
        }
    }

    private void row(int n, long f, long fromStride, long t, long toStride) {
        if (fromStride == 1 && toStride == 1) {
            MemorySegment.copy(from, f * width, to, t * width, (long) n * width);
            return;
        }
        switch (width) {
            case 1 -> {
                for (int i = 0; i < n; i++) {
                    to.set(
                            ValueLayout.JAVA_BYTE,
                            t + i * toStride,
                            from.get(ValueLayout.JAVA_BYTE, f + i * fromStride));
                }
            }
            case 2 -> {
                for (int i = 0; i < n; i++) {
                    to.set(SHORT, 2 * (t + i * toStride), from.get(SHORT, 2 * (f + i * fromStride)));
                }
            }
            case 4 -> {
                for (int i = 0; i < n; i++) {
                    to.set(INT, 4 * (t + i * toStride), from.get(INT, 4 * (f + i * fromStride)));
                }
            }
            default -> {
                for (int i = 0; i < n; i++) {
                    to.set(LONG, 8 * (t + i * toStride), from.get(LONG, 8 * (f + i * fromStride)));
                }
            }
        }
    }
}
