package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import ingot.compiler.Backend;
import ingot.formats.HuggingFace;
import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.CrossEntropy;
import ingot.nn.ImageClassifier;
import ingot.nn.LanguageModel;
import ingot.nn.LstmClassifier;
import ingot.nn.MobileNet;
import ingot.nn.Parameter;
import ingot.nn.TextEncoder;
import ingot.runtime.Executor;
import ingot.store.RamStore;
import ingot.store.WeightStore;
import ingot.store.WeightStore.Key;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;

/// Training and decoding of Hugging Face folders against PyTorch in float64: ten steps on one batch, some of it
/// padding.
class ReferenceTest {
    /// fp32 round-off of ten steps; PyTorch's own float32 is off by up to 2e-6.
    private static final double LOSS_TOLERANCE = 1e-5;

    private static final double NORM_TOLERANCE = 1e-4;

    private final Backend backend = Backends.tested();

    @ParameterizedTest
    @CsvSource({
        "gpt2, 1, 10",
        "gpt2, 2, 10",
        "llama, 1, 10",
        "qwen2, 2, 10",
        "mistral, 2, 10",
        "mixtral, 2, 10",
        "bert, 2, 10",
        "bert-classification, 1, 10",
        "roberta-classification, 2, 10",
        "distilbert-classification, 2, 10",
        "vit, 1, 10",
        "mobilenet_v2, 3, 2",
        "resnet-small-train, 4, 10",
        "lstm-classifier, 1, 10"
    })
    void stepsOfEachOptimizer(String name, int microBatch, int steps) {
        ReferenceCase reference = ReferenceCase.orSkip(name);
        JsonNode adamw = reference.trajectory().path("adamw");
        follow(
                reference,
                adamw,
                new Optimizer.AdamW(0.9, 0.999, 1e-8, adamw.path("weight_decay").asDouble()),
                microBatch,
                steps);
        JsonNode sgd = reference.trajectory().path("sgd");
        follow(reference, sgd, new Optimizer.Sgd(sgd.path("momentum").asDouble(), 0), microBatch, steps);
    }

    @ParameterizedTest
    @ValueSource(strings = {"gpt2", "llama", "qwen2", "mistral", "mixtral"})
    void greedyTokens(String name) {
        ReferenceCase reference = ReferenceCase.orSkip(name);
        JsonNode generation = reference.trajectory().path("generation");
        try (HuggingFace folder = HuggingFace.open(reference.folder());
                RamStore store = new RamStore()) {
            folder.weights().load(store);
            try (Decoder decoder = new Decoder(folder.languageModel(), 24, backend, store)) {
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

    private void follow(ReferenceCase reference, JsonNode expected, Optimizer optimizer, int microBatch, int steps) {
        Map<String, Tensor> data = reference.tensors("expected.safetensors");
        try (HuggingFace folder = HuggingFace.open(reference.folder())) {
            Task task = task(folder, data);
            Tensor input = data.containsKey("input_ids") ? data.get("input_ids") : data.get("pixel_values");
            int batch = input.shape().dim(0);
            Recipe recipe = Recipe.of(
                            optimizer, Schedule.constant(expected.path("lr").asDouble(), 0), batch)
                    .withMicroBatch(microBatch);
            try (RamStore store = new RamStore();
                    Trainer trainer = new Trainer(task, recipe, backend, store)) {
                task.parameters().stream().map(Parameter::name).forEach(name -> {
                    folder.weights().read(name, store.pin(Key.weight(name)));
                    store.release(Key.weight(name), true);
                });
                JsonNode losses = expected.path("losses");
                for (int step = 0; step <= steps; step++) {
                    Trainer.StepResult result = trainer.next();
                    assertThat((double) result.loss())
                            .as("loss after " + step + " steps")
                            .isCloseTo(losses.get(step).asDouble(), within(LOSS_TOLERANCE));
                    if (step == 0) {
                        double norm =
                                reference.trajectory().path("grad_global_norm").asDouble();
                        assertThat((double) result.norm()).isCloseTo(norm, within(NORM_TOLERANCE));
                    }
                }
                if (steps == 10) {
                    // ten updates are applied, the eleventh is pending
                    List<Parameter> learned =
                            task.trained().stream().filter(Parameter::learned).toList();
                    assertThat(norm(store, learned))
                            .isCloseTo(expected.path("final_param_global_norm").asDouble(), within(NORM_TOLERANCE));
                }
            }
        }
    }

    /// The same batch at every step; here the decay applies to every parameter.
    private static Task task(HuggingFace folder, Map<String, Tensor> data) {
        Map<String, Tensor> inputs = new LinkedHashMap<>();
        int time = 0;
        if (data.containsKey("input_ids")) {
            inputs.put("tokens", data.get("input_ids"));
            time = data.get("input_ids").shape().dim(1);
        }
        int length = time;
        List<Parameter> parameters = folder.model().parameters().stream()
                .map(p -> new Parameter(p.name(), p.type(), p.initializer(), true))
                .toList();
        switch (folder.model()) {
            case LanguageModel model -> {
                Tensor targets = shifted(data.get("labels"));
                inputs.put("targets", targets);
                return task(parameters, rows -> model.lossGraph(rows, length, false), inputs, share(targets));
            }
            case TextEncoder model -> {
                inputs.put("mask", data.get("attention_mask"));
                if (model.tokenTypes() > 1) {
                    inputs.put("types", data.get("token_type_ids"));
                }
                if (data.containsKey("labels")) {
                    inputs.put("targets", data.get("labels"));
                    float share = share(data.get("labels"));
                    return task(parameters, rows -> model.lossGraph(rows, length, false), inputs, share);
                }
                inputs.put("target_hidden", data.get("target_hidden"));
                inputs.put("target_pooled", data.get("target_pooled"));
                return task(parameters, rows -> hiddenLoss(model, rows, length), inputs, hiddenShare(data));
            }
            case LstmClassifier model -> {
                inputs.put("targets", data.get("labels"));
                float share = share(data.get("labels"));
                return task(parameters, rows -> model.lossGraph(rows, length), inputs, share);
            }
            case ImageClassifier model -> {
                inputs.put("pixels", data.get("pixel_values"));
                inputs.put("targets", data.get("labels"));
                // PyTorch ran MobileNet in eval mode: its statistics stay
                Set<String> frozen = model instanceof MobileNet
                        ? model.statistics().stream().map(Parameter::name).collect(Collectors.toSet())
                        : Set.of();
                List<Parameter> all = new ArrayList<>(parameters);
                all.addAll(model.statistics());
                float share = share(data.get("labels"));
                return task(all, rows -> model.lossGraph(rows, false, frozen), inputs, share)
                        .startingAt(new Start(null, frozen));
            }
            default -> throw new AssertionError(folder.model());
        }
    }

    private static Task task(
            List<Parameter> parameters,
            java.util.function.IntFunction<Graph> graph,
            Map<String, Tensor> inputs,
            float scale) {
        Set<String> batched = new LinkedHashSet<>(inputs.keySet());
        return new Task(parameters, graph, batched, false, (step, executor) -> {
            inputs.forEach((name, tensor) -> fill(executor, name, tensor));
            executor.input("scale").set(ValueLayout.JAVA_FLOAT, 0, scale);
            return 1;
        });
    }

    private static void fill(Executor executor, String name, Tensor tensor) {
        MemorySegment input = executor.input(name);
        Tensor to = Tensor.over(
                tensor.type()
                        .with(
                                name.equals("mask")
                                        ? DType.BOOL
                                        : tensor.type().dtype().isFloating() ? DType.F32 : DType.I32),
                input);
        for (long i = 0; i < tensor.shape().elements(); i++) {
            if (tensor.type().dtype().isFloating()) {
                to.setFloat(i, tensor.getFloat(i));
            } else {
                to.setLong(i, tensor.getLong(i));
            }
        }
    }

    /// The loss of the case `bert`: mean square distances of the real tokens' states and of the pooled ones.
    private static Graph hiddenLoss(TextEncoder model, int rows, int time) {
        GraphBuilder b = new GraphBuilder("loss");
        Graph graph = model.hiddenGraph(rows, time);
        List<Value> inputs = new ArrayList<>();
        for (Value input : graph.inputs()) {
            inputs.add(b.input(((Op.Input) input.op()).name(), input.type()));
        }
        List<Value> results = b.inline(graph, inputs);
        Value scale = b.input("scale", Type.f32());
        Value hidden = results.get(0);
        Value distance = b.subtract(hidden, b.input("target_hidden", hidden.type()));
        Value real = b.broadcast(b.convert(inputs.get(1), DType.F32), hidden.shape(), List.of(0, 1));
        Value perRow = b.sum(b.multiply(b.multiply(distance, distance), real), 1, 2); // [rows]
        Value pooled = b.subtract(
                results.get(1), b.input("target_pooled", results.get(1).type()));
        Value both = b.add(b.multiply(perRow, scale), b.multiply(b.sum(b.multiply(pooled, pooled), 1), 1.0 / 64));
        b.output("loss", b.sum(both, 0));
        return b.build();
    }

    /// 1 / (real tokens · width).
    private static float hiddenShare(Map<String, Tensor> data) {
        long real = 0;
        for (long i = 0; i < data.get("attention_mask").shape().elements(); i++) {
            real += data.get("attention_mask").getLong(i);
        }
        return 1f / (real * data.get("target_hidden").shape().dim(2));
    }

    /// The label of each position is the next token; the last has none.
    private static Tensor shifted(Tensor labels) {
        Shape shape = labels.shape();
        Tensor next = Tensor.zeros(new Type(DType.I32, shape));
        for (int i = 0; i < shape.elements(); i++) {
            next.setLong(i, i % shape.dim(1) + 1 < shape.dim(1) ? labels.getLong(i + 1L) : CrossEntropy.IGNORED);
        }
        return next;
    }

    /// 1 / (number of targets).
    private static float share(Tensor targets) {
        int counted = 0;
        for (int target : targets.toInts()) {
            counted += target == CrossEntropy.IGNORED ? 0 : 1;
        }
        return 1f / counted;
    }

    private static double norm(WeightStore store, List<Parameter> parameters) {
        double sum = 0;
        for (Parameter parameter : parameters) {
            Key key = Key.weight(parameter.name());
            for (float value : Tensor.over(parameter.type(), store.pin(key)).toFloats()) {
                sum += (double) value * value;
            }
            store.release(key, false);
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
