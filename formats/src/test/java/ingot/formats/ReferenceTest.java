package ingot.formats;

import static ingot.testkit.Reference.difference;
import static ingot.testkit.Reference.largest;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import ingot.autodiff.Gradients;
import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Interpreter;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.CrossEntropy;
import ingot.nn.ImageClassifier;
import ingot.nn.LanguageModel;
import ingot.nn.LstmClassifier;
import ingot.nn.Parameter;
import ingot.nn.ResNet;
import ingot.nn.TextEncoder;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Folders against PyTorch in float64: outputs, losses and every gradient, by the interpreter.
class ReferenceTest {
    /// fp32 round-off; PyTorch's own float32 is off by up to 2e-6 here, and a wrong rule by 1e-4 or more.
    private static final double OUTPUT_TOLERANCE = 2e-5;

    private static final double LOSS_TOLERANCE = 1e-5;

    /// Relative to the largest gradient of the case.
    private static final double GRADIENT_TOLERANCE = 1e-5;

    @ParameterizedTest
    @ValueSource(strings = {"gpt2", "llama", "qwen2", "mistral", "mixtral"})
    void decoders(String name) {
        ReferenceCase reference = ReferenceCase.orSkip(name);
        Map<String, Tensor> expected = reference.expected();
        try (HuggingFace folder = HuggingFace.open(reference.folder())) {
            LanguageModel model = folder.languageModel();
            Tensor tokens = expected.get("input_ids");
            int batch = tokens.shape().dim(0);
            int time = tokens.shape().dim(1);
            Map<String, Tensor> weights = weights(folder.weights());
            Map<String, Tensor> outputs = Interpreter.run(
                    model.logitsGraph(batch, time, true), Map.of("tokens", tokens, "mask", mask(expected)), weights);
            assertThat(difference(outputs.get("logits"), expected.get("logits")))
                    .isLessThan(OUTPUT_TOLERANCE);

            Tensor targets = shifted(expected.get("labels"));
            Map<String, Tensor> inputs = Map.of("tokens", tokens, "targets", targets, "scale", share(targets));
            gradients(model.lossGraph(batch, time, false), inputs, model.parameters(), weights, expected);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"bert-classification", "roberta-classification", "distilbert-classification"})
    void classifiers(String name) {
        ReferenceCase reference = ReferenceCase.orSkip(name);
        Map<String, Tensor> expected = reference.expected();
        try (HuggingFace folder = HuggingFace.open(reference.folder())) {
            TextEncoder model = folder.encoder();
            Map<String, Tensor> inputs = text(model, expected);
            Shape shape = expected.get("input_ids").shape();
            Map<String, Tensor> weights = weights(folder.weights());
            Map<String, Tensor> outputs =
                    Interpreter.run(model.logitsGraph(shape.dim(0), shape.dim(1)), inputs, weights);
            assertThat(difference(outputs.get("logits"), expected.get("logits")))
                    .isLessThan(OUTPUT_TOLERANCE);
            assertThat(folder.labels()).hasSize(model.head().labels());

            inputs.put("targets", expected.get("labels"));
            inputs.put("scale", share(expected.get("labels")));
            Graph graph = model.lossGraph(shape.dim(0), shape.dim(1), false);
            gradients(graph, inputs, model.parameters(), weights, expected);
        }
    }

    @Test
    void bertWithoutHead() {
        ReferenceCase reference = ReferenceCase.orSkip("bert");
        Map<String, Tensor> expected = reference.expected();
        try (HuggingFace folder = HuggingFace.open(reference.folder())) {
            TextEncoder model = folder.encoder();
            Map<String, Tensor> inputs = text(model, expected);
            Shape shape = expected.get("input_ids").shape();
            Graph graph = model.hiddenGraph(shape.dim(0), shape.dim(1));
            Map<String, Tensor> weights = weights(folder.weights());
            Map<String, Tensor> outputs = Interpreter.run(graph, inputs, weights);
            assertThat(difference(outputs.get("hidden"), expected.get("last_hidden_state")))
                    .isLessThan(OUTPUT_TOLERANCE);
            assertThat(difference(outputs.get("pooled"), expected.get("pooler_output")))
                    .isLessThan(OUTPUT_TOLERANCE);
            gradients(hiddenLoss(graph, expected), inputs, model.parameters(), weights, expected);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"vit", "mobilenet_v2"})
    void images(String name) {
        ReferenceCase reference = ReferenceCase.orSkip(name);
        Map<String, Tensor> expected = reference.expected();
        try (HuggingFace folder = HuggingFace.open(reference.folder())) {
            ImageClassifier model = folder.imageClassifier();
            Map<String, Tensor> inputs = new LinkedHashMap<>();
            inputs.put("pixels", expected.get("pixel_values"));
            int batch = expected.get("labels").shape().dim(0);
            Map<String, Tensor> weights = weights(folder.weights());
            Map<String, Tensor> outputs = Interpreter.run(model.logitsGraph(batch), inputs, weights);
            assertThat(difference(outputs.get("logits"), expected.get("logits")))
                    .isLessThan(OUTPUT_TOLERANCE);
            inputs.put("targets", expected.get("labels"));
            inputs.put("scale", share(expected.get("labels")));
            Set<String> statistics =
                    model.statistics().stream().map(Parameter::name).collect(Collectors.toSet());
            gradients(model.lossGraph(batch, false, statistics), inputs, model.parameters(), weights, expected);
        }
    }

    /// Normalised by the statistics of the batch, which also move the running ones.
    @Test
    void resnetInTraining() {
        ReferenceCase reference = ReferenceCase.orSkip("resnet-small-train");
        Map<String, Tensor> expected = reference.expected();
        try (HuggingFace folder = HuggingFace.open(reference.folder())) {
            ResNet model = (ResNet) folder.model();
            Map<String, Tensor> inputs = new LinkedHashMap<>();
            inputs.put("pixels", expected.get("pixel_values"));
            Map<String, Tensor> weights = weights(folder.weights());
            inputs.put("targets", expected.get("labels"));
            inputs.put("scale", share(expected.get("labels")));
            Graph loss = model.lossGraph(4, false);
            gradients(loss, inputs, model.parameters(), weights, expected);

            GraphBuilder b = new GraphBuilder("pass");
            b.output("logits", model.logits(b, b.input("pixels", Type.f32(4, 3, 16, 16)), null, name -> true));
            Map<String, Tensor> outputs = Interpreter.run(b.build(), inputs, weights);
            assertThat(difference(outputs.get("logits"), expected.get("logits")))
                    .isLessThan(OUTPUT_TOLERANCE);
            assertThat(model.statistics()).hasSize(2 * 8);
            for (Parameter statistic : model.statistics()) {
                assertThat(difference(
                                after(loss, statistic, inputs, weights), expected.get("after." + statistic.name())))
                        .as(statistic.name())
                        .isLessThan(OUTPUT_TOLERANCE);
            }
        }
    }

    /// A running statistic after a step: less its gradient.
    private static Tensor after(
            Graph graph, Parameter statistic, Map<String, Tensor> inputs, Map<String, Tensor> weights) {
        GraphBuilder b = new GraphBuilder("after");
        Value loss = b.inline(graph, declared(b, graph)).getFirst();
        Value weight = b.weight(statistic.name(), statistic.type());
        b.output(
                "after",
                b.subtract(weight, Gradients.of(b, loss, List.of(weight)).getFirst()));
        return Interpreter.run(b.build(), inputs, weights).get("after");
    }

    @Test
    void lstm() {
        ReferenceCase reference = ReferenceCase.orSkip("lstm-classifier");
        Map<String, Tensor> expected = reference.expected();
        try (HuggingFace folder = HuggingFace.open(reference.folder())) {
            LstmClassifier model = (LstmClassifier) folder.model();
            Map<String, Tensor> inputs = new LinkedHashMap<>();
            inputs.put("tokens", expected.get("input_ids"));
            Map<String, Tensor> weights = weights(folder.weights());
            Map<String, Tensor> outputs = Interpreter.run(model.logitsGraph(3, 12), inputs, weights);
            assertThat(difference(outputs.get("logits"), expected.get("logits")))
                    .isLessThan(OUTPUT_TOLERANCE);
            assertThat(difference(outputs.get("hidden"), expected.get("lstm_output")))
                    .isLessThan(OUTPUT_TOLERANCE);
            inputs.put("targets", expected.get("labels"));
            inputs.put("scale", share(expected.get("labels")));
            gradients(model.lossGraph(3, 12), inputs, model.parameters(), weights, expected);
        }
    }

    /// The loss of the case `bert`: mean square distance of the real tokens' states and of the pooled ones from
    /// targets.
    private static Graph hiddenLoss(Graph graph, Map<String, Tensor> expected) {
        GraphBuilder b = new GraphBuilder("loss");
        List<Value> results = b.inline(graph, declared(b, graph));
        Tensor real = ReferenceCase.as(expected.get("attention_mask"), DType.F32);
        double count = 0;
        for (float value : real.toFloats()) {
            count += value;
        }
        Value hidden = results.get(0);
        Value distance = b.subtract(hidden, b.constant(expected.get("target_hidden")));
        Value counted = b.multiply(
                b.multiply(distance, distance), b.broadcast(b.constant(real), hidden.shape(), List.of(0, 1)));
        Value pooled = b.subtract(results.get(1), b.constant(expected.get("target_pooled")));
        Value first =
                b.multiply(b.sum(counted, 0, 1, 2), 1 / (count * hidden.shape().dim(2)));
        Value second = b.multiply(
                b.sum(b.multiply(pooled, pooled), 0, 1), 1.0 / pooled.shape().elements());
        b.output("loss", b.add(first, second));
        return b.build();
    }

    private static void gradients(
            Graph graph,
            Map<String, Tensor> inputs,
            List<Parameter> parameters,
            Map<String, Tensor> weights,
            Map<String, Tensor> expected) {
        GraphBuilder b = new GraphBuilder("gradients");
        Value loss = b.inline(graph, declared(b, graph)).getFirst();
        b.output("loss", loss);
        List<Value> wrt =
                parameters.stream().map(p -> b.weight(p.name(), p.type())).toList();
        List<Value> gradients = Gradients.of(b, loss, wrt);
        for (int i = 0; i < parameters.size(); i++) {
            b.output(parameters.get(i).name(), gradients.get(i));
        }
        Map<String, Tensor> found = Interpreter.run(b.build(), inputs, weights);
        assertThat((double) found.get("loss").getFloat(0))
                .isCloseTo(expected.get("loss").getFloat(0), within(LOSS_TOLERANCE));
        double largest = parameters.stream()
                .mapToDouble(p -> largest(expected.get("grad." + p.name()).toFloats()))
                .max()
                .orElseThrow();
        for (Parameter parameter : parameters) {
            assertThat(difference(found.get(parameter.name()), expected.get("grad." + parameter.name())))
                    .as(parameter.name())
                    .isLessThan(GRADIENT_TOLERANCE * largest);
        }
        assertThat(expected.keySet().stream().filter(name -> name.startsWith("grad.")))
                .hasSameSizeAs(parameters);
    }

    /// The inputs of a graph, declared again.
    private static List<Value> declared(GraphBuilder b, Graph graph) {
        List<Value> inputs = new ArrayList<>();
        for (Value input : graph.inputs()) {
            inputs.add(b.input(((Op.Input) input.op()).name(), input.type()));
        }
        return inputs;
    }

    private static Map<String, Tensor> text(TextEncoder model, Map<String, Tensor> expected) {
        Map<String, Tensor> inputs = new LinkedHashMap<>();
        inputs.put("tokens", expected.get("input_ids"));
        inputs.put("mask", mask(expected));
        if (model.tokenTypes() > 1) {
            inputs.put("types", expected.get("token_type_ids"));
        }
        return inputs;
    }

    static Map<String, Tensor> weights(WeightSource source) {
        Map<String, Tensor> weights = new LinkedHashMap<>();
        source.types().forEach((name, type) -> {
            Tensor tensor = Tensor.zeros(type);
            source.read(name, tensor.data());
            weights.put(name, tensor);
        });
        return weights;
    }

    private static Tensor mask(Map<String, Tensor> expected) {
        return ReferenceCase.as(expected.get("attention_mask"), DType.BOOL);
    }

    /// The label of each position is the next token; the last has none.
    private static Tensor shifted(Tensor labels) {
        int rows = labels.shape().dim(0);
        int time = labels.shape().dim(1);
        Tensor next = Tensor.zeros(labels.type());
        for (int i = 0; i < rows * time; i++) {
            next.setLong(i, i % time + 1 < time ? labels.getLong(i + 1L) : CrossEntropy.IGNORED);
        }
        return next;
    }

    /// 1 / (number of targets).
    private static Tensor share(Tensor targets) {
        int counted = 0;
        for (int target : targets.toInts()) {
            counted += target == CrossEntropy.IGNORED ? 0 : 1;
        }
        return Tensor.scalar(1f / counted);
    }
}
