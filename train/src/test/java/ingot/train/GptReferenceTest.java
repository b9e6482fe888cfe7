package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import ingot.compiler.Backend;
import ingot.ir.Tensor;
import ingot.nn.CrossEntropy;
import ingot.nn.Gpt;
import ingot.nn.Parameter;
import ingot.runtime.Executor;
import ingot.store.RamStore;
import ingot.store.WeightStore;
import ingot.store.WeightStore.Key;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;

/// Training and decoding against PyTorch in float64: the `gpt2` case, 2 sequences of 14 tokens, 4 of them padding.
class GptReferenceTest {
    /// fp32 round-off of ten steps; PyTorch's own float32 is off by 7e-7.
    private static final double LOSS_TOLERANCE = 1e-5;

    private static final double NORM_TOLERANCE = 1e-4;
    private static final int BATCH = 2;
    private static final int TIME = 14;

    private final Backend backend = Backends.tested();
    private ReferenceCase reference;
    private Gpt model;

    @BeforeEach
    void open() {
        reference = ReferenceCase.orSkip("gpt2");
        model = GptFiles.open(reference.folder());
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void tenStepsOfAdamW(int microBatch) {
        JsonNode adamw = reference.trajectory().path("adamw");
        Optimizer optimizer =
                new Optimizer.AdamW(0.9, 0.999, 1e-8, adamw.path("weight_decay").asDouble());
        follow(adamw, optimizer, microBatch);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void tenStepsOfSgd(int microBatch) {
        JsonNode sgd = reference.trajectory().path("sgd");
        follow(sgd, new Optimizer.Sgd(sgd.path("momentum").asDouble(), 0), microBatch);
    }

    @Test
    void greedyTokens() {
        JsonNode generation = reference.trajectory().path("generation");
        try (RamStore store = new RamStore()) {
            GptFiles.load(reference.folder(), model, store);
            try (Decoder decoder = new Decoder(model, backend, store)) {
                float[] logits = decoder.append(ints(generation.path("prompt")));
                List<Integer> tokens = new ArrayList<>();
                int[] expected = ints(generation.path("new_tokens"));
                for (int i = 0; i < expected.length; i++) {
                    int token = Sampling.greedy(12).choose(logits, i);
                    tokens.add(token);
                    logits = decoder.append(token);
                }
                assertThat(tokens.stream().mapToInt(Integer::intValue).toArray())
                        .isEqualTo(expected);
            }
        }
    }

    private void follow(JsonNode expected, Optimizer optimizer, int microBatch) {
        Map<String, Tensor> weights = reference.tensors("model.safetensors");
        Map<String, Tensor> data = reference.tensors("expected.safetensors");
        Recipe recipe = Recipe.of(
                        optimizer, Schedule.constant(expected.path("lr").asDouble(), 0), BATCH)
                .withMicroBatch(microBatch);
        try (RamStore store = new RamStore();
                Trainer trainer = new Trainer(task(data), recipe, backend, store)) {
            weights.forEach((name, tensor) -> {
                store.pin(Key.weight(name)).copyFrom(tensor.data());
                store.release(Key.weight(name), true);
            });
            JsonNode losses = expected.path("losses");
            for (int step = 0; step <= 10; step++) {
                Trainer.StepResult result = trainer.next();
                assertThat((double) result.loss())
                        .as("loss after " + step + " steps")
                        .isCloseTo(losses.get(step).asDouble(), within(LOSS_TOLERANCE));
                if (step == 0) {
                    double norm =
                            reference.trajectory().path("grad_global_norm").asDouble();
                    assertThat((double) result.norm()).isCloseTo(norm, within(NORM_TOLERANCE));
                }
                if (step == 10) {
                    // ten updates are applied, the eleventh is pending
                    assertThat(norm(store))
                            .isCloseTo(expected.path("final_param_global_norm").asDouble(), within(NORM_TOLERANCE));
                }
            }
        }
    }

    /// The same batch at every step; here the decay applies to every parameter.
    private Task task(Map<String, Tensor> data) {
        List<Parameter> parameters = model.parameters().stream()
                .map(p -> new Parameter(p.name(), p.type(), p.initializer(), true))
                .toList();
        return new Task(
                parameters,
                rows -> model.lossGraph(rows, TIME, false),
                Set.of("tokens", "targets"),
                false,
                (step, executor) -> fill(data, executor));
    }

    private static long fill(Map<String, Tensor> data, Executor executor) {
        MemorySegment tokens = executor.input("tokens");
        MemorySegment targets = executor.input("targets");
        int counted = 0;
        for (int i = 0; i < BATCH * TIME; i++) {
            boolean last = i % TIME == TIME - 1;
            int target = last ? CrossEntropy.IGNORED : data.get("labels").getInt(i + 1);
            tokens.setAtIndex(ValueLayout.JAVA_INT, i, data.get("input_ids").getInt(i));
            targets.setAtIndex(ValueLayout.JAVA_INT, i, target);
            counted += target == CrossEntropy.IGNORED ? 0 : 1;
        }
        executor.input("scale").set(ValueLayout.JAVA_FLOAT, 0, 1f / counted);
        return counted;
    }

    private static double norm(WeightStore store) {
        double sum = 0;
        for (Key key : store.keys()) {
            if (key.part().equals(Key.WEIGHT)) {
                for (float value : Tensor.over(store.type(key), store.pin(key)).toFloats()) {
                    sum += (double) value * value;
                }
                store.release(key, false);
            }
        }
        return Math.sqrt(sum);
    }

    private static int[] ints(JsonNode list) {
        int[] values = new int[list.size()];
        for (int i = 0; i < values.length; i++) {
            values[i] = list.get(i).asInt();
        }
        return values;
    }
}
