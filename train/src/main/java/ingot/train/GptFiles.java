package ingot.train;

import ingot.ir.IngotException;
import ingot.ir.Type;
import ingot.nn.Gpt;
import ingot.nn.GptConfig;
import ingot.nn.Parameter;
import ingot.store.Durable;
import ingot.store.RamStore;
import ingot.store.Safetensors;
import ingot.store.WeightStore;
import ingot.store.WeightStore.Key;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/// GPT-2 checkpoints in the Hugging Face layout: config.json and model.safetensors.
final class GptFiles {
    private static final JsonMapper JSON = JsonMapper.builder().build();

    private GptFiles() {}

    /// Writes both files; nothing may be pending in the store.
    static void save(Path folder, Gpt model, int endOfText, WeightStore store) {
        GptConfig config = model.config();
        ObjectNode json = JSON.createObjectNode();
        json.putArray("architectures").add("GPT2LMHeadModel");
        json.put("model_type", "gpt2");
        json.put("activation_function", activation(config.activation()));
        json.put("vocab_size", config.vocabulary());
        json.put("n_positions", config.context());
        json.put("n_ctx", config.context());
        json.put("n_embd", config.width());
        json.put("n_layer", config.layers());
        json.put("n_head", config.heads());
        json.put("n_inner", config.inner());
        json.put("embd_pdrop", config.embeddingDropout());
        json.put("attn_pdrop", config.attentionDropout());
        json.put("resid_pdrop", config.residualDropout());
        json.put("layer_norm_epsilon", config.epsilon());
        json.put("initializer_range", config.deviation());
        json.put("bos_token_id", endOfText);
        json.put("eos_token_id", endOfText);
        json.put("tie_word_embeddings", true);
        json.put("torch_dtype", "float32");
        SequencedMap<String, Type> tensors = new LinkedHashMap<>();
        model.parameters().forEach(parameter -> tensors.put(parameter.name(), parameter.type()));
        try {
            Durable.write(
                    folder.resolve("config.json"),
                    JSON.writerWithDefaultPrettyPrinter().writeValueAsString(json));
            Safetensors.write(
                    folder.resolve("model.safetensors"),
                    Map.of("format", "pt"),
                    tensors,
                    (name, reader) -> store.read(Key.weight(name), reader));
        } catch (IOException e) {
            throw new IngotException("model: cannot write " + folder.resolve("config.json") + ": " + e.getMessage(), e);
        }
    }

    /// The model a folder describes; its weights get the names used in the file.
    static Gpt open(Path folder) {
        JsonNode json = json(folder.resolve("config.json"));
        String type = json.path("model_type").asString("");
        if (!type.equals("gpt2")) {
            throw new IngotException(
                    "model: " + folder.resolve("config.json") + " has the model_type '" + type + "', expected gpt2");
        }
        int width = number(folder, json, "n_embd");
        GptConfig config = new GptConfig(
                number(folder, json, "vocab_size"),
                number(folder, json, "n_positions"),
                width,
                number(folder, json, "n_layer"),
                number(folder, json, "n_head"),
                json.path("n_inner").isNumber() ? json.path("n_inner").asInt() : 4 * width,
                json.path("embd_pdrop").asDouble(0),
                json.path("attn_pdrop").asDouble(0),
                json.path("resid_pdrop").asDouble(0),
                json.path("layer_norm_epsilon").asDouble(1e-5),
                activation(json.path("activation_function").asString("gelu_new")),
                json.path("initializer_range").asDouble(0.02));
        try (Safetensors file = Safetensors.open(folder.resolve("model.safetensors"))) {
            boolean prefixed = file.tensors().containsKey("transformer.wte.weight");
            return new Gpt(config, prefixed ? "transformer." : "");
        }
    }

    /// Creates the weights of a model in a store and fills them from the folder.
    static void load(Path folder, Gpt model, RamStore store) {
        Path path = folder.resolve("model.safetensors");
        try (Safetensors file = Safetensors.open(path)) {
            for (Parameter parameter : model.parameters()) {
                Type found = file.tensors().get(parameter.name());
                if (!parameter.type().equals(found)) {
                    throw new IngotException("model: " + path + " has " + parameter.name() + " as " + found
                            + ", expected " + parameter.type() + " from config.json");
                }
                Key key = Key.weight(parameter.name());
                store.create(key, parameter.type());
                file.readInto(parameter.name(), store.pin(key));
                store.release(key, true);
            }
        }
    }

    private static JsonNode json(Path file) {
        try {
            return JSON.readTree(Files.readString(file));
        } catch (IOException e) {
            throw new IngotException(
                    "model: cannot read " + file + ": expected a run folder or a Hugging Face GPT-2 folder", e);
        } catch (JacksonException e) {
            throw new IngotException("model: " + file + " is no JSON: " + e.getOriginalMessage(), e);
        }
    }

    private static int number(Path folder, JsonNode json, String key) {
        if (!json.path(key).isIntegralNumber()) {
            throw new IngotException("model: " + folder.resolve("config.json") + " expected a whole number at " + key
                    + ", got " + (json.has(key) ? json.path(key) : "nothing"));
        }
        return json.path(key).asInt();
    }

    private static String activation(GptConfig.Activation activation) {
        return switch (activation) {
            case GELU_TANH -> "gelu_new";
            case GELU -> "gelu";
            case RELU -> "relu";
            case SILU -> "silu";
        };
    }

    private static GptConfig.Activation activation(String name) {
        return switch (name) {
            case "gelu_new", "gelu_pytorch_tanh" -> GptConfig.Activation.GELU_TANH;
            case "gelu" -> GptConfig.Activation.GELU;
            case "relu" -> GptConfig.Activation.RELU;
            case "silu", "swish" -> GptConfig.Activation.SILU;
            default ->
                throw new IngotException(
                        "model: activation_function expected gelu_new, gelu, relu or silu, got " + name);
        };
    }
}
