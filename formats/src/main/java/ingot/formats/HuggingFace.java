package ingot.formats;

import ingot.ir.IngotException;
import ingot.ir.Type;
import ingot.nn.ImageClassifier;
import ingot.nn.LanguageModel;
import ingot.nn.Network;
import ingot.nn.Parameter;
import ingot.nn.TextEncoder;
import ingot.store.Durable;
import ingot.store.Safetensors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/// A model in the folder layout of Hugging Face: `config.json` says what it is, `model.safetensors` (or its shards, or
/// `pytorch_model.bin`) holds its weights.
///
/// Opening reads the configuration and the names and types of the tensors, and says at once everything that does not
/// fit. Weights are read when they are asked for.
///
/// ```java
/// try (var folder = HuggingFace.open(Path.of("all-MiniLM-L6-v2"))) {
///     Graph graph = folder.encoder().hiddenGraph(1, 128);
///     folder.weights().read("embeddings.word_embeddings.weight", memory);
/// }
/// ```
public final class HuggingFace implements AutoCloseable {
    private final Path folder;
    private final ModelConfig config;
    private final Architecture architecture;
    private final Network model;
    private final WeightSource files;
    private final NamedWeights weights;

    private HuggingFace(
            Path folder,
            ModelConfig config,
            Architecture architecture,
            Network model,
            WeightSource files,
            NamedWeights weights) {
        this.folder = folder;
        this.config = config;
        this.architecture = architecture;
        this.model = model;
        this.files = files;
        this.weights = weights;
    }

    public static HuggingFace open(Path folder) {
        if (!Files.isDirectory(folder)) {
            throw new IngotException(folder + ": no such folder; expected one with config.json and model.safetensors");
        }
        ModelConfig config = ModelConfig.read(folder.resolve("config.json"));
        Architecture architecture = Architecture.of(config);
        WeightSource files = WeightFiles.open(folder);
        try {
            Set<String> tensors = files.types().keySet();
            Network model = architecture.reader().read(config, tensors);
            NamedWeights weights = NamedWeights.of(folder, architecture, model.weights(), files);
            return new HuggingFace(folder, config, architecture, model, files, weights);
        } catch (ArithmeticException e) {
            files.close();
            throw new IngotException(config.file() + ": its sizes multiply to more than any machine can hold", e);
        } catch (RuntimeException e) {
            files.close();
            throw e;
        }
    }

    public Path folder() {
        return folder;
    }

    /// `model_type` of config.json: `llama`, `bert`, ….
    public String type() {
        return config.text("model_type");
    }

    public Network model() {
        return model;
    }

    public LanguageModel languageModel() {
        if (model instanceof LanguageModel language) {
            return language;
        }
        throw new IngotException(
                folder + ": a " + type() + " does not continue texts; expected a causal language model: "
                        + "gemma, gpt2, gpt_neox, llama, mistral, mixtral, phi, qwen2 or qwen3");
    }

    public TextEncoder encoder() {
        if (model instanceof TextEncoder encoder) {
            return encoder;
        }
        throw new IngotException(folder + ": a " + type()
                + " is no encoder of texts; expected bert, distilbert, roberta or xlm-roberta");
    }

    public ImageClassifier imageClassifier() {
        if (model instanceof ImageClassifier images) {
            return images;
        }
        throw new IngotException(folder + ": a " + type()
                + " does not classify images; expected small_resnet, torchvision_mobilenet_v2 or vit");
    }

    /// The weights under the names of `model().parameters()`, and the model's `statistics()`.
    public WeightSource weights() {
        return weights;
    }

    /// The names in the files of those parameters of a model, perhaps another one, that the files have.
    public Map<String, String> stored(List<Parameter> parameters) {
        Map<String, Type> found = files.types();
        Map<String, String> names = new LinkedHashMap<>();
        for (Parameter parameter : parameters) {
            String name = NamedWeights.stored(architecture, parameter.name(), found);
            if (name != null && parameter.type().equals(found.get(name))) {
                names.put(parameter.name(), name);
            }
        }
        return names;
    }

    /// Tensors of the files that the model has no use for: heads of pretraining, buffers that are computed here.
    public List<String> unused() {
        return weights.ignored();
    }

    /// The names of a classifier's labels, in order; empty without a head.
    public List<String> labels() {
        ModelConfig names = config.section("id2label");
        List<String> labels = new ArrayList<>();
        if (names != null) {
            for (int i = 0; names.has(Integer.toString(i)); i++) {
                labels.add(names.text(Integer.toString(i)));
            }
        }
        return labels;
    }

    /// The ids after which a text is complete: `eos_token_id` of generation_config.json, else of config.json.
    public Set<Integer> endTokens() {
        Path file = folder.resolve("generation_config.json");
        ModelConfig generation = Files.exists(file) ? ModelConfig.read(file) : config;
        ModelConfig said = generation.has("eos_token_id") ? generation : config;
        Set<Integer> ids = new LinkedHashSet<>();
        if (said.has("eos_token_id")) {
            JsonNode node = said.json().path("eos_token_id");
            for (JsonNode id : node.isArray() ? node : List.of(node)) {
                if (!id.canConvertToInt() || !id.isIntegralNumber()) {
                    throw said.wrong("eos_token_id", "a token id or a list of them");
                }
                ids.add(id.asInt());
            }
        }
        return ids;
    }

    /// Writes this model with other weights into a folder: the same configuration, F32.
    public void save(Path to, Safetensors.Contents contents) {
        write(to, config.json().deepCopy(), model, contents);
    }

    /// Writes this model with another head, whose labels are named.
    public void save(Path to, Network other, List<String> labels, Safetensors.Contents contents) {
        ObjectNode json = config.json().deepCopy();
        if (other instanceof TextEncoder encoder) {
            EncoderConfigs.write(json, type(), encoder.head(), labels);
        } else if (other instanceof ImageClassifier images) {
            label(json, labels);
            if (type().equals("vit")) {
                json.putArray("architectures").add("ViTForImageClassification");
            }
            if (json.has("num_classes")) {
                json.put("num_classes", images.labels());
            }
        }
        write(to, json, other, contents);
    }

    /// Writes this model as it is: names and bits of the weights stay, F16 and BF16 have become F32.
    public void save(Path to) {
        save(to, weights.contents());
    }

    /// Writes a model that comes from no folder; GPT-2 so far.
    ///
    /// `endOfText` is the id that separates texts.
    public static void save(Path to, Network model, int endOfText, Safetensors.Contents contents) {
        ObjectNode json = NewConfig.of(model);
        json.put("bos_token_id", endOfText);
        json.put("eos_token_id", endOfText);
        write(to, json, model, contents);
    }

    /// Writes a classifier of images that comes from no folder: ResNet and MobileNetV2 so far.
    public static void saveNew(Path to, ImageClassifier model, List<String> labels, Safetensors.Contents contents) {
        ObjectNode json = NewConfig.of(model);
        label(json, labels);
        write(to, json, model, contents);
    }

    /// As `labels` reads them.
    static void label(ObjectNode json, List<String> labels) {
        ObjectNode names = json.putObject("id2label");
        ObjectNode numbers = json.putObject("label2id");
        for (int i = 0; i < labels.size(); i++) {
            names.put(Integer.toString(i), labels.get(i));
            numbers.put(labels.get(i), i);
        }
    }

    private static void write(Path to, ObjectNode json, Network model, Safetensors.Contents contents) {
        json.remove("dtype");
        json.remove("quantization_config");
        json.put("torch_dtype", "float32");
        SequencedMap<String, Type> tensors = new LinkedHashMap<>();
        for (Parameter parameter : model.weights()) {
            tensors.put(parameter.name(), parameter.type());
        }
        try {
            Files.createDirectories(to);
            Durable.write(
                    to.resolve("config.json"),
                    JsonMapper.shared().writerWithDefaultPrettyPrinter().writeValueAsString(json));
        } catch (IOException e) {
            throw new IngotException(to.resolve("config.json") + ": cannot be written: " + e.getMessage(), e);
        }
        Safetensors.write(to.resolve("model.safetensors"), Map.of("format", "pt"), tensors, contents);
    }

    @Override
    public void close() {
        weights.close();
    }
}
