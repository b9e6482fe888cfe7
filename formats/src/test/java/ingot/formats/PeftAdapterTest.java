package ingot.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.Graph;
import ingot.ir.IngotException;
import ingot.ir.Interpreter;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.nn.Lora;
import ingot.testkit.RandomTensors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Adapters in PEFT's layout, over folders and over ONNX imports.
class PeftAdapterTest {
    @TempDir
    private Path folder;

    @ParameterizedTest
    @CsvSource({"bert-classification, query, true", "gpt2, c_attn, false", "llama, q_proj, true"})
    void savedAndMerged(String name, String target, boolean turned) throws IOException {
        try (HuggingFace files = HuggingFace.open(ReferenceCase.orSkip(name).folder())) {
            SizedGraph graphs = ExportGraphs.of(files.model());
            adapted(graphs.of(Map.of("batch", 2, "sequence", 5)), files.weights(), target, turned);
        }
    }

    @Test
    void onnxImports() throws IOException {
        OnnxModel model = OnnxModel.open(ReferenceCase.orSkip("bert").folder().resolve("model.onnx"));
        try (OnnxImport imported = OnnxImport.of(model, OnnxBinding.sizes(Map.of("batch", 2, "sequence", 5)))) {
            Lora all = Lora.of(new Lora.Settings(2, 4, 0, List.of("*")), imported.graph());
            assertThat(all.sites()).isNotEmpty();
            adapted(
                    imported.graph(),
                    imported,
                    all.sites().getLast().module(),
                    all.sites().getLast().turned());
        }
    }

    /// The model with the adapter beside it, and the model that the adapter went into, agree to rounding.
    private void adapted(Graph graph, WeightSource base, String target, boolean turned) throws IOException {
        Lora lora = Lora.of(new Lora.Settings(3, 6, 0.1, List.of(target)), graph);
        Map<String, Tensor> weights = OnnxRun.weights(base);
        Map<String, Tensor> learned = new LinkedHashMap<>();
        long seed = 5;
        for (var parameter : lora.parameters()) {
            learned.put(parameter.name(), RandomTensors.of(parameter.type(), seed++));
        }
        PeftAdapter.save(
                folder,
                lora,
                "somewhere",
                new LinkedHashMap<>(),
                OnnxRun.source(learned).contents());
        assertThat(Files.readString(folder.resolve("adapter_config.json")))
                .contains("\"r\" : 3", "\"lora_alpha\" : 6", "\"fan_in_fan_out\" : " + !turned, "\"" + target + "\"");

        try (PeftAdapter adapter = PeftAdapter.open(folder)) {
            assertThat(adapter.settings()).isEqualTo(lora.settings());
            assertThat(adapter.tensors().types().keySet()).isEqualTo(learned.keySet());
            Map<String, Tensor> inputs = ExportGraphsTest.inputs(graph);
            Map<String, Tensor> merged = Interpreter.run(graph, inputs, OnnxRun.weights(adapter.merged(base)));
            learned.forEach(weights::put);
            Map<String, Tensor> beside = Interpreter.run(lora.adapt(graph), inputs, weights);
            Map<String, Tensor> plain = Interpreter.run(graph, inputs, weights);
            double[] moved = {0};
            beside.forEach((name, tensor) -> {
                for (int i = 0; i < tensor.shape().elements(); i++) {
                    assertThat(merged.get(name).getFloat(i))
                            .isCloseTo(tensor.getFloat(i), org.assertj.core.data.Offset.offset(1e-3f));
                    moved[0] = Math.max(moved[0], Math.abs(plain.get(name).getFloat(i) - tensor.getFloat(i)));
                }
            });
            assertThat(moved[0]).isGreaterThan(0.01);
        }
    }

    @Test
    void aHeadThatLearnedAsAWhole() {
        try (HuggingFace files =
                HuggingFace.open(ReferenceCase.orSkip("bert-classification").folder())) {
            Lora lora = Lora.of(
                    new Lora.Settings(1, 1, 0, List.of("value")),
                    ExportGraphs.of(files.model()).of(Map.of("batch", 1, "sequence", 4)));
            SequencedMap<String, Type> whole = new LinkedHashMap<>();
            whole.put("classifier.bias", Type.f32(3));
            Map<String, Tensor> learned = new LinkedHashMap<>();
            lora.parameters().forEach(p -> learned.put(p.name(), Tensor.zeros(p.type())));
            learned.put("classifier.bias", RandomTensors.of(Type.f32(3), 1));
            PeftAdapter.save(folder, lora, "", whole, OnnxRun.source(learned).contents());
            try (PeftAdapter adapter = PeftAdapter.open(folder)) {
                assertThat(adapter.tensors().types()).containsKey("base_model.model.classifier.bias");
                Map<String, Tensor> merged = OnnxRun.weights(adapter.merged(files.weights()));
                assertThat(merged.get("classifier.bias").sameBits(learned.get("classifier.bias")))
                        .isTrue();
            }
        }
    }

    /// An adapter is a model, if the one it names is there.
    @Test
    void mergedOnExport() {
        Path model = ReferenceCase.orSkip("bert").folder();
        try (HuggingFace files = HuggingFace.open(model)) {
            Lora lora = Lora.of(
                    new Lora.Settings(1, 1, 0, List.of("value")),
                    ExportGraphs.of(files.model()).of(Map.of("batch", 1, "sequence", 4)));
            Map<String, Tensor> learned = new LinkedHashMap<>();
            lora.parameters()
                    .forEach(p -> learned.put(
                            p.name(), RandomTensors.of(p.type(), p.name().hashCode())));
            PeftAdapter.save(
                    folder,
                    lora,
                    model.toString(),
                    new LinkedHashMap<>(),
                    OnnxRun.source(learned).contents());
            Path merged = folder.resolve("merged");
            try (PortableModel portable = PortableModel.open(folder)) {
                portable.writeFolder(merged);
            }
            try (HuggingFace again = HuggingFace.open(merged);
                    PeftAdapter adapter = PeftAdapter.open(folder)) {
                Map<String, Tensor> expected = OnnxRun.weights(adapter.merged(files.weights()));
                OnnxRun.weights(again.weights())
                        .forEach((name, tensor) -> assertThat(tensor.sameBits(expected.get(name)))
                                .as(name)
                                .isTrue());
            }
            assertThatThrownBy(() -> {
                        PeftAdapter.save(
                                folder,
                                lora,
                                "nowhere",
                                new LinkedHashMap<>(),
                                OnnxRun.source(learned).contents());
                        PortableModel.open(folder).close();
                    })
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("the model 'nowhere', which is not there");
        }
    }

    @Test
    void theAdapterOfAnotherModel() {
        try (HuggingFace llama = HuggingFace.open(ReferenceCase.orSkip("llama").folder());
                HuggingFace gpt = HuggingFace.open(ReferenceCase.orSkip("gpt2").folder())) {
            Lora lora = Lora.of(
                    new Lora.Settings(1, 1, 0, List.of("q_proj")),
                    ExportGraphs.of(llama.model()).of(Map.of("batch", 1, "sequence", 4)));
            Map<String, Tensor> learned = new LinkedHashMap<>();
            lora.parameters().forEach(p -> learned.put(p.name(), Tensor.zeros(p.type())));
            PeftAdapter.save(
                    folder,
                    lora,
                    "",
                    new LinkedHashMap<>(),
                    OnnxRun.source(learned).contents());
            try (PeftAdapter adapter = PeftAdapter.open(folder)) {
                assertThatThrownBy(() -> adapter.merged(gpt.weights()))
                        .isInstanceOf(IngotException.class)
                        .hasMessageContaining("the adapter does not fit the model");
            }
        }
    }
}
