package ingot.cpu;

import static ingot.cpu.Memory.ALL;
import static ingot.cpu.Memory.getFloat;
import static ingot.cpu.Memory.putFloat;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;

import java.lang.foreign.MemorySegment;

/// The [MicroKernel] of a JVM without the vector module: the same chains, one `Math.fma` at a time.
///
/// The inner loop runs over outputs and over Java arrays of one length, which is what C2 vectorises by itself: four
/// rows of B are copied to the heap and serve all rows of the tile.
record ScalarKernel(int rows, int columns, Layout layout, Start start) implements MicroKernel {
    @Override
    public void run(long a, long aStride, long b, long bStep, long c, long cStride, int k) {
        long aRow = layout == Layout.ROWS ? aStride : 4;
        long aStep = layout == Layout.ROWS ? 4 : aStride;
        var acc = new float[rows][columns];
        if (start == Start.CONTINUE) {
            for (int i = 0; i < rows; i++) {
                load(acc[i], c + i * cStride);
            }
        }
        var b0 = new float[columns];
        var b1 = new float[columns];
        var b2 = new float[columns];
        var b3 = new float[columns];
        int p = 0;
        for (; p <= k - 4; p += 4) {
            load(b0, b + p * bStep);
            load(b1, b + (p + 1) * bStep);
            load(b2, b + (p + 2) * bStep);
            load(b3, b + (p + 3) * bStep);
            for (int i = 0; i < rows; i++) {
                long x = a + i * aRow + p * aStep;
                step4(
                        acc[i],
                        getFloat(x),
                        getFloat(x + aStep),
                        getFloat(x + 2 * aStep),
                        getFloat(x + 3 * aStep),
                        b0,
                        b1,
                        b2,
                        b3);
            }
        }
        for (; p < k; p++) {
            load(b0, b + p * bStep);
            for (int i = 0; i < rows; i++) {
                step1(acc[i], getFloat(a + i * aRow + p * aStep), b0);
            }
        }
        for (int i = 0; i < rows; i++) {
            store(acc[i], c + i * cStride);
        }
    }

    private static void load(float[] to, long from) {
        MemorySegment.copy(ALL, JAVA_FLOAT_UNALIGNED, from, to, 0, to.length);
    }

    private void store(float[] from, long to) {
        if (start == Start.ADD) {
            for (int j = 0; j < from.length; j++) {
                putFloat(to + 4L * j, getFloat(to + 4L * j) + from[j]);
            }
        } else {
            MemorySegment.copy(from, 0, ALL, JAVA_FLOAT_UNALIGNED, to, from.length);
        }
    }

    private static void step4(
            float[] acc, float x0, float x1, float x2, float x3, float[] b0, float[] b1, float[] b2, float[] b3) {
        for (int j = 0; j < acc.length; j++) {
            float v = Math.fma(x0, b0[j], acc[j]);
            v = Math.fma(x1, b1[j], v);
            v = Math.fma(x2, b2[j], v);
            acc[j] = Math.fma(x3, b3[j], v);
        }
    }

    private static void step1(float[] acc, float x, float[] b) {
        for (int j = 0; j < acc.length; j++) {
            acc[j] = Math.fma(x, b[j], acc[j]);
        }
    }
}
