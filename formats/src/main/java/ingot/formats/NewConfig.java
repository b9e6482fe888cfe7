package ingot.formats;

import ingot.ir.IngotException;
import ingot.nn.Activation;
import ingot.nn.Gpt;
import ingot.nn.GptConfig;
import ingot.nn.MobileNet;
import ingot.nn.Network;
import ingot.nn.ResNet;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/// config.json of a model that was made here.
final class NewConfig {
    private NewConfig() {}

    static ObjectNode of(Network model) {
        return switch (model) {
            case Gpt gpt -> gpt2(gpt.config());
            case MobileNet mobilenet -> {
                ObjectNode json = JsonMapper.shared().createObjectNode();
                TorchConfigs.write(json, mobilenet);
                yield json;
            }
            case ResNet resnet -> {
                ObjectNode json = JsonMapper.shared().createObjectNode();
                TorchConfigs.write(json, resnet);
                yield json;
            }
            default ->
                throw new IngotException(
                        "config.json: a new " + model.getClass().getSimpleName()
                                + " cannot be described yet; open one from a folder and save that");
        };
    }

    private static ObjectNode gpt2(GptConfig config) {
        ObjectNode json = JsonMapper.shared().createObjectNode();
        json.putArray("architectures").add("GPT2LMHeadModel");
        json.put("model_type", "gpt2");
        json.put("activation_function", name(config.activation()));
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
        json.put("tie_word_embeddings", true);
        return json;
    }

    private static String name(Activation activation) {
        return switch (activation) {
            case GELU_TANH -> "gelu_new";
            case GELU -> "gelu";
            case RELU -> "relu";
            case SILU -> "silu";
        };
    }
}
