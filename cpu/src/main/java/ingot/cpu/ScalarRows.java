package ingot.cpu;

import static ingot.cpu.Memory.ALL;
import static ingot.cpu.Memory.getFloat;
import static ingot.cpu.Memory.getInt;
import static ingot.cpu.Memory.putFloat;
import static ingot.cpu.Memory.putInt;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;

import java.lang.foreign.MemorySegment;

/// [RowMath] without vectors. What runs long goes through Java arrays: those are fast from the first compiler on, where
/// memory segments are only after the last.
final class ScalarRows implements RowMath {
    @Override
    public void copy(long from, long to, int n) {
        for (int i = 0; i < n; i++) {
            putInt(to + 4L * i, getInt(from + 4L * i));
        }
    }

    @Override
    public void add(long c, long x, int n) {
        for (int i = 0; i < n; i++) {
            putFloat(c + 4L * i, getFloat(c + 4L * i) + getFloat(x + 4L * i));
        }
    }

    @Override
    public void add(long c, float x, int n) {
        for (int i = 0; i < n; i++) {
            putFloat(c + 4L * i, getFloat(c + 4L * i) + x);
        }
    }

    @Override
    public void rank(long acc, long a, long aStep, long b, long bStep, int k, int n) {
        float[] sums = new float[n];
        float[] row = new float[n];
        MemorySegment.copy(ALL, JAVA_FLOAT_UNALIGNED, acc, sums, 0, n);
        for (int p = 0; p < k; p++) {
            MemorySegment.copy(ALL, JAVA_FLOAT_UNALIGNED, b + p * bStep, row, 0, n);
            multiplyAdd(getFloat(a + p * aStep), row, sums);
        }
        MemorySegment.copy(sums, 0, ALL, JAVA_FLOAT_UNALIGNED, acc, n);
    }

    private static void multiplyAdd(float x, float[] row, float[] sums) {
        for (int j = 0; j < sums.length; j++) {
            sums[j] = Math.fma(x, row[j], sums[j]);
        }
    }

    @Override
    public void dots(long acc, long a, long aStep, long b, long bRow, int k, int n) {
        float[] left = new float[k];
        float[] right = new float[k];
        for (int p = 0; p < k; p++) {
            left[p] = getFloat(a + p * aStep);
        }
        for (int j = 0; j < n; j++) {
            MemorySegment.copy(ALL, JAVA_FLOAT_UNALIGNED, b + j * bRow, right, 0, k);
            putFloat(acc + 4L * j, chain(getFloat(acc + 4L * j), left, right));
        }
    }

    private static float chain(float sum, float[] left, float[] right) {
        for (int p = 0; p < left.length; p++) {
            sum = Math.fma(left[p], right[p], sum);
        }
        return sum;
    }

    @Override
    public void pack(long from, long step, long to, int width, int k) {
        for (int p = 0; p < k; p++) {
            copy(from + p * step, to + 4L * p * width, width);
        }
    }

    @Override
    public void windows(
            long to,
            long weights,
            long[] kernel,
            long x,
            long[] windows,
            long step,
            int first,
            int k,
            int n,
            long end) {
        for (int j = 0; j < n; j++) {
            putFloat(to + 4L * j, chain(weights, kernel, x + j * step, windows, first, k));
        }
    }

    static float chain(long weights, long[] kernel, long x, long[] windows, int first, int k) {
        float sum = 0;
        for (int p = first; p < first + k; p++) {
            sum = Math.fma(getFloat(weights + kernel[p]), getFloat(x + windows[p]), sum);
        }
        return sum;
    }

    @Override
    public void packPieces(
            long from,
            long[] rows,
            int first,
            int k,
            int[] starts,
            int[] lengths,
            long[] pieces,
            long to,
            int width,
            long end) {
        for (int p = 0; p < k; p++) {
            for (int r = 0; r < starts.length; r++) {
                copy(from + rows[first + p] + pieces[r], to + 4 * ((long) p * width + starts[r]), lengths[r]);
            }
        }
    }

    @Override
    public void packTransposed(long from, long step, long to, int width, int k) {
        for (int w = 0; w < width; w++) {
            for (int p = 0; p < k; p++) {
                putInt(to + 4L * ((long) p * width + w), getInt(from + w * step + 4L * p));
            }
        }
    }

    /// Over a small array, so that C2 may vectorise: the peak of what this JVM can reach.
    @Override
    public float fmas(int steps) {
        var x = new float[128];
        for (int i = 0; i < steps; i += 4) {
            for (int j = 0; j < x.length; j++) {
                x[j] = Math.fma(0.5f, Math.fma(0.5f, Math.fma(0.5f, Math.fma(0.5f, x[j], 0.25f), 0.25f), 0.25f), 0.25f);
            }
        }
        return x[0];
    }

    @Override
    public double flopsPerFmas(int steps) {
        return 2.0 * 128 * steps;
    }
}
