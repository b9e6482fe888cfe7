package ingot.cpu;

import static ingot.cpu.Memory.getFloat;
import static ingot.cpu.Memory.putFloat;

/// The [MicroKernel] of a JVM without the vector module: the same chains, one `Math.fma` at a time. The loop over
/// outputs is the inner one, so that C2 may vectorise it.
record ScalarKernel(int rows, int columns, Layout layout, Start start) implements MicroKernel {
    @Override
    public void run(long a, long aStride, long b, long bStep, long c, long cStride, int k) {
        long aRow = layout == Layout.ROWS ? aStride : 4;
        long aStep = layout == Layout.ROWS ? 4 : aStride;
        var acc = new float[columns];
        for (int i = 0; i < rows; i++) {
            long to = c + i * cStride;
            for (int j = 0; j < columns; j++) {
                acc[j] = start == Start.CONTINUE ? getFloat(to + 4L * j) : 0f;
            }
            chain(acc, a + i * aRow, aStep, b, bStep, k);
            for (int j = 0; j < columns; j++) {
                putFloat(to + 4L * j, start == Start.ADD ? getFloat(to + 4L * j) + acc[j] : acc[j]);
            }
        }
    }

    private static void chain(float[] acc, long a, long aStep, long b, long bStep, int k) {
        int p = 0;
        for (; p <= k - 4; p += 4) {
            step4(
                    acc,
                    getFloat(a + p * aStep),
                    getFloat(a + (p + 1) * aStep),
                    getFloat(a + (p + 2) * aStep),
                    getFloat(a + (p + 3) * aStep),
                    b + p * bStep,
                    bStep);
        }
        for (; p < k; p++) {
            step1(acc, getFloat(a + p * aStep), b + p * bStep);
        }
    }

    private static void step4(float[] acc, float x0, float x1, float x2, float x3, long b, long bStep) {
        long b1 = b + bStep;
        long b2 = b1 + bStep;
        long b3 = b2 + bStep;
        for (int j = 0; j < acc.length; j++) {
            float v = Math.fma(x0, getFloat(b + 4L * j), acc[j]);
            v = Math.fma(x1, getFloat(b1 + 4L * j), v);
            v = Math.fma(x2, getFloat(b2 + 4L * j), v);
            acc[j] = Math.fma(x3, getFloat(b3 + 4L * j), v);
        }
    }

    private static void step1(float[] acc, float x, long b) {
        for (int j = 0; j < acc.length; j++) {
            acc[j] = Math.fma(x, getFloat(b + 4L * j), acc[j]);
        }
    }
}
