package ingot.formats;

import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import ingot.data.TextTokenizer;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.Lora;
import ingot.nn.Mlp;
import ingot.store.Safetensors;
import ingot.testkit.RandomTensors;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Every reader of somebody else's files, over damaged ones: a message for the user or a model, and nothing else.
class EveryReaderFuzzTest {
    private static final Duration LONGEST = Duration.ofMinutes(2);
    private static final byte[][] JSON = Stream.of(
                    "-1",
                    "null",
                    "1e30",
                    "\"x\"",
                    "[]",
                    "{}",
                    "99999999999999999999",
                    "2147483647",
                    "true",
                    ",",
                    "\"",
                    "[[[[[[[[",
                    "\"../x\"")
            .map(text -> text.getBytes(StandardCharsets.UTF_8))
            .toArray(byte[][]::new);

    @TempDir
    private Path folder;

    private static void within(Runnable test) {
        assertTimeoutPreemptively(LONGEST, test::run);
    }

    private static void readAll(WeightSource source) {
        try (source) {
            source.types().forEach((name, type) -> {
                if (type.bytes() < 1 << 20) {
                    source.read(name, MemorySegment.ofArray(new byte[(int) type.bytes()]));
                }
            });
        }
    }

    private static SequencedMap<String, Tensor> tensors() {
        SequencedMap<String, Tensor> tensors = new LinkedHashMap<>();
        tensors.put("a.weight", RandomTensors.of(Type.f32(3, 4), 1));
        tensors.put("b.weight", RandomTensors.of(Type.f32(2), 2));
        tensors.put("c", Tensor.zeros(Type.i32(3)));
        return tensors;
    }

    private Path onnx() {
        Path file = folder.resolve("model.onnx");
        GraphBuilder b = new GraphBuilder("mlp");
        Value x = b.input("x", Type.f32(2, 3));
        b.output("logits", Mlp.of(3, 4, 2).logits(b, x));
        Map<String, Tensor> weights = new LinkedHashMap<>();
        b.build()
                .weights()
                .forEach(value -> weights.put(((Op.Weight) value.op()).name(), RandomTensors.of(value.type(), 5)));
        OnnxWriter.write(file, b.build(), OnnxRun.source(weights));
        return file;
    }

    private static void readOnnx(Path file, OnnxBinding binding) {
        try (OnnxModel model = OnnxModel.open(file)) {
            OnnxReport.of(model);
            OnnxImport imported = OnnxImport.of(model, binding);
            imported.types().forEach((name, type) -> {
                if (type.bytes() < 1 << 20) {
                    imported.read(name, MemorySegment.ofArray(new byte[(int) type.bytes()]));
                }
            });
        }
    }

    @Test
    void onnxOfOurs() {
        Path file = onnx();
        within(() -> new Mutations("ONNX", file, () -> readOnnx(file, OnnxBinding.NONE)).run(700));
    }

    /// Shape arithmetic, LSTM, slices: operators that trust their attributes.
    @Test
    void onnxOfAnotherExporter() throws IOException {
        Path file = folder.resolve("lstm.onnx");
        Files.copy(ReferenceCase.orSkip("lstm-classifier").folder().resolve("model.onnx"), file);
        OnnxBinding binding = OnnxBinding.sizes(Map.of("batch", 2, "sequence", 3));
        within(() -> new Mutations("ONNX of PyTorch", file, () -> readOnnx(file, binding)).run(60));
    }

    @Test
    void safetensors() {
        Path file = folder.resolve("model.safetensors");
        Safetensors.write(file, Map.of("format", "pt"), tensors());
        within(() -> new Mutations("safetensors", file, () -> readAll(new SafetensorsWeights(file))).run(700, JSON));
    }

    @Test
    void shards() throws IOException {
        Safetensors.write(folder.resolve("one.safetensors"), Map.of(), tensors());
        Path index = folder.resolve("model.safetensors.index.json");
        Files.writeString(index, """
            {"metadata": {"total_size": 68}, "weight_map": {
              "a.weight": "one.safetensors", "b.weight": "one.safetensors"}}
            """);
        within(() -> new Mutations("index of shards", index, () -> readAll(WeightFiles.open(folder))).run(400, JSON));
    }

    @Test
    void configurations() throws IOException {
        for (String name : List.of("llama", "bert-classification", "mixtral", "vit", "gpt2", "mobilenet_v2")) {
            Path model = Files.createDirectories(folder.resolve(name));
            Path reference = ReferenceCase.orSkip(name).folder();
            Files.copy(reference.resolve("model.safetensors"), model.resolve("model.safetensors"));
            Path config = Files.copy(reference.resolve("config.json"), model.resolve("config.json"));
            within(() -> new Mutations(
                            "config.json of " + name,
                            config,
                            () -> HuggingFace.open(model).close())
                    .run(120, JSON));
        }
    }

    @Test
    void stateDicts() throws IOException {
        Path file = folder.resolve("state-dict.pt");
        try (InputStream in = StateDictTest.class.getResourceAsStream("state-dict.pt")) {
            Files.write(file, in.readAllBytes());
        }
        within(() -> new Mutations("state dict", file, () -> readAll(StateDict.open(file))).run(250));
    }

    @Test
    void tokenizers() throws IOException {
        Path file = folder.resolve("tokenizer.json");
        Files.writeString(file, """
            {"version": "1.0", "truncation": null, "padding": null,
             "added_tokens": [{"id": 0, "content": "[UNK]", "single_word": false, "lstrip": false,
               "rstrip": false, "normalized": false, "special": true}],
             "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"},
             "post_processor": null, "decoder": null,
             "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "sun": 1, "rain": 2}, "unk_token": "[UNK]"}}
            """);
        within(() -> new Mutations("tokenizer.json", file, () -> {
                    try (TextTokenizer tokenizer = TextTokenizer.open(file)) {
                        tokenizer.encode("Sun and rain");
                    }
                })
                .run(250, JSON));
    }

    @Test
    void adapters() {
        GraphBuilder b = new GraphBuilder("one");
        b.output("y", b.matmul(b.input("x", Type.f32(1, 4)), b.weight("a.weight", Type.f32(4, 3))));
        Lora lora = Lora.of(new Lora.Settings(2, 4, 0, List.of("a")), b.build());
        Map<String, Tensor> learned = new LinkedHashMap<>();
        lora.parameters().forEach(p -> learned.put(p.name(), Tensor.zeros(p.type())));
        PeftAdapter.save(
                folder, lora, "", new LinkedHashMap<>(), OnnxRun.source(learned).contents());
        Map<String, Tensor> base = Map.of("a.weight", Tensor.zeros(Type.f32(4, 3)));
        Runnable reader = () -> {
            PeftAdapter adapter = PeftAdapter.open(folder);
            try {
                adapter.settings();
                readAll(adapter.merged(OnnxRun.source(base)));
            } finally {
                adapter.close();
            }
        };
        within(() ->
                new Mutations("adapter_config.json", folder.resolve("adapter_config.json"), reader).run(200, JSON));
        within(() -> new Mutations("adapter", folder.resolve("adapter_model.safetensors"), reader).run(200, JSON));
    }

    /// Told apart by what they look like: any file.
    @Test
    void kinds() throws IOException {
        Path file = onnx();
        Path other = folder.resolve("model");
        Files.copy(file, other);
        within(() ->
                new Mutations("any file", other, () -> PortableModel.open(other).close()).run(200));
    }

    /// The library below reads what sizes a file declares, up to what its arrays can have.
    private void keras(String name, int rounds) throws IOException {
        Path file = folder.resolve(name);
        try (InputStream in = EveryReaderFuzzTest.class.getResourceAsStream(name)) {
            Files.write(file, in.readAllBytes());
        }
        within(() -> new Mutations("Keras", file, () -> readAll(KerasImport.open(file, 2)), 512L << 20).run(rounds));
    }

    @Test
    void kerasArchive() throws IOException {
        keras("keras-sequential.keras", 150);
    }

    @Test
    void kerasHdf() throws IOException {
        keras("keras-nested.h5", 300);
    }
}
