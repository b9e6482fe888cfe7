package ingot.cpu;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.api.Test;

/// The vector row loops equal the scalar ones bit for bit, and touch nothing beyond their rows.
class RowMathTest {
    private interface Loop {
        void run(RowMath math, long to, long x, long y);
    }

    private static void check(Loop loop) {
        assertThat(run(RowMath.best(), loop)).containsExactly(run(new ScalarRows(), loop));
    }

    private static float[] run(RowMath math, Loop loop) {
        try (var arena = Arena.ofConfined()) {
            var to = numbers(arena, 1);
            loop.run(
                    math,
                    to.address(),
                    numbers(arena, 2).address(),
                    numbers(arena, 3).address());
            return to.toArray(ValueLayout.JAVA_FLOAT);
        }
    }

    private static MemorySegment numbers(Arena arena, int seed) {
        var random = new Random(seed);
        float[] numbers = new float[1500];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = (float) random.nextGaussian();
        }
        return arena.allocateFrom(ValueLayout.JAVA_FLOAT, numbers);
    }

    @Test
    void sumsAndCopies() {
        for (int n = 0; n < 40; n += 1 + n / 8) {
            int count = n;
            check((math, to, x, y) -> math.copy(x, to, count));
            check((math, to, x, y) -> math.add(to, x, count));
            check((math, to, x, y) -> math.add(to, 0.3f, count));
        }
    }

    @Test
    void chainsOfRowsAndColumns() {
        for (int k : new int[] {0, 1, 7, 8, 17}) {
            for (int n : new int[] {1, 7, 8, 9, 31, 40}) {
                int steps = k;
                check((math, to, x, y) -> math.rank(to, x, 12, y, 200, steps, n));
                check((math, to, x, y) -> math.dots(to, x, 12, y, 84, steps, n));
            }
        }
    }

    @Test
    void packing() {
        for (int width = 1; width < 36; width += 1 + width / 7) {
            for (int k : new int[] {0, 1, 2, 3, 9, 17}) {
                int w = width;
                check((math, to, x, y) -> math.pack(x, 160, to, w, k));
                check((math, to, x, y) -> math.packTransposed(x, 80, to, w, k));
            }
        }
    }

    /// Whether they may read whole vectors or the memory ends with the last element.
    @Test
    void windowsAndPieces() {
        long[] kernel = {0, 4, 8, 40, 44, 48};
        long[] windows = {0, 4, 8, 120, 124, 128};
        for (int n : new int[] {1, 3, 8, 9, 16, 17, 40}) {
            for (long step : new long[] {4, 8}) {
                for (long end : new long[] {128 + (n - 1) * step + 4, 3000}) {
                    check((math, to, x, y) -> {
                        math.windows(y + 3000, x + 4000, kernel, x, windows, step, 1, 5, n, x + end);
                        math.copy(y + 3000, to, n);
                    });
                }
            }
        }
        int[] starts = {0, 1, 4, 13};
        int[] lengths = {1, 3, 9, 3};
        long[] pieces = {80, 200, 400, 0};
        long[] rows = {0, 4, 52, 104};
        for (long end : new long[] {104 + 400 + 9 * 4, 3000}) {
            check((math, to, x, y) -> {
                math.packPieces(x, rows, 1, 3, starts, lengths, pieces, y, 16, x + end);
                math.copy(y, to, 48);
            });
        }
    }
}
