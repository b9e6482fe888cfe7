package ingot.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.DType;
import ingot.ir.IngotException;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.nn.Bert;
import ingot.nn.Gpt;
import ingot.nn.Head;
import ingot.nn.Llama;
import ingot.nn.Parameter;
import ingot.nn.Rope;
import ingot.store.BaseWeights;
import ingot.store.Safetensors;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class HuggingFaceTest {
    private static final String LLAMA = """
        {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 11, "hidden_size": 8,
         "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 6,
         "max_position_embeddings": 16, "rms_norm_eps": 1e-5, "tie_word_embeddings": false, "eos_token_id": [3, 4],
         "my_own_key": "kept"}
        """;

    private static final String BERT = """
        {"model_type": "bert", "architectures": ["BertModel"], "vocab_size": 11, "hidden_size": 8,
         "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 6, "max_position_embeddings": 16,
         "type_vocab_size": 2}
        """;

    @TempDir
    Path folder;

    private SequencedMap<String, Tensor> tensors;

    @BeforeEach
    void llama() throws IOException {
        config(LLAMA);
        tensors = new LinkedHashMap<>();
        add("model.embed_tokens.weight", 11, 8);
        add("model.layers.0.input_layernorm.weight", 8);
        add("model.layers.0.self_attn.q_proj.weight", 8, 8);
        add("model.layers.0.self_attn.k_proj.weight", 4, 8);
        add("model.layers.0.self_attn.v_proj.weight", 4, 8);
        add("model.layers.0.self_attn.o_proj.weight", 8, 8);
        add("model.layers.0.post_attention_layernorm.weight", 8);
        add("model.layers.0.mlp.gate_proj.weight", 6, 8);
        add("model.layers.0.mlp.up_proj.weight", 6, 8);
        add("model.layers.0.mlp.down_proj.weight", 8, 6);
        add("model.norm.weight", 8);
        add("lm_head.weight", 11, 8);
        write("model.safetensors", tensors);
    }

    private void config(String json) throws IOException {
        Files.writeString(folder.resolve("config.json"), json);
    }

    private void add(String name, int... dims) {
        Tensor tensor = Tensor.zeros(Type.f32(dims));
        for (int i = 0; i < tensor.shape().elements(); i++) {
            tensor.setFloat(i, name.hashCode() % 100 + i / 8f);
        }
        tensors.put(name, tensor);
    }

    private void write(String file, SequencedMap<String, Tensor> content) {
        Safetensors.write(folder.resolve(file), Map.of(), content);
    }

    private void fails(String... message) {
        assertThatThrownBy(() -> HuggingFace.open(folder).close())
                .isInstanceOf(IngotException.class)
                .hasMessageContainingAll(message);
    }

    @Test
    void openSaveOpenGivesTheSameBits() throws IOException {
        Path copy = folder.resolve("copy");
        try (HuggingFace opened = HuggingFace.open(folder)) {
            assertThat(opened.type()).isEqualTo("llama");
            assertThat(opened.endTokens()).containsExactly(3, 4);
            opened.save(copy);
        }
        try (HuggingFace again = HuggingFace.open(copy);
                Safetensors file = Safetensors.open(copy.resolve("model.safetensors"))) {
            assertThat(file.tensors().keySet()).containsExactlyInAnyOrderElementsOf(tensors.keySet());
            assertThat(ReferenceTest.weights(again.weights())).isEqualTo(tensors);
            assertThat(Files.readString(copy.resolve("config.json"))).contains("\"my_own_key\" : \"kept\"");
        }
    }

    /// Names and bits of the reference folders survive, and the model is the same.
    @ParameterizedTest
    @ValueSource(strings = {"gpt2", "bert", "roberta-classification", "distilbert-classification", "qwen2", "mixtral"})
    void savedFoldersKeepTheirTensors(String name) {
        ReferenceCase reference = ReferenceCase.orSkip(name);
        try (HuggingFace opened = HuggingFace.open(reference.folder())) {
            opened.save(folder.resolve(name));
        }
        try (Safetensors before = Safetensors.open(reference.folder().resolve("model.safetensors"));
                Safetensors after = Safetensors.open(folder.resolve(name).resolve("model.safetensors"));
                HuggingFace again = HuggingFace.open(folder.resolve(name))) {
            assertThat(after.tensors().keySet())
                    .containsExactlyInAnyOrderElementsOf(before.tensors().keySet());
            for (String tensor : before.tensors().keySet()) {
                assertThat(after.read(tensor)).as(tensor).isEqualTo(before.read(tensor));
            }
            assertThat(again.model().parameters().stream().map(Parameter::name).toList())
                    .containsExactlyInAnyOrderElementsOf(before.tensors().keySet());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"F16", "BF16"})
    void halvesAreWidenedExactly(String dtype) {
        SequencedMap<String, Tensor> halves = new LinkedHashMap<>();
        tensors.forEach((name, tensor) -> {
            Tensor half = Tensor.zeros(tensor.type().with(DType.valueOf(dtype)));
            for (int i = 0; i < tensor.shape().elements(); i++) {
                half.setFloat(i, tensor.getFloat(i));
            }
            halves.put(name, half);
        });
        Tensor special = halves.get("model.norm.weight");
        float[] values = {Float.NEGATIVE_INFINITY, Float.NaN, -0f, 1e-7f, 65504, 1 / 3f, 6e-8f, -1};
        for (int i = 0; i < values.length; i++) {
            special.setFloat(i, values[i]);
        }
        write("model.safetensors", halves);
        try (HuggingFace opened = HuggingFace.open(folder)) {
            Map<String, Tensor> read = ReferenceTest.weights(opened.weights());
            halves.forEach((name, half) -> {
                for (int i = 0; i < half.shape().elements(); i++) {
                    assertThat(Float.compare(read.get(name).getFloat(i), half.getFloat(i)))
                            .as(name)
                            .isZero();
                }
            });
        }
    }

    @Test
    void shards() throws IOException {
        Files.delete(folder.resolve("model.safetensors"));
        SequencedMap<String, Tensor> first = new LinkedHashMap<>();
        SequencedMap<String, Tensor> second = new LinkedHashMap<>();
        StringBuilder map = new StringBuilder();
        tensors.forEach((name, tensor) -> {
            boolean early = first.size() < 5;
            (early ? first : second).put(name, tensor);
            map.append(map.isEmpty() ? "" : ", ")
                    .append("\"" + name + "\": \"model-0000" + (early ? 1 : 2) + "-of-00002.safetensors\"");
        });
        write("model-00001-of-00002.safetensors", first);
        write("model-00002-of-00002.safetensors", second);
        Path index = folder.resolve("model.safetensors.index.json");
        Files.writeString(index, "{\"metadata\": {}, \"weight_map\": {" + map + "}}");
        try (HuggingFace opened = HuggingFace.open(folder)) {
            assertThat(ReferenceTest.weights(opened.weights())).isEqualTo(tensors);
        }
        second.remove("lm_head.weight");
        write("model-00002-of-00002.safetensors", second);
        fails("model-00002-of-00002.safetensors should have lm_head.weight, but has not");
        Files.delete(folder.resolve("model-00002-of-00002.safetensors"));
        fails("index.json: 1 of 2 shards are missing: model-00002-of-00002.safetensors");
        for (String elsewhere : List.of("../model.safetensors", "/etc/passwd", "", ".hidden")) {
            Files.writeString(index, "{\"weight_map\": {\"x\": \"" + elsewhere + "\"}}");
            fails("weight_map.x expected the name of a file beside the index, got \"" + elsewhere);
        }
        Files.writeString(index, "{\"weights\": {}}");
        fails("weight_map expected an object from tensors to files, got nothing");
        Files.delete(index);
        fails("no weights in it; expected model.safetensors, ");
    }

    /// With the prefix or without, and what pretraining leaves behind.
    @Test
    void namesOfBert() throws IOException {
        config(BERT);
        for (String prefix : List.of("", "bert.")) {
            tensors.clear();
            bert(prefix, "weight", "bias");
            add("cls.predictions.bias", 11);
            write("model.safetensors", tensors);
            try (HuggingFace opened = HuggingFace.open(folder)) {
                assertThat(opened.encoder().head()).isEqualTo(Head.NONE);
                Map<String, Tensor> read = ReferenceTest.weights(opened.weights());
                assertThat(read)
                        .containsKey("embeddings.word_embeddings.weight")
                        .hasSize(21);
                assertThat(((Bert) opened.model()).config().pooler()).isFalse();
            }
        }
        tensors.clear();
        bert("bert.", "gamma", "beta");
        add("bert.pooler.dense.weight", 8, 8);
        add("bert.pooler.dense.bias", 8);
        write("model.safetensors", tensors);
        try (HuggingFace opened = HuggingFace.open(folder)) {
            assertThat(opened.weights().types())
                    .containsKeys("embeddings.LayerNorm.weight", "pooler.dense.weight")
                    .hasSize(23);
        }
        config(BERT.replace("BertModel", "BertForTokenClassification").replace("\"vocab_size\"", """
            "id2label": {"0": "O", "1": "B-PER", "2": "I-PER"}, "vocab_size\"\
            """));
        fails("(bert): 2 missing: classifier.weight f32[3, 8], classifier.bias f32[3]; 2 unexpected: bert.pooler.");
    }

    private void bert(String prefix, String weight, String bias) {
        add(prefix + "embeddings.word_embeddings.weight", 11, 8);
        add(prefix + "embeddings.position_embeddings.weight", 16, 8);
        add(prefix + "embeddings.token_type_embeddings.weight", 2, 8);
        add(prefix + "embeddings.LayerNorm." + weight, 8);
        add(prefix + "embeddings.LayerNorm." + bias, 8);
        String layer = prefix + "encoder.layer.0.";
        for (String part : List.of(
                "attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")) {
            add(layer + part + ".weight", 8, 8);
            add(layer + part + ".bias", 8);
        }
        add(layer + "intermediate.dense.weight", 6, 8);
        add(layer + "intermediate.dense.bias", 6);
        add(layer + "output.dense.weight", 8, 6);
        add(layer + "output.dense.bias", 8);
        for (String norm : List.of("attention.output.LayerNorm.", "output.LayerNorm.")) {
            add(layer + norm + weight, 8);
            add(layer + norm + bias, 8);
        }
    }

    @Test
    void everythingThatDoesNotFitIsSaidAtOnce() {
        tensors.remove("model.norm.weight");
        tensors.remove("lm_head.weight");
        tensors.put("model.layers.0.mlp.up_proj.weight", Tensor.zeros(Type.f32(7, 8)));
        tensors.put("model.layers.0.self_attn.q_proj.weight", Tensor.zeros(new Type(DType.I64, Shape.of(8, 8))));
        add("model.layers.1.mlp.up_proj.weight", 6, 8);
        add("model.layers.0.self_attn.rotary_emb.inv_freq", 2);
        write("model.safetensors", tensors);
        fails("the weights do not fit config.json (llama): 2 missing: model.norm.weight f32[8], lm_head.weight"
                + " f32[11, 8]; 2 of another type: model.layers.0.self_attn.q_proj.weight is i64[8, 8] where"
                + " config.json makes it f32[8, 8], model.layers.0.mlp.up_proj.weight is f32[7, 8] where"
                + " config.json makes it f32[6, 8]; 1 unexpected: model.layers.1.mlp.up_proj.weight");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "\"llama\" | \"lama\" | model_type 'lama' is not known; did you mean llama; supported: bert,"
                        + " distilbert",
                "\"llama\" | \"whisper\" | model_type 'whisper' is not known; supported: bert, distilbert",
                "\"llama\" | 7 | config.json: model_type expected a text, got 7",
                "\"hidden_size\": 8, | '' | hidden_size expected a whole number from 1 to 67108864, got nothing",
                "\"hidden_size\": 8 | \"hidden_size\": \"8\" | hidden_size expected a whole number from 1 to 67108864,"
                        + " got \"8\"",
                "\"hidden_size\": 8 | \"hidden_size\": -8 | hidden_size expected a whole number from 1 to 67108864,"
                        + " got -8",
                "\"hidden_size\": 8 | \"hidden_size\": 99999999999 | hidden_size expected a whole number",
                "\"hidden_size\": 8 | \"hidden_size\": 67108864 | model.embed_tokens.weight is f32[11, 8] where",
                "\"num_hidden_layers\": 1 | \"num_hidden_layers\": 16000000 | num_hidden_layers is 16000000, but there"
                        + " are only 12",
                "\"num_attention_heads\": 2 | \"num_attention_heads\": 3 | hidden_size 8 does not divide into"
                        + " num_attention_heads 3",
                "\"vocab_size\" | \"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2}, \"vocab_size\" |"
                        + " rope_scaling.type is \"dynamic\"; supported: default, linear, llama3, yarn",
                "\"vocab_size\" | \"rope_scaling\": {\"type\": \"linear\"}, \"vocab_size\" | rope_scaling.factor"
                        + " expected a number, got nothing",
                "\"vocab_size\" | \"rope_scaling\": 3, \"vocab_size\" | rope_scaling expected an object, got 3",
                "\"vocab_size\" | \"hidden_act\": \"mish\", \"vocab_size\" | hidden_act is \"mish\"; supported: gelu,",
                "{\"model_type\" | [\"model_type\" | config.json: not valid JSON"
            })
    void configurations(String from, String to, String message) throws IOException {
        config(LLAMA.replace(from, to));
        fails("config.json", message);
    }

    @Test
    void ropeOfNewerFiles() throws IOException {
        config(LLAMA.replace("\"vocab_size\"", """
            "rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8, "low_freq_factor": 1,
            "high_freq_factor": 4, "original_max_position_embeddings": 8}, "vocab_size\"\
            """));
        try (HuggingFace opened = HuggingFace.open(folder)) {
            Rope rope = ((Llama) opened.model()).config().rope();
            assertThat(rope).isEqualTo(new Rope(4, 5e5, new Rope.Llama3(8, 1, 4, 8)));
        }
    }

    @Test
    void files() throws IOException {
        byte[] bytes = Files.readAllBytes(folder.resolve("model.safetensors"));
        Files.write(folder.resolve("model.safetensors"), Arrays.copyOf(bytes, bytes.length - 9));
        fails("model.safetensors", "the file is truncated or corrupt");
        Files.write(folder.resolve("model.safetensors"), Arrays.copyOf(bytes, 50));
        fails("model.safetensors", "it is truncated");
        Files.delete(folder.resolve("config.json"));
        fails("config.json: cannot be read (NoSuchFileException)");
        assertThatThrownBy(() -> HuggingFace.open(folder.resolve("nowhere"))).hasMessageContaining("no such folder");
        Files.writeString(folder.resolve("config.json"), "[1, 2]");
        fails("config.json: expected a JSON object, got a list");
        Files.write(folder.resolve("config.json"), new byte[] {(byte) 0xc3, 0x28});
        fails("config.json: not valid UTF-8");
    }

    /// 16-bit weights behind a pickle, and the way from there to safetensors.
    @Test
    void pickledWeights() throws IOException {
        Files.delete(folder.resolve("model.safetensors"));
        try (InputStream in = HuggingFaceTest.class.getResourceAsStream("pytorch_model.bin")) {
            Files.copy(in, folder.resolve("pytorch_model.bin"));
        }
        Path copy = folder.resolve("copy");
        try (HuggingFace opened = HuggingFace.open(folder)) {
            opened.save(copy);
        }
        try (Safetensors saved = Safetensors.open(copy.resolve("model.safetensors"))) {
            assertThat(saved.tensors().keySet()).containsExactlyInAnyOrderElementsOf(tensors.keySet());
            for (String name : tensors.keySet()) {
                Tensor tensor = saved.read(name);
                assertThat(tensor.type()).isEqualTo(tensors.get(name).type());
                for (int i = 0; i < tensor.shape().elements(); i++) {
                    assertThat(tensor.getFloat(i)).as(name).isEqualTo(i / 8f);
                }
            }
        }
        Files.write(folder.resolve("pytorch_model.bin"), new byte[] {'P', 'K', 3, 4});
        fails("pytorch_model.bin", "its zip cannot be read");
    }

    /// A training begins with pickled weights where they lie; safetensors come first, shards have to be there.
    @Test
    void pickledBase() throws IOException {
        Path copy = Files.createDirectory(folder.resolve("pickled"));
        Path file = copy.resolve("pytorch_model.bin");
        try (InputStream in = HuggingFaceTest.class.getResourceAsStream("pytorch_model.bin")) {
            Files.copy(in, file);
        }
        String first = isPickled(copy);
        Files.move(file, copy.resolve("part-1.bin"));
        String map = tensors.keySet().stream()
                .map(name -> '"' + name + "\": \"part-1.bin\"")
                .collect(java.util.stream.Collectors.joining(", "));
        Files.writeString(copy.resolve("pytorch_model.bin.index.json"), "{\"weight_map\": {" + map + "}}");
        assertThat(isPickled(copy)).isNotEqualTo(first); // other files
        Files.delete(copy.resolve("part-1.bin"));
        assertThatThrownBy(() -> BaseFiles.open(copy))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("1 of 1 shards are missing: part-1.bin");
        Files.copy(folder.resolve("model.safetensors"), copy.resolve("model.safetensors"));
        try (BaseWeights base = BaseFiles.open(copy)) {
            assertThat(base.path()).isEqualTo(copy);
            assertThat(base.fingerprint()).isNotEqualTo(first);
        }
    }

    private String isPickled(Path place) {
        try (BaseWeights base = BaseFiles.open(place)) {
            for (String name : tensors.keySet()) {
                Type type = tensors.get(name).type();
                MemorySegment memory =
                        MemorySegment.ofArray(new float[(int) type.shape().elements()]);
                base.read(name, 0, memory);
                for (int i = 0; i < type.shape().elements(); i++) {
                    assertThat(memory.getAtIndex(ValueLayout.JAVA_FLOAT, i))
                            .as(name)
                            .isEqualTo(i / 8f);
                }
            }
            return base.fingerprint();
        }
    }

    @Test
    void theKindThatIsAskedFor() {
        try (HuggingFace opened = HuggingFace.open(folder)) {
            assertThat(opened.languageModel().vocabulary()).isEqualTo(11);
            assertThatThrownBy(opened::encoder)
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("a llama is no encoder of texts; expected bert");
            assertThat(opened.model()).isNotInstanceOf(Gpt.class);
        }
    }
}
