package ingot.cpu;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Every generated register tile equals the scalar kernel bit for bit.
class MicroKernelTest {
    static List<int[]> tiles() {
        var shape = MatmulShape.of(64, 64, 64);
        var tiles = new ArrayList<int[]>();
        var base = Tilings.of(shape, 2);
        tiles.add(new int[] {base.rows(), base.vectors()});
        for (var other : Tilings.otherTiles(base, shape, 2)) {
            tiles.add(new int[] {other.rows(), other.vectors()});
        }
        tiles.add(new int[] {1, 1});
        tiles.add(new int[] {14, 2});
        return tiles;
    }

    @ParameterizedTest
    @MethodSource("tiles")
    void equalsTheScalarKernel(int[] tile) {
        Assumptions.assumeTrue(Simd.available());
        int rows = tile[0];
        int columns = tile[1] * Simd.LANES;
        var random = new Random(5);
        for (var layout : MicroKernel.Layout.values()) {
            for (var start : MicroKernel.Start.values()) {
                var vector = MicroKernelCode.define(rows, tile[1], Simd.LANES, layout, start);
                var scalar = new ScalarKernel(rows, columns, layout, start);
                for (int k : new int[] {0, 1, 19}) {
                    float[] c = numbers(random, rows * (columns + 3));
                    float[] a = numbers(random, (rows + 1) * (k + 1) + rows);
                    float[] b = numbers(random, (k + 1) * (columns + 5));
                    long aStride = 4L * (layout == MicroKernel.Layout.ROWS ? k + 1 : rows + 1);
                    assertThat(run(vector, a, aStride, b, columns + 5, c, columns + 3, k))
                            .as("%s %s k %d", layout, start, k)
                            .containsExactly(run(scalar, a, aStride, b, columns + 5, c, columns + 3, k));
                }
            }
        }
    }

    private static float[] run(
            MicroKernel kernel, float[] a, long aStride, float[] b, int bStep, float[] c, int cStride, int k) {
        try (var arena = Arena.ofConfined()) {
            var result = arena.allocateFrom(ValueLayout.JAVA_FLOAT, c);
            kernel.run(
                    arena.allocateFrom(ValueLayout.JAVA_FLOAT, a).address(),
                    aStride,
                    arena.allocateFrom(ValueLayout.JAVA_FLOAT, b).address(),
                    4L * bStep,
                    result.address(),
                    4L * cStride,
                    k);
            return result.toArray(ValueLayout.JAVA_FLOAT);
        }
    }

    private static float[] numbers(Random random, int count) {
        float[] numbers = new float[count];
        for (int i = 0; i < count; i++) {
            numbers[i] = (float) random.nextGaussian();
        }
        return numbers;
    }
}
