package ingot.formats;

import ingot.ir.IngotException;
import ingot.nn.GptNeoX;
import ingot.nn.ParallelConfig;
import ingot.nn.Phi;
import java.util.Set;

/// config.json of decoders with parallel branches.
final class ParallelConfigs {
    private ParallelConfigs() {}

    static Phi phi(ModelConfig c, Set<String> tensors) {
        int heads = c.size("num_attention_heads");
        int context = c.size("max_position_embeddings", 2048);
        return new Phi(new ParallelConfig(
                c.size("vocab_size"),
                context,
                c.size("hidden_size"),
                Sizes.layers(c, "num_hidden_layers", tensors),
                heads,
                c.size("num_key_value_heads", heads),
                c.size("intermediate_size"),
                c.number("layer_norm_eps", 1e-5),
                Sizes.activation(c, "hidden_act", "gelu_new"),
                DecoderConfigs.rope(c, turned(c, heads, "partial_rotary_factor", 0.5), 1e4, context),
                true,
                true,
                c.flag("tie_word_embeddings", false),
                c.flag("qk_layernorm", false),
                c.number("initializer_range", 0.02)));
    }

    static GptNeoX neox(ModelConfig c, Set<String> tensors) {
        int heads = c.size("num_attention_heads");
        int context = c.size("max_position_embeddings", 2048);
        return new GptNeoX(new ParallelConfig(
                c.size("vocab_size"),
                context,
                c.size("hidden_size"),
                Sizes.layers(c, "num_hidden_layers", tensors),
                heads,
                heads,
                c.size("intermediate_size"),
                c.number("layer_norm_eps", 1e-5),
                Sizes.activation(c, "hidden_act", "gelu"),
                DecoderConfigs.rope(c, turned(c, heads, "rotary_pct", 0.25), c.number("rotary_emb_base", 1e4), context),
                c.flag("use_parallel_residual", true),
                c.flag("attention_bias", true),
                c.flag("tie_word_embeddings", false),
                false,
                c.number("initializer_range", 0.02)));
    }

    /// How many channels of a head turn: a share of them.
    private static int turned(ModelConfig c, int heads, String key, double fallback) {
        int width = c.size("hidden_size");
        if (width % heads != 0) {
            throw new IngotException(
                    c.file() + ": hidden_size " + width + " does not divide into num_attention_heads " + heads);
        }
        ModelConfig rope = c.section("rope_parameters");
        double share = rope != null && rope.has("partial_rotary_factor")
                ? rope.number("partial_rotary_factor")
                : c.number(key, fallback);
        return (int) (width / heads * share);
    }
}
