package ingot.formats;

import ingot.ir.IngotException;
import ingot.nn.Activation;
import ingot.nn.Gpt;
import ingot.nn.GptConfig;
import ingot.nn.Llama;
import ingot.nn.LlamaConfig;
import ingot.nn.LlamaConfig.Variant;
import ingot.nn.Rope;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// config.json of decoders.
final class DecoderConfigs {
    private static final int MISTRAL_WINDOW = 4096;
    private static final int QWEN_WINDOW_LAYERS = 28;
    private static final int MOST_WINDOW = 1 << 26;

    private DecoderConfigs() {}

    static Gpt gpt2(ModelConfig c, Set<String> tensors) {
        if (c.flag("scale_attn_by_inverse_layer_idx", false)) {
            throw c.unsupported("scale_attn_by_inverse_layer_idx", "false");
        }
        if (!c.flag("scale_attn_weights", true)) {
            throw c.unsupported("scale_attn_weights", "true");
        }
        if (!c.flag("tie_word_embeddings", true)) {
            throw c.unsupported("tie_word_embeddings", "true");
        }
        int width = c.size("n_embd");
        GptConfig config = new GptConfig(
                c.size("vocab_size"),
                c.size("n_positions"),
                width,
                Sizes.layers(c, "n_layer", tensors),
                c.size("n_head"),
                c.size("n_inner", 4 * width),
                c.number("embd_pdrop", 0.1),
                c.number("attn_pdrop", 0.1),
                c.number("resid_pdrop", 0.1),
                c.number("layer_norm_epsilon", 1e-5),
                Sizes.activation(c, "activation_function", "gelu_new"),
                c.number("initializer_range", 0.02));
        // most files of the hub have no prefix, those written by the class with its head have
        return new Gpt(config, tensors.contains("wte.weight") ? "" : "transformer.");
    }

    static Llama llama(ModelConfig c, Set<String> tensors) {
        boolean bias = c.flag("attention_bias", false);
        return family(c, tensors, Variant.LLAMA.withBiases(bias, bias, c.flag("mlp_bias", false)), false);
    }

    static Llama mistral(ModelConfig c, Set<String> tensors) {
        return family(c, tensors, window(c, Variant.LLAMA, MISTRAL_WINDOW, 0), false);
    }

    static Llama mixtral(ModelConfig c, Set<String> tensors) {
        int experts = c.size("num_local_experts", 8);
        if (experts > tensors.size()) {
            throw new IngotException(c.file() + ": num_local_experts is " + experts + ", but there are only "
                    + tensors.size() + " tensors");
        }
        Variant variant = window(c, Variant.LLAMA, 0, 0).withExperts(experts, c.size("num_experts_per_tok", 2));
        return family(c, tensors, variant, false);
    }

    static Llama qwen2(ModelConfig c, Set<String> tensors) {
        return family(c, tensors, qwenWindow(c, Variant.LLAMA.withBiases(true, false, false)), false);
    }

    static Llama qwen3(ModelConfig c, Set<String> tensors) {
        boolean bias = c.flag("attention_bias", false);
        Variant variant = Variant.LLAMA.withBiases(bias, bias, false).withHeadNorms();
        return family(c, tensors, qwenWindow(c, variant), false);
    }

    static Llama gemma(ModelConfig c, Set<String> tensors) {
        boolean bias = c.flag("attention_bias", false);
        // files before hidden_activation say gelu and mean its approximation, as the library does
        Activation activation = c.has("hidden_activation")
                ? Sizes.activation(c, "hidden_activation", "gelu_pytorch_tanh")
                : Activation.GELU_TANH;
        return family(
                c,
                tensors,
                Variant.LLAMA.withBiases(bias, bias, false).withGemma().withActivation(activation),
                true);
    }

    private static Llama family(ModelConfig c, Set<String> tensors, Variant variant, boolean tiedUnlessSaid) {
        int width = c.size("hidden_size");
        int heads = c.size("num_attention_heads");
        if (!c.has("head_dim") && width % heads != 0) {
            throw new IngotException(c.file() + ": hidden_size " + width + " does not divide into num_attention_heads "
                    + heads + ", and head_dim is not given");
        }
        int headWidth = c.size("head_dim", Math.max(1, width / heads));
        int context = c.size("max_position_embeddings");
        Variant active = variant.gemma() ? variant : variant.withActivation(Sizes.activation(c, "hidden_act", "silu"));
        double base = c.text("model_type").equals("mixtral") ? 1e6 : 1e4;
        return new Llama(new LlamaConfig(
                c.size("vocab_size"),
                context,
                width,
                Sizes.layers(c, "num_hidden_layers", tensors),
                heads,
                c.size("num_key_value_heads", heads),
                headWidth,
                c.size("intermediate_size"),
                c.number("rms_norm_eps", 1e-6),
                rope(c, (int) (headWidth * c.number("partial_rotary_factor", 1)), base, context),
                c.flag("tie_word_embeddings", tiedUnlessSaid),
                active,
                c.number("initializer_range", 0.02)));
    }

    /// `sliding_window`; `fallback` if the key is absent.
    private static Variant window(ModelConfig c, Variant variant, int fallback, int fromLayer) {
        if (!c.mentions("sliding_window")) {
            return variant.withWindow(fallback, fromLayer);
        }
        return c.has("sliding_window")
                ? variant.withWindow(c.whole("sliding_window", 1, MOST_WINDOW), fromLayer)
                : variant;
    }

    /// Only if `use_sliding_window`, and then in the layers after the first `max_window_layers`.
    private static Variant qwenWindow(ModelConfig c, Variant variant) {
        if (!c.flag("use_sliding_window", false)) {
            return variant;
        }
        int from = c.has("max_window_layers") ? c.whole("max_window_layers", 0, MOST_WINDOW) : QWEN_WINDOW_LAYERS;
        List<String> kinds = c.texts("layer_types");
        for (int i = 0; i < kinds.size(); i++) {
            if (kinds.get(i).equals("sliding_attention") != i >= from) {
                throw c.unsupported("layer_types", "sliding_attention in the layers from max_window_layers on");
            }
        }
        return window(c, variant, MISTRAL_WINDOW, from);
    }

    /// `rope_theta` and `rope_scaling`; newer files have both in `rope_parameters`.
    static Rope rope(ModelConfig c, int width, double fallback, int context) {
        ModelConfig parameters = c.section("rope_parameters");
        ModelConfig scaling = parameters == null ? c.section("rope_scaling") : parameters;
        double base = parameters != null && parameters.has("rope_theta")
                ? parameters.number("rope_theta")
                : c.number("rope_theta", fallback);
        return new Rope(width, base, scaling(scaling, context));
    }

    private static Rope.Scaling scaling(@Nullable ModelConfig s, int context) {
        if (s == null) {
            return new Rope.None();
        }
        String key = s.has("rope_type") ? "rope_type" : "type";
        return switch (s.text(key, "default")) {
            case "default" -> new Rope.None();
            case "linear" -> new Rope.Linear(s.number("factor"));
            case "llama3" ->
                new Rope.Llama3(
                        s.number("factor"),
                        s.number("low_freq_factor"),
                        s.number("high_freq_factor"),
                        s.size("original_max_position_embeddings"));
            case "yarn" -> {
                double factor = s.number("factor");
                yield new Rope.Yarn(
                        factor,
                        s.size("original_max_position_embeddings", context),
                        s.number("beta_fast", 32),
                        s.number("beta_slow", 1),
                        s.number("attention_factor", magnitude(s, factor)),
                        s.flag("truncate", true));
            }
            case "dynamic" ->
                throw s.unsupported(
                        key,
                        "default, linear, llama3, yarn (dynamic frequencies depend on the length of each text, a"
                                + " program here has fixed ones; without rope_scaling the model reads texts up to"
                                + " max_position_embeddings as it does in the original)");
            default -> throw s.unsupported(key, "default, linear, llama3, yarn");
        };
    }

    private static double magnitude(ModelConfig s, double factor) {
        if (s.has("mscale") && s.has("mscale_all_dim")) {
            return magnitude(factor, s.number("mscale")) / magnitude(factor, s.number("mscale_all_dim"));
        }
        return magnitude(factor, 1);
    }

    private static double magnitude(double factor, double scale) {
        return factor <= 1 ? 1 : 0.1 * scale * Math.log(factor) + 1;
    }
}
