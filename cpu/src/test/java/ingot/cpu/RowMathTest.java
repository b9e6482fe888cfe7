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
}
