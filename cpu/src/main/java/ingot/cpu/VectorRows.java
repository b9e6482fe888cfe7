package ingot.cpu;

import static ingot.cpu.Memory.ALL;
import static ingot.cpu.Memory.MASK;
import static ingot.cpu.Memory.getFloat;
import static ingot.cpu.Memory.getInt;
import static ingot.cpu.Memory.getLong;
import static ingot.cpu.Memory.putFloat;
import static ingot.cpu.Memory.putInt;
import static ingot.cpu.Memory.putLong;
import static java.nio.ByteOrder.LITTLE_ENDIAN;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;

/// [RowMath] with vectors; loaded only where the vector module is present.
final class VectorRows implements RowMath {
    private static final VectorSpecies<Float> S = species();
    private static final int L = S.length();

    static int preferredLanes() {
        return FloatVector.SPECIES_PREFERRED.length();
    }

    private static VectorSpecies<Float> species() {
        return switch (Integer.getInteger("ingot.vector", 0)) {
            case 128 -> FloatVector.SPECIES_128;
            case 256 -> FloatVector.SPECIES_256;
            case 512 -> FloatVector.SPECIES_512;
            default ->
                FloatVector.SPECIES_PREFERRED.length() > 16 ? FloatVector.SPECIES_512 : FloatVector.SPECIES_PREFERRED;
        };
    }

    private static FloatVector load(long address) {
        return FloatVector.fromMemorySegment(S, ALL, address & MASK, LITTLE_ENDIAN);
    }

    private static void store(long address, FloatVector v) {
        v.intoMemorySegment(ALL, address & MASK, LITTLE_ENDIAN);
    }

    @Override
    public void copy(long from, long to, int n) {
        int i = 0;
        for (; i <= n - L; i += L) {
            store(to + 4L * i, load(from + 4L * i));
        }
        for (; i < n; i++) {
            putInt(to + 4L * i, getInt(from + 4L * i));
        }
    }

    @Override
    public void add(long c, long x, int n) {
        int i = 0;
        for (; i <= n - L; i += L) {
            store(c + 4L * i, load(c + 4L * i).add(load(x + 4L * i)));
        }
        for (; i < n; i++) {
            putFloat(c + 4L * i, getFloat(c + 4L * i) + getFloat(x + 4L * i));
        }
    }

    @Override
    public void add(long c, float x, int n) {
        int i = 0;
        for (; i <= n - L; i += L) {
            store(c + 4L * i, load(c + 4L * i).add(x));
        }
        for (; i < n; i++) {
            putFloat(c + 4L * i, getFloat(c + 4L * i) + x);
        }
    }

    @Override
    public void rank(long acc, long a, long aStep, long b, long bStep, int k, int n) {
        int p = 0;
        for (; p <= k - 8; p += 8) {
            rank8(acc, a + p * aStep, aStep, b + p * bStep, bStep, n);
        }
        for (; p < k; p++) {
            rank1(acc, getFloat(a + p * aStep), b + p * bStep, n);
        }
    }

    private static void rank1(long acc, float x, long b, int n) {
        var v = FloatVector.broadcast(S, x);
        int j = 0;
        for (; j <= n - L; j += L) {
            store(acc + 4L * j, v.fma(load(b + 4L * j), load(acc + 4L * j)));
        }
        for (; j < n; j++) {
            putFloat(acc + 4L * j, Math.fma(x, getFloat(b + 4L * j), getFloat(acc + 4L * j)));
        }
    }

    private static void rank8(long acc, long a, long aStep, long b0, long bStep, int n) {
        float x0 = getFloat(a);
        float x1 = getFloat(a + aStep);
        float x2 = getFloat(a + 2 * aStep);
        float x3 = getFloat(a + 3 * aStep);
        float x4 = getFloat(a + 4 * aStep);
        float x5 = getFloat(a + 5 * aStep);
        float x6 = getFloat(a + 6 * aStep);
        float x7 = getFloat(a + 7 * aStep);
        long b1 = b0 + bStep;
        long b2 = b1 + bStep;
        long b3 = b2 + bStep;
        long b4 = b3 + bStep;
        long b5 = b4 + bStep;
        long b6 = b5 + bStep;
        long b7 = b6 + bStep;
        var v0 = FloatVector.broadcast(S, x0);
        var v1 = FloatVector.broadcast(S, x1);
        var v2 = FloatVector.broadcast(S, x2);
        var v3 = FloatVector.broadcast(S, x3);
        var v4 = FloatVector.broadcast(S, x4);
        var v5 = FloatVector.broadcast(S, x5);
        var v6 = FloatVector.broadcast(S, x6);
        var v7 = FloatVector.broadcast(S, x7);
        int j = 0;
        for (; j <= n - L; j += L) {
            long o = 4L * j;
            var v = v0.fma(load(b0 + o), load(acc + o));
            v = v1.fma(load(b1 + o), v);
            v = v2.fma(load(b2 + o), v);
            v = v3.fma(load(b3 + o), v);
            v = v4.fma(load(b4 + o), v);
            v = v5.fma(load(b5 + o), v);
            v = v6.fma(load(b6 + o), v);
            store(acc + o, v7.fma(load(b7 + o), v));
        }
        for (; j < n; j++) {
            long o = 4L * j;
            float v = Math.fma(x0, getFloat(b0 + o), getFloat(acc + o));
            v = Math.fma(x1, getFloat(b1 + o), v);
            v = Math.fma(x2, getFloat(b2 + o), v);
            v = Math.fma(x3, getFloat(b3 + o), v);
            v = Math.fma(x4, getFloat(b4 + o), v);
            v = Math.fma(x5, getFloat(b5 + o), v);
            v = Math.fma(x6, getFloat(b6 + o), v);
            putFloat(acc + o, Math.fma(x7, getFloat(b7 + o), v));
        }
    }

    @Override
    public void pack(long from, long step, long to, int width, int k) {
        if (width < L && 2 * width > L && k > 1 && step >= 4L * L) {
            packNarrow(from, step, to, width, k);
            return;
        }
        int w = 0;
        for (; w <= width - 2 * L; w += 2 * L) {
            packTwo(from + 4L * w, step, to + 4L * w, 4L * width, k);
        }
        for (; w <= width - L; w += L) {
            packOne(from + 4L * w, step, to + 4L * w, 4L * width, k);
        }
        for (; w <= width - 2; w += 2) {
            packPair(from + 4L * w, step, to + 4L * w, 4L * width, k);
        }
        if (w < width) {
            packSingle(from + 4L * w, step, to + 4L * w, 4L * width, k);
        }
    }

    /// Rows narrower than a vector: each store runs into the next row, which is written after it. The last row is
    /// written exactly, so nothing beyond the panel is read or written.
    private static void packNarrow(long from, long step, long to, int width, int k) {
        for (int p = 0; p < k - 1; p++) {
            store(to + 4L * p * width, load(from + p * step));
        }
        for (int w = 0; w < width; w++) {
            putInt(to + 4L * ((k - 1L) * width + w), getInt(from + (k - 1) * step + 4L * w));
        }
    }

    private static void packTwo(long from, long step, long to, long toStep, int k) {
        for (int p = 0; p < k; p++) {
            var x = load(from + p * step);
            var y = load(from + p * step + 4L * L);
            store(to + p * toStep, x);
            store(to + p * toStep + 4L * L, y);
        }
    }

    private static void packOne(long from, long step, long to, long toStep, int k) {
        for (int p = 0; p < k; p++) {
            store(to + p * toStep, load(from + p * step));
        }
    }

    private static void packPair(long from, long step, long to, long toStep, int k) {
        for (int p = 0; p < k; p++) {
            putLong(to + p * toStep, getLong(from + p * step));
        }
    }

    private static void packSingle(long from, long step, long to, long toStep, int k) {
        for (int p = 0; p < k; p++) {
            putInt(to + p * toStep, getInt(from + p * step));
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
        long furthest = 0;
        for (int p = first; p < first + k; p++) {
            furthest = Math.max(furthest, windows[p]);
        }
        int j = 0;
        if (step == 4) {
            for (; j < n && x + furthest + 4L * (j + 2 * L) <= end; j += 2 * L) {
                var left = FloatVector.zero(S);
                var right = FloatVector.zero(S);
                for (int p = first; p < first + k; p++) {
                    var weight = FloatVector.broadcast(S, getFloat(weights + kernel[p]));
                    long at = x + windows[p] + 4L * j;
                    left = weight.fma(load(at), left);
                    right = weight.fma(load(at + 4L * L), right);
                }
                store(to + 4L * j, left);
                if (j + L < n) {
                    store(to + 4L * (j + L), right);
                }
            }
        }
        for (; j < n; j++) {
            putFloat(to + 4L * j, ScalarRows.chain(weights, kernel, x + j * step, windows, first, k));
        }
    }

    /// Whole vectors, left to right: what one writes too much the next one writes again.
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
            long source = from + rows[first + p];
            long row = to + 4L * p * width;
            for (int r = 0; r < starts.length; r++) {
                long at = source + pieces[r];
                long target = row + 4L * starts[r];
                int length = lengths[r];
                if (length == 1) {
                    putInt(target, getInt(at));
                } else if (at + 4L * (length + L) <= end) {
                    for (int i = 0; i < length; i += L) {
                        store(target + 4L * i, load(at + 4L * i));
                    }
                } else {
                    for (int i = 0; i < length; i++) {
                        putInt(target + 4L * i, getInt(at + 4L * i));
                    }
                }
            }
        }
    }

    @Override
    public void packTransposed(long from, long step, long to, int width, int k) {
        int w = 0;
        for (; w <= width - 2; w += 2) {
            transposeTwo(from + w * step, step, to + 4L * w, 4L * width, k);
        }
        if (w < width) {
            transposeOne(from + w * step, to + 4L * w, 4L * width, k);
        }
    }

    /// Two source rows at a time: one 8-byte store writes a neighbouring pair.
    private static void transposeTwo(long from, long step, long to, long toStep, int k) {
        int p = 0;
        for (; p <= k - 2; p += 2) {
            long x = getLong(from + 4L * p); // x[p], x[p + 1]
            long y = getLong(from + step + 4L * p);
            putLong(to + p * toStep, (x & 0xFFFF_FFFFL) | (y << 32));
            putLong(to + p * toStep + toStep, (x >>> 32) | (y & 0xFFFF_FFFF_0000_0000L));
        }
        if (p < k) {
            putInt(to + p * toStep, getInt(from + 4L * p));
            putInt(to + p * toStep + 4, getInt(from + step + 4L * p));
        }
    }

    private static void transposeOne(long from, long to, long toStep, int k) {
        for (int p = 0; p < k; p++) {
            putInt(to + p * toStep, getInt(from + 4L * p));
        }
    }

    @Override
    public float fmas(int steps) {
        var x = FloatVector.broadcast(S, 0.5f);
        var y = FloatVector.broadcast(S, 0.25f);
        var s0 = x;
        var s1 = x;
        var s2 = x;
        var s3 = x;
        var s4 = x;
        var s5 = x;
        var s6 = x;
        var s7 = x;
        var s8 = x;
        var s9 = x;
        var s10 = x;
        var s11 = x;
        for (int i = 0; i < steps; i++) {
            s0 = s0.fma(x, y);
            s1 = s1.fma(x, y);
            s2 = s2.fma(x, y);
            s3 = s3.fma(x, y);
            s4 = s4.fma(x, y);
            s5 = s5.fma(x, y);
            s6 = s6.fma(x, y);
            s7 = s7.fma(x, y);
            s8 = s8.fma(x, y);
            s9 = s9.fma(x, y);
            s10 = s10.fma(x, y);
            s11 = s11.fma(x, y);
        }
        return s0.add(s1)
                .add(s2)
                .add(s3)
                .add(s4)
                .add(s5)
                .add(s6)
                .add(s7)
                .add(s8)
                .add(s9)
                .add(s10)
                .add(s11)
                .lane(0);
    }

    @Override
    public double flopsPerFmas(int steps) {
        return 2.0 * 12 * L * steps;
    }
}
