package ingot.cpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.compiler.Kernel.Matmul.Old;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Every plan equals the naive loops bit for bit.
class MatmulTest {
    private static final TilePool[] POOLS = {new TilePool(1), new TilePool(2), new TilePool(3)};
    private static final int[][] TILES = {{6, 2}, {4, 3}, {3, 4}, {1, 1}, {8, 1}, {12, 2}};

    @AfterAll
    static void closePools() {
        for (var pool : POOLS) {
            pool.close();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 4})
    void randomShapesStridesSegmentsAndTilings(int seed) {
        var random = new Random(seed);
        for (int i = 0; i < 60; i++) {
            var shape = shape(random);
            var old = Old.values()[random.nextInt(3)];
            shape = old == Old.CONTINUED ? shape.withSegments(1) : shape;
            var options = new Matmul.Options(old, random.nextBoolean(), 2);
            var tiling = random.nextInt(3) == 0 ? null : tiling(random);
            check(shape, options, tiling, POOLS[random.nextInt(3)], random);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "384, 96, 70, 1",
        "1, 2100, 19, 1",
        "2, 100, 40, 1",
        "97, 131, 300, 1",
        "65, 80, 1024, 16",
        "13, 200, 700, 7",
        "0, 3, 4, 1",
        "3, 0, 4, 1",
        "5, 33, 0, 1",
        "5, 17, 0, 3",
        "1, 1, 1, 1",
        "64, 1, 50, 1",
        "64, 1, 50, 5"
    })
    void dense(int m, int n, int k, int segments) {
        var random = new Random(7);
        var shape = MatmulShape.of(m, n, k).withSegments(segments);
        for (var options : new Matmul.Options[] {
            Matmul.Options.DEFAULT,
            Matmul.Options.DEFAULT.withBias(),
            Matmul.Options.DEFAULT.withOld(Old.ADDED),
            Matmul.Options.DEFAULT.withBias().withOld(Old.ADDED),
            Matmul.Options.DEFAULT.withOld(Old.CONTINUED),
            Matmul.Options.DEFAULT.withBias().withOld(Old.CONTINUED)
        }) {
            check(options.old() == Old.CONTINUED ? shape.withSegments(1) : shape, options, null, POOLS[1], random);
        }
    }

    @Test
    void attentionHeadsInPlace() {
        int time = 37;
        int heads = 3;
        int width = 16;
        long[] batch = {2, heads};
        long[] tokens = {(long) time * heads * width, width, (long) heads * width, 1}; // [B, T, H, D] as [B, H, T, D]
        long[] keys = {(long) time * heads * width, width, 1, (long) heads * width};
        long[] scores = {(long) heads * time * time, (long) time * time, time, 1};
        var random = new Random(3);
        check(MatmulShape.of(batch, time, time, width, 1, tokens, keys, scores), random);
        check(MatmulShape.of(batch, time, width, time, 1, scores, tokens, tokens), random);
        long[] turned = {(long) heads * time * time, (long) time * time, 1, time};
        check(MatmulShape.of(batch, time, width, time, 1, turned, tokens, tokens), random);
    }

    @Test
    void segmentsCombineInATreeByIndex() {
        // One product per segment: the sum is ((x0 + x1) + (x2 + x3)) + x4, which rounds unlike the chain.
        float[] x = {1e8f, 1f, -1e8f, 3f, 0.5f};
        var shape = MatmulShape.of(1, 1, 5).withSegments(5);
        float[] one = {1, 1, 1, 1, 1};
        assertThat(multiply(Matmul.of(shape), POOLS[0], x, one, new float[1], new float[0])[0])
                .isEqualTo(((x[0] + x[1]) + (x[2] + x[3])) + x[4]);
    }

    @Test
    void wrongShapesSayWhatIsWrong() {
        assertThatThrownBy(() -> MatmulShape.of(2, 2, 5).withSegments(2))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("matmul: segments must divide k, got 2 segments of k = 5");
        assertThatThrownBy(() -> MatmulShape.of(
                        new long[0], 2, 2, 2, 1, new long[] {2, 1}, new long[] {2, 1}, new long[] {0, 1}))
                .hasMessageContaining("the result has a stride of 0");
        assertThatThrownBy(() -> MatmulShape.of(
                        new long[] {2}, 2, 2, 2, 1, new long[] {2, 1}, new long[] {2, 1}, new long[] {2, 1}))
                .hasMessageContaining("need 3 strides per operand");
    }

    private static Tiling tiling(Random random) {
        var tile = TILES[random.nextInt(TILES.length)];
        int vectors = Simd.LANES == 1 ? tile[1] * 8 : tile[1];
        var packings = Tiling.Packing.values();
        return new Tiling(
                tile[0],
                vectors,
                Simd.LANES,
                1 + random.nextInt(40),
                1 + random.nextInt(60),
                1 + random.nextInt(50),
                packings[random.nextInt(2)],
                packings[random.nextInt(3)]);
    }

    private static MatmulShape shape(Random random) {
        int rank = random.nextInt(4);
        long[] batch = new long[rank];
        for (int i = 0; i < rank; i++) {
            batch[i] = 1L + random.nextInt(3);
        }
        int segments = random.nextInt(3) == 0 ? 1 + random.nextInt(9) : 1;
        int m = size(random);
        int n = random.nextInt(8) == 0 ? 64 + random.nextInt(100) : size(random);
        int k = size(random) * segments;
        return MatmulShape.of(
                batch,
                m,
                n,
                k,
                segments,
                strides(random, true, batch, m, k),
                strides(random, true, batch, k, n),
                strides(random, false, batch, m, n));
    }

    private static int size(Random random) {
        return switch (random.nextInt(6)) {
            case 0 -> 1;
            case 1 -> random.nextInt(4);
            case 2 -> random.nextInt(9);
            default -> random.nextInt(34);
        };
    }

    /// The axes in any memory order, sometimes padded, sometimes broadcast.
    private static long[] strides(Random random, boolean broadcasts, long[] batch, long rows, long columns) {
        int rank = batch.length + 2;
        long[] sizes = java.util.Arrays.copyOf(batch, rank);
        sizes[rank - 2] = rows;
        sizes[rank - 1] = columns;
        long[] strides = new long[rank];
        long next = random.nextInt(4) == 0 ? 2 : 1;
        boolean rowMajor = random.nextBoolean();
        for (int done = 0; done < rank; ) {
            int axis = rowMajor ? rank - 1 - done : random.nextInt(rank);
            if (strides[axis] != 0) {
                continue;
            }
            strides[axis] = next;
            next = next * Math.max(1, sizes[axis]) + (random.nextInt(4) == 0 ? random.nextInt(5) : 0);
            done++;
        }
        for (int i = 0; i < rank; i++) {
            if (broadcasts && random.nextInt(6) == 0) {
                strides[i] = 0;
            }
        }
        return strides;
    }

    private static void check(MatmulShape shape, Random random) {
        check(shape, Matmul.Options.DEFAULT, null, POOLS[1], random);
    }

    private static void check(MatmulShape shape, Matmul.Options options, Tiling tiling, TilePool pool, Random random) {
        float[] a = numbers(random, span(shape, shape.a(), shape.m(), shape.k()));
        float[] b = numbers(random, span(shape, shape.b(), shape.k(), shape.n()));
        float[] c = numbers(random, span(shape, shape.c(), shape.m(), shape.n()));
        float[] bias = options.bias() ? numbers(random, shape.n()) : new float[0];
        float[] expected = c.clone();
        NaiveMatmul.run(shape, a, b, expected, bias, options.old());
        long phaseBytes = random.nextInt(2) == 0 ? BlockedMatmul.PHASE_BYTES : 256L + random.nextInt(20_000);
        var matmul = Matmul.of(shape, options, tiling, phaseBytes);
        assertThat(multiply(matmul, pool, a, b, c, bias))
                .as("%s %s %s, phases of %d, %d threads", shape, options, tiling, phaseBytes, pool.threads())
                .containsExactly(expected);
        var ready = matmul.ready(options, tiling == null || tiling.lanes() == 1 ? null : forPacked(tiling));
        if (ready != null) {
            assertThat(multiplyPacked(ready, pool, a, b, c, bias))
                    .as("%s %s %s, packed, %d threads", shape, options, tiling, pool.threads())
                    .containsExactly(expected);
        }
    }

    /// Blocks of whole panels, because the packed operand is not cut.
    private static Tiling forPacked(Tiling tiling) {
        int panels = Math.ceilDiv(tiling.nBlock(), tiling.columns());
        return tiling.withBlocks(tiling.mBlock(), panels * tiling.columns(), tiling.kBlock())
                .withPacking(tiling.a(), Tiling.Packing.READY);
    }

    private static float[] multiply(Matmul matmul, TilePool pool, float[] a, float[] b, float[] c, float[] bias) {
        try (var arena = Arena.ofConfined()) {
            return multiply(matmul, pool, arena, place(arena, a), place(arena, b), c, bias);
        }
    }

    private static float[] multiplyPacked(Matmul ready, TilePool pool, float[] a, float[] b, float[] c, float[] bias) {
        try (var arena = Arena.ofConfined()) {
            MemorySegment[] operands = {place(arena, a), place(arena, b)};
            int packed = ready.packedOperand();
            var to = arena.allocate(Math.max(64, ready.packedBytes()), 64);
            ready.pack(pool, operands[packed].address(), to.address());
            operands[packed] = to;
            return multiply(ready, pool, arena, operands[0], operands[1], c, bias);
        }
    }

    private static float[] multiply(
            Matmul matmul, TilePool pool, Arena arena, MemorySegment a, MemorySegment b, float[] c, float[] bias) {
        var result = place(arena, c);
        var scratch = arena.allocate(Math.max(1, matmul.scratchBytes(pool.threads())), 4);
        matmul.run(
                pool,
                a.address(),
                b.address(),
                result.address(),
                place(arena, bias).address(),
                scratch.address());
        return result.toArray(ValueLayout.JAVA_FLOAT);
    }

    private static MemorySegment place(Arena arena, float[] values) {
        return arena.allocateFrom(ValueLayout.JAVA_FLOAT, values);
    }

    private static int span(MatmulShape s, MatmulShape.Strides t, int rows, int columns) {
        return (int) (1
                + Math.max(0, s.batch0() - 1) * t.batch0()
                + Math.max(0, s.batch1() - 1) * t.batch1()
                + Math.max(0, s.batch2() - 1) * t.batch2()
                + Math.max(0, rows - 1) * t.row()
                + Math.max(0, columns - 1) * t.column());
    }

    private static float[] numbers(Random random, int count) {
        float[] numbers = new float[count];
        for (int i = 0; i < count; i++) {
            numbers[i] = (float) random.nextGaussian();
        }
        return numbers;
    }
}
