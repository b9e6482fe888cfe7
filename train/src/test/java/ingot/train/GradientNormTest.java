package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.Type;
import ingot.nn.Initializer;
import ingot.nn.Parameter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class GradientNormTest {
    private static final int BLOCK = 4096;

    /// The definition, as it is written.
    private static float sum(float[] x) {
        if (x.length <= BLOCK) {
            float[] lanes = new float[16];
            for (int i = 0; i < x.length; i++) {
                lanes[i % 16] += x[i];
            }
            for (int half = 8; half > 0; half /= 2) {
                for (int l = 0; l < half; l++) {
                    lanes[l] += lanes[l + half];
                }
            }
            return lanes[0];
        }
        float[] sums = new float[x.length / BLOCK];
        for (int i = 0; i < sums.length; i++) {
            sums[i] = sum(Arrays.copyOfRange(x, i * BLOCK, (i + 1) * BLOCK));
        }
        float whole = sum(sums);
        int rest = sums.length * BLOCK;
        return rest == x.length ? whole : whole + sum(Arrays.copyOfRange(x, rest, x.length));
    }

    private static float[] gradient(int elements) {
        Random random = new Random(elements);
        float[] g = new float[elements];
        for (int i = 0; i < elements; i++) {
            g[i] = random.nextFloat() - 0.5f;
        }
        return g;
    }

    private static float squares(float[] g) {
        float[] squares = g.clone();
        for (int i = 0; i < g.length; i++) {
            squares[i] *= g[i];
        }
        return sum(squares);
    }

    private static GradientNorm norm(int chunk, int... sizes) {
        List<Parameter> parameters = new ArrayList<>();
        for (int i = 0; i < sizes.length; i++) {
            parameters.add(new Parameter("p" + i, Type.f32(sizes[i]), new Initializer.Constant(0), false));
        }
        return new GradientNorm(parameters, chunk, Backends.tested());
    }

    private static void add(GradientNorm norm, String tensor, MemorySegment gradient, int chunk) {
        new Chunks(gradient.byteSize() / 4, chunk)
                .forEach((start, elements) ->
                        norm.add(tensor, start, elements, gradient.asSlice(4 * start, 4L * elements)));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 15, 4095, BLOCK, BLOCK + 1, 2 * BLOCK, 20 * BLOCK + 77, BLOCK * BLOCK + 5})
    void chunksGiveTheBitsOfTheDefinition(int size) {
        float[] g = gradient(size);
        float expected = (float) Math.sqrt(squares(g));
        try (Arena arena = Arena.ofShared()) {
            MemorySegment gradient = arena.allocate(4L * size, 64).copyFrom(MemorySegment.ofArray(g));
            int[] chunks = size < BLOCK * BLOCK ? new int[] {BLOCK, 3 * BLOCK, 1 << 30} : new int[] {1 << 18, 1 << 30};
            for (int chunk : chunks) {
                try (GradientNorm norm = norm(chunk, size)) {
                    for (int round = 0; round < 2; round++) {
                        norm.reset();
                        add(norm, "p0", gradient, chunk);
                        assertThat(norm.norm()).isEqualTo(expected);
                    }
                }
            }
        }
    }

    @Test
    void tensorsAddUpInDeclaredOrder() {
        int[] sizes = {3 * BLOCK + 5, 7, 2 * BLOCK};
        float expected = 0;
        try (Arena arena = Arena.ofShared();
                GradientNorm norm = norm(BLOCK, sizes)) {
            List<MemorySegment> gradients = new ArrayList<>();
            for (int size : sizes) {
                float[] g = gradient(size);
                expected += squares(g);
                gradients.add(arena.allocate(4L * size, 64).copyFrom(MemorySegment.ofArray(g)));
            }
            norm.add("p0", 0, 2 * BLOCK, gradients.get(0).asSlice(0, 8 * BLOCK));
            add(norm, "p2", gradients.get(2), BLOCK);
            add(norm, "p1", gradients.get(1), BLOCK);
            norm.add("p0", 2 * BLOCK, BLOCK + 5, gradients.get(0).asSlice(8 * BLOCK));
            assertThat(norm.norm()).isEqualTo((float) Math.sqrt(expected));
        }
    }

    @Test
    void chunksOutOfPlaceAreRefused() {
        try (Arena arena = Arena.ofShared();
                GradientNorm norm = norm(BLOCK, 2 * BLOCK + 5)) {
            MemorySegment chunk = arena.allocate(4 * BLOCK, 64);
            norm.add("p0", 0, BLOCK, chunk);
            assertThatThrownBy(norm::norm)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessage("gradient norm: 4096 of the 8197 elements of p0 were added");
            norm.add("p0", 2 * BLOCK, 5, chunk);
            assertThatThrownBy(() -> norm.add("p0", 2 * BLOCK, 5, chunk))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("elements 8192 to 8197 of p0 were added; expected")
                    .hasMessageContaining("after 4096");
            assertThatThrownBy(() -> norm.add("p0", BLOCK, 100, chunk)).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> norm.add("p0", 0, BLOCK, chunk)).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> norm.add("p0", BLOCK, BLOCK, chunk.asSlice(64)))
                    .isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(() -> norm.add("q", 0, BLOCK, chunk))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("no tensor q");
        }
    }
}
