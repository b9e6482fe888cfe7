package ingot.nn;

import ingot.ir.GraphBuilder;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.KeyValues.Mixer;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// GPT-NeoX (Black et al. 2022; Pythia): part of each head turns, queries, keys and values are one matrix, head by
/// head, and attention and feed-forward layer may be added at once.
///
/// Parameters have the names of Hugging Face's `GPTNeoXForCausalLM`. Inside, activations are rows [batch · time,
/// width].
public final class GptNeoX implements LanguageModel {
    private static final String PREFIX = "gpt_neox.";

    private final ParallelConfig config;
    private final RotaryDecoder decoder;

    public GptNeoX(ParallelConfig config) {
        this.config = config;
        decoder = new RotaryDecoder(
                "gpt-neox",
                config.vocabulary(),
                config.context(),
                config.layers(),
                config.heads(),
                config.headWidth(),
                config.rope(),
                new Parts());
    }

    public ParallelConfig config() {
        return config;
    }

    @Override
    public List<Parameter> parameters() {
        return Weights.declared(logitsGraph(1, 1, false), config.deviation(), 1);
    }

    @Override
    public int vocabulary() {
        return config.vocabulary();
    }

    @Override
    public int context() {
        return config.context();
    }

    @Override
    public Value loss(GraphBuilder b, Value tokens, Value targets, Value scale, @Nullable Randomness random) {
        return decoder.loss(b, tokens, targets, scale);
    }

    @Override
    public Value logits(GraphBuilder b, Value tokens, @Nullable Value mask) {
        return decoder.logits(b, tokens, mask);
    }

    @Override
    public List<CacheEntry> cache(int batch, int capacity) {
        return decoder.cache(batch, capacity);
    }

    @Override
    public Decoding decode(GraphBuilder b, Value tokens, Value position, Value last, List<Value> caches) {
        return decoder.decode(b, tokens, position, last, caches);
    }

    private final class Parts implements RotaryDecoder.Parts {
        @Override
        public Value embedded(GraphBuilder b, Value tokens) {
            return new Weights(b, PREFIX)
                    .embedding("embed_in", b.reshape(tokens, -1), config.vocabulary(), config.width());
        }

        @Override
        public Value block(GraphBuilder b, int layer, Value x, int batch, Rope.Angles angles, Mixer mixer) {
            return new Weights(b, PREFIX).within("layers." + layer, w -> {
                Value first = w.layerNorm("input_layernorm", x, config.epsilon());
                Value attended = w.within("attention", at -> attention(at, first, batch, angles, mixer));
                Value y = config.parallel() ? x : b.add(attended, x);
                Value second = w.layerNorm("post_attention_layernorm", y, config.epsilon());
                Value fed = w.within("mlp", at -> {
                    Value inner =
                            config.activation().apply(b, at.linear("dense_h_to_4h", second, config.inner(), true));
                    return at.linear("dense_4h_to_h", inner, config.width(), true);
                });
                return config.parallel() ? b.add(b.add(fed, attended), x) : b.add(fed, y);
            });
        }

        @Override
        public Value lastNorm(GraphBuilder b, Value x) {
            return new Weights(b, PREFIX).layerNorm("final_layer_norm", x, config.epsilon());
        }

        @Override
        public Value head(GraphBuilder b) {
            String name = config.tied() ? PREFIX + "embed_in.weight" : "embed_out.weight";
            return b.weight(name, Type.f32(config.vocabulary(), config.width()));
        }
    }

    private Value attention(Weights w, Value x, int batch, Rope.Angles angles, Mixer mixer) {
        GraphBuilder b = w.b();
        Value rows = w.linear("query_key_value", x, 3 * config.width(), config.bias());
        Value perHead = b.reshape(rows, batch, -1, config.heads(), 3 * config.headWidth());
        List<Value> parts = Layers.split(b, perHead, 3, 3);
        Value mixed =
                mixer.mix(Rope.rotate(b, parts.get(0), angles), Rope.rotate(b, parts.get(1), angles), parts.get(2));
        return w.linear("dense", b.reshape(mixed, x.shape()), config.width(), config.bias());
    }
}
