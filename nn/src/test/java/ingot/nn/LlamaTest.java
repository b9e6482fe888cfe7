package ingot.nn;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.Graph;
import ingot.ir.IngotException;
import ingot.ir.Interpreter;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.nn.LlamaConfig.Variant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class LlamaTest {
    private static final int CONTEXT = 12;

    static Llama model(Variant variant, Rope.Scaling scaling) {
        return new Llama(
                new LlamaConfig(17, CONTEXT, 8, 2, 4, 2, 6, 10, 1e-5, new Rope(4, 100, scaling), false, variant, 0.3));
    }

    private static ParallelConfig parallel(boolean parallel, boolean headNorms) {
        return new ParallelConfig(
                17,
                CONTEXT,
                8,
                2,
                2,
                2,
                10,
                1e-5,
                Activation.GELU,
                Rope.of(2, 100),
                parallel,
                true,
                false,
                headNorms,
                0.3);
    }

    static List<LanguageModel> models() {
        return List.of(
                model(Variant.LLAMA, new Rope.None()),
                model(Variant.LLAMA.withBiases(true, true, true).withHeadNorms(), new Rope.Linear(2)),
                model(Variant.LLAMA.withWindow(3, 1), new Rope.Llama3(4, 1, 4, 8)),
                model(Variant.LLAMA.withGemma().withActivation(Activation.GELU_TANH), new Rope.None()),
                model(Variant.LLAMA.withExperts(3, 2), new Rope.Yarn(4, 8, 32, 1, 1.1, true)),
                new Phi(parallel(true, true)),
                new GptNeoX(parallel(false, false)));
    }

    /// The bits of one pass over the whole sequence, whatever the variant; so with the other decoders.
    @ParameterizedTest
    @MethodSource("models")
    void decodingStepByStepGivesTheBitsOfTheWholeSequence(LanguageModel model) {
        Map<String, Tensor> weights = Sample.weights(model.parameters(), 5);
        Tensor tokens = Sample.ints(3, 17, 1, CONTEXT);
        float[] whole = Interpreter.run(model.logitsGraph(1, CONTEXT, false), Map.of("tokens", tokens), weights)
                .get("logits")
                .toFloats();
        Map<String, Tensor> caches = new LinkedHashMap<>();
        // old contents must not matter
        model.cache(1, CONTEXT)
                .forEach(entry -> caches.put(
                        entry.name(), Sample.floats(9, entry.type().shape().dims())));
        for (int at = 0; at < CONTEXT; ) {
            int n = at == 0 ? 5 : 1;
            Graph graph = model.decodeGraph(1, n, CONTEXT);
            Map<String, Tensor> inputs = new HashMap<>();
            inputs.put("tokens", Tensor.of(Shape.of(1, n), Arrays.copyOfRange(tokens.toInts(), at, at + n)));
            inputs.put("position", Tensor.scalar(at));
            inputs.put("last", Tensor.scalar(n - 1));
            caches.forEach((name, cache) -> inputs.put("cache." + name, cache));
            Map<String, Tensor> results = Interpreter.run(graph, inputs, weights);
            for (String name : new ArrayList<>(caches.keySet())) {
                Tensor rows = results.get(name);
                Tensor cache = caches.get(name);
                long row = rows.shape().elements() / n;
                for (long i = 0; i < n * row; i++) {
                    cache.setFloat(at * row + i, rows.getFloat(i));
                }
            }
            at += n;
            assertThat(results.get("logits").toFloats())
                    .as("after %d tokens", at)
                    .isEqualTo(Arrays.copyOfRange(whole, (at - 1) * 17, at * 17));
        }
    }

    @Test
    void aWindowHidesWhatIsFarBack() {
        Llama model = new Llama(new LlamaConfig(
                17, CONTEXT, 8, 1, 2, 2, 4, 10, 1e-5, Rope.of(4, 100), true, Variant.LLAMA.withWindow(3, 0), 0.3));
        Map<String, Tensor> weights = Sample.weights(model.parameters(), 5);
        int[] ids = {1, 2, 3, 4, 5, 6};
        float[] one = last(model, weights, ids);
        ids[2] = 9; // in the window of neither of the last three
        assertThat(last(model, weights, ids)).isEqualTo(one);
        ids[3] = 9;
        assertThat(last(model, weights, ids)).isNotEqualTo(one);
    }

    private static float[] last(Llama model, Map<String, Tensor> weights, int[] ids) {
        float[] logits = Interpreter.run(
                        model.logitsGraph(1, ids.length, false),
                        Map.of("tokens", Tensor.of(Shape.of(1, ids.length), ids)),
                        weights)
                .get("logits")
                .toFloats();
        return Arrays.copyOfRange(logits, logits.length - 17, logits.length);
    }

    @Test
    void publishedParameterCounts() {
        // TinyLlama 1.1B
        LlamaConfig tiny = new LlamaConfig(
                32000, 2048, 2048, 22, 32, 4, 64, 5632, 1e-5, Rope.of(64, 1e4), false, Variant.LLAMA, 0.02);
        assertThat(count(tiny)).isEqualTo(1_100_048_384L);
        // Mixtral 8x7B
        LlamaConfig mixtral = new LlamaConfig(
                32000,
                32768,
                4096,
                32,
                32,
                8,
                128,
                14336,
                1e-5,
                Rope.of(128, 1e6),
                false,
                Variant.LLAMA.withExperts(8, 2),
                0.02);
        assertThat(count(mixtral)).isEqualTo(46_702_792_704L);
    }

    private static long count(LlamaConfig config) {
        return new Llama(config)
                .parameters().stream()
                        .mapToLong(p -> p.type().shape().elements())
                        .sum();
    }

    /// By hand from the formulas: pairs that turn often in the original context stay, slow ones are stretched.
    @Test
    void scaledFrequencies() {
        double[] plain = Rope.of(8, 10_000).frequencies();
        assertThat(plain).containsExactly(new double[] {1, 0.1, 0.01, 0.001}, Offset.offset(1e-12));
        double[] linear = new Rope(8, 10_000, new Rope.Linear(4)).frequencies();
        assertThat(linear).containsExactly(new double[] {0.25, 0.025, 0.0025, 0.00025}, Offset.offset(1e-12));
        // turns in 1000 positions: 159, 15.9, 1.59, 0.159
        double[] llama3 = new Rope(8, 10_000, new Rope.Llama3(8, 1, 4, 1000)).frequencies();
        double kept = (10 / (2 * Math.PI) - 1) / 3;
        assertThat(llama3)
                .containsExactly(
                        new double[] {1, 0.1, (1 - kept) * 0.01 / 8 + kept * 0.01, 0.001 / 8}, Offset.offset(1e-12));
        double[] yarn = new Rope(8, 10_000, new Rope.Yarn(8, 1000, 32, 1, 1, true)).frequencies();
        // pair(32) = 0.69 → 0, pair(1) = 2.2 → 3: a ramp over pairs 0 to 3
        assertThat(yarn)
                .containsExactly(
                        new double[] {1, 0.1 * (2 / 3.0 + 1 / 24.0), 0.01 * (1 / 3.0 + 2 / 24.0), 0.001 / 8},
                        Offset.offset(1e-12));
    }

    @Test
    void sizesThatDoNotFit() {
        assertThatThrownBy(
                        () -> new LlamaConfig(9, 9, 8, 1, 3, 2, 4, 9, 1e-5, Rope.of(4, 100), true, Variant.LLAMA, 0.1))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("3 heads do not divide into groups over 2 key heads");
        assertThatThrownBy(() -> Rope.of(3, 100)).hasMessageContaining("even number of channels");
        assertThatThrownBy(() -> Variant.LLAMA.withExperts(2, 3)).hasMessageContaining("1 to all of the 2 experts");
        assertThatThrownBy(() -> models().getFirst().logitsGraph(1, CONTEXT + 1, false))
                .hasMessageContaining("13 tokens, the context holds 12");
    }
}
