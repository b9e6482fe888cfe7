package ingot.nn;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import ingot.ir.Graph;
import ingot.ir.Interpreter;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import java.util.Arrays;
import java.util.Map;
import org.junit.jupiter.api.Test;

class InitializerTest {
    private static final int N = 20_000;

    @Test
    void aPartHasTheValuesOfTheWhole() {
        for (Initializer initializer : new Initializer[] {new Initializer.Normal(1), new Initializer.Uniform(1)}) {
            float[] whole = values(initializer, 7, "w", 0, 100);
            assertThat(values(initializer, 7, "w", 40, 60)).isEqualTo(Arrays.copyOfRange(whole, 40, 100));
        }
    }

    @Test
    void nameAndSeedDecide() {
        Initializer normal = new Initializer.Normal(1);
        assertThat(values(normal, 7, "w", 0, 10)).isEqualTo(values(normal, 7, "w", 0, 10));
        assertThat(values(normal, 7, "w", 0, 10)).isNotEqualTo(values(normal, 8, "w", 0, 10));
        assertThat(values(normal, 7, "w", 0, 10)).isNotEqualTo(values(normal, 7L + (1L << 32), "w", 0, 10));
        assertThat(values(normal, 7, "w", 0, 10)).isNotEqualTo(values(normal, 7, "v", 0, 10));
    }

    @Test
    void normalHasItsMoments() {
        float[] x = values(new Initializer.Normal(0.02), 1, "h.0.attn.c_attn.weight", 0, N);
        double mean = 0;
        double square = 0;
        double fourth = 0;
        for (float v : x) {
            double z = v / 0.02;
            mean += z / N;
            square += z * z / N;
            fourth += z * z * z * z / N;
        }
        assertThat(mean).isCloseTo(0, within(0.03));
        assertThat(square).isCloseTo(1, within(0.04));
        assertThat(fourth).isCloseTo(3, within(0.3));
    }

    @Test
    void uniformFillsItsRange() {
        float[] x = values(new Initializer.Uniform(0.5), 1, "w", 0, N);
        double mean = 0;
        double square = 0;
        for (float v : x) {
            assertThat(v).isBetween(-0.5f, 0.5f);
            mean += v / N;
            square += v * v / N;
        }
        assertThat(mean).isCloseTo(0, within(0.01));
        assertThat(square).isCloseTo(0.25 / 3, within(0.005));
    }

    @Test
    void graphsHaveTheBitsOfTheDefinition() {
        int n = 1000;
        for (long start : new long[] {0, 12_345, 1L << 32, (5L << 32) + 77, (1L << 40) - n}) {
            graphHasTheBits(new Initializer.Normal(0.3), Initializer.Normal.graph(n), 0.3f, start);
            graphHasTheBits(new Initializer.Uniform(0.7), Initializer.Uniform.graph(n), 0.7f, start);
        }
    }

    private static void graphHasTheBits(Initializer initializer, Graph graph, float scale, long start) {
        Map<String, Tensor> inputs = Map.of(
                "key", Tensor.of(Shape.of(4), Initializer.key(-5, "w")),
                "first", Tensor.scalar((int) start),
                "row", Tensor.scalar(2 * (int) (start >>> 32)),
                "scale", Tensor.scalar(scale));
        Tensor found = Interpreter.run(graph, inputs, Map.of()).get("values");
        Tensor expected = Tensor.zeros(found.type());
        initializer.fill(expected, -5, "w", start);
        assertThat(found.sameBits(expected)).isTrue();
    }

    private static float[] values(Initializer initializer, long seed, String name, long start, int n) {
        Tensor tensor = Tensor.zeros(Type.f32(n));
        initializer.fill(tensor, seed, name, start);
        return tensor.toFloats();
    }
}
