package ingot.cpu;

import ingot.compiler.Kernel.Matmul.Old;

/// The definition of the contraction: three loops, one `Math.fma` at a time.
final class NaiveMatmul {
    private NaiveMatmul() {}

    static void run(MatmulShape s, float[] a, float[] b, float[] c, float[] bias, Old old) {
        for (int x = 0; x < s.batch0(); x++) {
            for (int y = 0; y < s.batch1(); y++) {
                for (int z = 0; z < s.batch2(); z++) {
                    for (int i = 0; i < s.m(); i++) {
                        for (int j = 0; j < s.n(); j++) {
                            int aAt = (int) (at(s.a(), x, y, z) + i * s.a().row());
                            int bAt = (int) (at(s.b(), x, y, z) + j * s.b().column());
                            int cAt = (int) (at(s.c(), x, y, z) + i * s.c().row() + j * s.c().column());
                            float start = old == Old.CONTINUED ? c[cAt] : 0;
                            float r = tree(s, a, aAt, b, bAt, 0, s.segments(), start);
                            if (bias.length > 0) {
                                r += bias[j];
                            }
                            c[cAt] = old == Old.ADDED ? c[cAt] + r : r;
                        }
                    }
                }
            }
        }
    }

    private static long at(MatmulShape.Strides s, int x, int y, int z) {
        return x * s.batch0() + y * s.batch1() + z * s.batch2();
    }

    private static float tree(MatmulShape s, float[] a, int aAt, float[] b, int bAt, int low, int high, float start) {
        if (high - low == 1) {
            int length = s.k() / s.segments();
            float acc = start;
            for (int p = low * length; p < high * length; p++) {
                acc = Math.fma(a[(int) (aAt + p * s.a().column())], b[(int) (bAt + p * s.b().row())], acc);
            }
            return acc;
        }
        int half = low + Integer.highestOneBit(high - low - 1);
        return tree(s, a, aAt, b, bAt, low, half, start) + tree(s, a, aAt, b, bAt, half, high, start);
    }
}
