package ingot.nn;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.Graph;
import ingot.ir.IngotException;
import ingot.ir.Interpreter;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class GptTest {
    private static final int CONTEXT = 12;
    private static final Gpt GPT = Gpt.of(GptConfig.of(17, CONTEXT, 8, 2, 2));
    private static final Map<String, Tensor> WEIGHTS = Sample.weights(GPT.parameters(), 5);

    @Test
    void everyParameterIsUsedUnderItsNameAndType() {
        Graph graph = GPT.lossGraph(2, 5, false);
        Map<String, Type> used = new HashMap<>();
        graph.weights().forEach(value -> used.put(((Op.Weight) value.op()).name(), value.type()));
        Map<String, Type> declared = new HashMap<>();
        GPT.parameters().forEach(parameter -> declared.put(parameter.name(), parameter.type()));
        assertThat(used).isEqualTo(declared);
    }

    @Test
    void parameterCountsOfThePublishedSizes() {
        assertThat(count(GptConfig.small())).isEqualTo(124_439_808);
        assertThat(count(GptConfig.medium())).isEqualTo(354_823_168);
        assertThat(count(GptConfig.large())).isEqualTo(774_030_080);
        assertThat(count(GptConfig.xl())).isEqualTo(1_557_611_200L);
    }

    @Test
    void decodingStepByStepGivesTheBitsOfTheWholeSequence() {
        int batch = 2;
        Tensor tokens = Sample.ints(3, 17, batch, CONTEXT);
        Tensor whole = run(GPT.logitsGraph(batch, CONTEXT, false), Map.of("tokens", tokens))
                .get("logits");
        Map<String, Tensor> caches = new HashMap<>();
        // Old contents must not matter.
        GPT.cache(batch, CONTEXT)
                .forEach(entry -> caches.put(
                        entry.name(), Sample.floats(9, entry.type().shape().dims())));

        int prompt = 5;
        Tensor first = decode(GPT.decodeGraph(batch, 8, CONTEXT), columns(tokens, 0, prompt, 8), 0, prompt, caches);
        assertThat(rows(first)).isEqualTo(rows(at(whole, prompt - 1)));
        Graph step = GPT.decodeGraph(batch, 1, CONTEXT);
        for (int t = prompt; t < CONTEXT; t++) {
            Tensor logits = decode(step, columns(tokens, t, t + 1, 1), t, 1, caches);
            assertThat(rows(logits)).as("token " + t).isEqualTo(rows(at(whole, t)));
        }
    }

    @Test
    void laterTokensDoNotChangeEarlierLogits() {
        Tensor tokens = Sample.ints(3, 17, 1, 6);
        Tensor changed = Sample.ints(3, 17, 1, 6);
        changed.setLong(5, (tokens.getLong(5) + 1) % 17);
        Graph graph = GPT.logitsGraph(1, 6, false);
        Tensor a = run(graph, Map.of("tokens", tokens)).get("logits");
        Tensor b = run(graph, Map.of("tokens", changed)).get("logits");
        for (int t = 0; t < 5; t++) {
            assertThat(rows(at(a, t))).isEqualTo(rows(at(b, t)));
        }
        assertThat(rows(at(a, 5))).isNotEqualTo(rows(at(b, 5)));
    }

    @Test
    void ignoredTargetsAddNothing() {
        Graph graph = GPT.lossGraph(1, 6, false);
        Tensor tokens = Sample.ints(3, 17, 1, 6);
        Tensor none = Tensor.zeros(Type.i32(1, 6));
        for (int i = 0; i < 6; i++) {
            none.setLong(i, CrossEntropy.IGNORED);
        }
        Map<String, Tensor> inputs = Map.of("tokens", tokens, "targets", none, "scale", Tensor.scalar(1f));
        assertThat(run(graph, inputs).get("loss").getFloat(0)).isZero();
    }

    /// A slice of the batch must drop what the whole drops.
    @Test
    void dropoutDependsOnTheRowInTheBatchOnly() {
        Gpt gpt = Gpt.of(GPT.config().withDropout(0.4));
        Tensor tokens = Sample.ints(3, 17, 1, 6);
        Tensor targets = Sample.ints(4, 17, 1, 6);
        Tensor twice = Tensor.zeros(Type.i32(2, 6));
        Tensor wanted = Tensor.zeros(Type.i32(2, 6));
        for (int i = 0; i < 6; i++) {
            twice.setLong(i, tokens.getLong(i));
            twice.setLong(6 + i, tokens.getLong(i));
            wanted.setLong(i, CrossEntropy.IGNORED);
            wanted.setLong(6 + i, targets.getLong(i));
        }
        float whole = run(
                        gpt.lossGraph(2, 6, true),
                        Map.of("tokens", twice, "targets", wanted, "scale", Tensor.scalar(1f), "key", key(0)))
                .get("loss")
                .getFloat(0);
        Graph one = gpt.lossGraph(1, 6, true);
        List<Float> alone = new ArrayList<>();
        for (int row = 0; row < 2; row++) {
            alone.add(
                    run(one, Map.of("tokens", tokens, "targets", targets, "scale", Tensor.scalar(1f), "key", key(row)))
                            .get("loss")
                            .getFloat(0));
        }
        assertThat(whole).isCloseTo(alone.get(1), org.assertj.core.api.Assertions.within(1e-5f));
        assertThat(alone.get(0)).isNotCloseTo(alone.get(1), org.assertj.core.api.Assertions.within(1e-3f));
    }

    @Test
    void wrongSizesAreNamed() {
        assertThatThrownBy(() -> GptConfig.of(10, 8, 10, 1, 3))
                .isInstanceOf(IngotException.class)
                .hasMessage("gpt: width 10 does not divide into 3 heads; choose a multiple of 3");
        assertThatThrownBy(() -> GPT.logitsGraph(1, CONTEXT + 1, false))
                .isInstanceOf(IngotException.class)
                .hasMessage("gpt: 13 tokens, the context holds 12; cut the sequence or raise the context");
        assertThatThrownBy(() -> GptConfig.tiny().withDropout(1))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("dropout rate is in [0, 1), got 1.0");
    }

    private static Map<String, Tensor> run(Graph graph, Map<String, Tensor> inputs) {
        return Interpreter.run(graph, inputs, WEIGHTS);
    }

    private static Tensor decode(Graph graph, Tensor tokens, int position, int real, Map<String, Tensor> caches) {
        Map<String, Tensor> inputs = new HashMap<>();
        inputs.put("tokens", tokens);
        inputs.put("position", Tensor.scalar(position));
        inputs.put("last", Tensor.scalar(real - 1));
        caches.forEach((name, cache) -> inputs.put("cache." + name, cache));
        Map<String, Tensor> found = run(graph, inputs);
        caches.forEach((name, cache) -> {
            Tensor rows = found.get(name);
            int each = cache.shape().dim(2) * cache.shape().dim(3);
            for (int b = 0; b < cache.shape().dim(0); b++) {
                for (int i = 0; i < real * each; i++) {
                    long from = (long) b * rows.shape().dim(1) * each + i;
                    cache.setFloat(((long) b * cache.shape().dim(1) + position) * each + i, rows.getFloat(from));
                }
            }
        });
        return found.get("logits");
    }

    /// Columns [from, to) of tokens [batch, time], then zeros up to `width`.
    private static Tensor columns(Tensor tokens, int from, int to, int width) {
        int batch = tokens.shape().dim(0);
        int time = tokens.shape().dim(1);
        Tensor cut = Tensor.zeros(Type.i32(batch, width));
        for (int b = 0; b < batch; b++) {
            for (int t = from; t < to; t++) {
                cut.setLong((long) b * width + t - from, tokens.getLong((long) b * time + t));
            }
        }
        return cut;
    }

    /// [batch, time, vocabulary] at one time.
    private static Tensor at(Tensor logits, int t) {
        int batch = logits.shape().dim(0);
        int time = logits.shape().dim(1);
        int size = logits.shape().dim(2);
        Tensor cut = Tensor.zeros(Type.f32(batch, size));
        for (int b = 0; b < batch; b++) {
            for (int i = 0; i < size; i++) {
                cut.setFloat((long) b * size + i, logits.getFloat(((long) b * time + t) * size + i));
            }
        }
        return cut;
    }

    private static List<Float> rows(Tensor tensor) {
        List<Float> values = new ArrayList<>();
        for (float value : tensor.toFloats()) {
            values.add(value);
        }
        return values;
    }

    private static Tensor key(int row) {
        return Tensor.of(Shape.of(4), 1, 2, 3, row);
    }

    private static long count(GptConfig config) {
        return Gpt.of(config).parameters().stream()
                .mapToLong(parameter -> parameter.type().shape().elements())
                .sum();
    }
}
