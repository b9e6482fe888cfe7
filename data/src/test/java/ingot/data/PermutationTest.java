package ingot.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.BitSet;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class PermutationTest {
    static IntStream sizes() {
        return IntStream.concat(
                IntStream.rangeClosed(1, 130), IntStream.of(255, 256, 257, 1000, 4095, 4096, 4097, 65_537, 100_003));
    }

    @ParameterizedTest
    @MethodSource("sizes")
    void visitsEveryIndexOnce(int size) {
        for (long epoch = 0; epoch < 3; epoch++) {
            var order = new Permutation(size, 42, epoch);
            var seen = new BitSet();
            for (int i = 0; i < size; i++) {
                long to = order.apply(i);
                assertThat(to).isBetween(0L, size - 1L);
                seen.set((int) to);
            }
            assertThat(seen.cardinality()).isEqualTo(size);
        }
    }

    @Test
    void everySeedAndEpochHasItsOwnOrder() {
        var orders = LongStream.range(0, 20)
                .boxed()
                .flatMap(seed -> LongStream.range(0, 20).mapToObj(epoch -> {
                    var order = new Permutation(50, seed, epoch);
                    return LongStream.range(0, 50).map(order::apply).boxed().toList();
                }))
                .distinct();
        assertThat(orders.count()).isEqualTo(400);
    }

    /// Each index should come to each place about equally often: a chi-square over 8 × 8 cells, 49 degrees of freedom.
    @Test
    void placesAreUniform() {
        int n = 8;
        int trials = 8000;
        var counts = new int[n][n];
        for (int t = 0; t < trials; t++) {
            var order = new Permutation(n, 7, t);
            for (int i = 0; i < n; i++) counts[i][(int) order.apply(i)]++;
        }
        double expected = (double) trials / n;
        double chi = 0;
        for (var row : counts) {
            for (int c : row) chi += (c - expected) * (c - expected) / expected;
        }
        assertThat(chi).isLessThan(100);
    }

    @Test
    void isTheSameForEver() {
        var order = new Permutation(10, 1, 0);
        assertThat(LongStream.range(0, 10).map(order::apply)).containsExactly(3L, 0L, 4L, 7L, 5L, 6L, 2L, 9L, 1L, 8L);
    }

    @Test
    void holdsHugeSizes() {
        var order = new Permutation(1L << 40, 3, 9);
        assertThat(LongStream.range(0, 1000).map(order::apply).distinct().count())
                .isEqualTo(1000);
    }

    @Test
    void refusesIndicesOutside() {
        var order = new Permutation(10, 1, 0);
        assertThatThrownBy(() -> order.apply(10)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> new Permutation(0, 1, 0)).isInstanceOf(IllegalArgumentException.class);
    }
}
