package ingot.cpu;

import static ingot.cpu.Memory.MASK;
import static ingot.cpu.Memory.getFloat;
import static ingot.cpu.Memory.putFloat;

/// Chains over contiguous k, scalar.
final class Dots {
    private Dots() {}

    static void one(long acc, long a, long aStep, long b, int k) {
        float sum = getFloat(acc);
        for (int p = 0; p < k; p++) {
            sum = Math.fma(getFloat(a + p * aStep), getFloat(b + 4L * p), sum);
        }
        putFloat(acc, sum);
    }

    /// Eight independent chains hide the latency of the multiply-add.
    static void eight(long acc, long a, long aStep, long b, long bRow, int k) {
        float s0 = getFloat(acc);
        float s1 = getFloat(acc + 4);
        float s2 = getFloat(acc + 8);
        float s3 = getFloat(acc + 12);
        float s4 = getFloat(acc + 16);
        float s5 = getFloat(acc + 20);
        float s6 = getFloat(acc + 24);
        float s7 = getFloat(acc + 28);
        long b0 = b & MASK;
        long b1 = (b0 + bRow) & MASK;
        long b2 = (b1 + bRow) & MASK;
        long b3 = (b2 + bRow) & MASK;
        long b4 = (b3 + bRow) & MASK;
        long b5 = (b4 + bRow) & MASK;
        long b6 = (b5 + bRow) & MASK;
        long b7 = (b6 + bRow) & MASK;
        for (int p = 0; p < k; p++) {
            float x = getFloat(a + p * aStep);
            long o = 4L * p;
            s0 = Math.fma(x, at(b0 + o), s0);
            s1 = Math.fma(x, at(b1 + o), s1);
            s2 = Math.fma(x, at(b2 + o), s2);
            s3 = Math.fma(x, at(b3 + o), s3);
            s4 = Math.fma(x, at(b4 + o), s4);
            s5 = Math.fma(x, at(b5 + o), s5);
            s6 = Math.fma(x, at(b6 + o), s6);
            s7 = Math.fma(x, at(b7 + o), s7);
        }
        putFloat(acc, s0);
        putFloat(acc + 4, s1);
        putFloat(acc + 8, s2);
        putFloat(acc + 12, s3);
        putFloat(acc + 16, s4);
        putFloat(acc + 20, s5);
        putFloat(acc + 24, s6);
        putFloat(acc + 28, s7);
    }

    private static float at(long address) {
        return Memory.ALL.get(java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED, address);
    }

    /// `acc[j] = Σ fma(a[kernel[p]], b[windows[p] + columns[from + j]])` for j < n, p ascending from 0 on: eight chains at a
    /// time.
    static void sideBySide(long acc, long a, long[] kernel, long b, long[] windows, long[] columns, int from, int n) {
        int j = 0;
        for (; j <= n - 8; j += 8) {
            eight(acc + 4L * j, a, kernel, b, windows, columns, from + j);
        }
        for (; j < n; j++) {
            putFloat(acc + 4L * j, ScalarRows.chain(a, kernel, b + columns[from + j], windows, 0, kernel.length));
        }
    }

    private static void eight(long acc, long a, long[] kernel, long b, long[] windows, long[] columns, int j) {
        long b0 = b + columns[j];
        long b1 = b + columns[j + 1];
        long b2 = b + columns[j + 2];
        long b3 = b + columns[j + 3];
        long b4 = b + columns[j + 4];
        long b5 = b + columns[j + 5];
        long b6 = b + columns[j + 6];
        long b7 = b + columns[j + 7];
        float v0 = 0;
        float v1 = 0;
        float v2 = 0;
        float v3 = 0;
        float v4 = 0;
        float v5 = 0;
        float v6 = 0;
        float v7 = 0;
        for (int p = 0; p < kernel.length; p++) {
            float x = getFloat(a + kernel[p]);
            long o = windows[p];
            v0 = Math.fma(x, getFloat(b0 + o), v0);
            v1 = Math.fma(x, getFloat(b1 + o), v1);
            v2 = Math.fma(x, getFloat(b2 + o), v2);
            v3 = Math.fma(x, getFloat(b3 + o), v3);
            v4 = Math.fma(x, getFloat(b4 + o), v4);
            v5 = Math.fma(x, getFloat(b5 + o), v5);
            v6 = Math.fma(x, getFloat(b6 + o), v6);
            v7 = Math.fma(x, getFloat(b7 + o), v7);
        }
        putFloat(acc, v0);
        putFloat(acc + 4, v1);
        putFloat(acc + 8, v2);
        putFloat(acc + 12, v3);
        putFloat(acc + 16, v4);
        putFloat(acc + 20, v5);
        putFloat(acc + 24, v6);
        putFloat(acc + 28, v7);
    }
}
