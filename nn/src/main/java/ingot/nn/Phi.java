package ingot.nn;

import ingot.ir.GraphBuilder;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.KeyValues.Mixer;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Phi (Gunasekar et al. 2023; phi-1 to phi-2): attention and feed-forward layer read the same norm, part of each head
/// turns, and everything has a bias, the head too.
///
/// Parameters have the names of Hugging Face's `PhiForCausalLM`. Inside, activations are rows [batch · time, width].
public final class Phi implements LanguageModel {
    private static final String PREFIX = "model.";

    private final ParallelConfig config;
    private final RotaryDecoder decoder;

    public Phi(ParallelConfig config) {
        this.config = config;
        decoder = new RotaryDecoder(
                "phi",
                config.vocabulary(),
                config.context(),
                config.layers(),
                config.keyHeads(),
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
                    .embedding("embed_tokens", b.reshape(tokens, -1), config.vocabulary(), config.width());
        }

        @Override
        public Value block(GraphBuilder b, int layer, Value x, int batch, Rope.Angles angles, Mixer mixer) {
            return new Weights(b, PREFIX).within("layers." + layer, w -> {
                Value normal = w.layerNorm("input_layernorm", x, config.epsilon());
                Value attended = w.within("self_attn", at -> attention(at, normal, batch, angles, mixer));
                Value fed = w.within("mlp", at -> {
                    Value inner = config.activation().apply(b, at.linear("fc1", normal, config.inner(), true));
                    return at.linear("fc2", inner, config.width(), true);
                });
                return b.add(b.add(attended, fed), x);
            });
        }

        @Override
        public Value lastNorm(GraphBuilder b, Value x) {
            return new Weights(b, PREFIX).layerNorm("final_layernorm", x, config.epsilon());
        }

        @Override
        public Value head(GraphBuilder b) {
            String name = config.tied() ? PREFIX + "embed_tokens.weight" : "lm_head.weight";
            return b.weight(name, Type.f32(config.vocabulary(), config.width()));
        }

        @Override
        public Value bias(GraphBuilder b) {
            return b.weight("lm_head.bias", Type.f32(config.vocabulary()));
        }
    }

    private Value attention(Weights w, Value x, int batch, Rope.Angles angles, Mixer mixer) {
        Value q = heads(w, "q_proj", x, batch, config.heads());
        Value k = heads(w, "k_proj", x, batch, config.keyHeads());
        Value v = heads(w, "v_proj", x, batch, config.keyHeads());
        if (config.headNorms()) {
            q = w.layerNorm("q_layernorm", q, config.epsilon());
            k = w.layerNorm("k_layernorm", k, config.epsilon());
        }
        Value mixed = mixer.mix(Rope.rotate(w.b(), q, angles), Rope.rotate(w.b(), k, angles), v);
        return w.linear("dense", w.b().reshape(mixed, x.shape()), config.width(), true);
    }

    private Value heads(Weights w, String name, Value x, int batch, int heads) {
        return w.b().reshape(w.linear(name, x, heads * config.headWidth(), true), batch, -1, heads, config.headWidth());
    }
}
