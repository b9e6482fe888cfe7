package ingot.nn;

import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.KeyValues.Mixer;
import ingot.nn.LlamaConfig.Variant;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The Llama family (Touvron et al. 2023): a pre-norm decoder with RMSNorm, rotary positions, grouped key heads and
/// gated feed-forward layers. [Variant] says what Mistral, Qwen2, Qwen3, Gemma and Mixtral change.
///
/// Parameters have the names of Hugging Face's `…ForCausalLM` files. Inside, activations are rows [batch · time,
/// width], the batch outermost.
public final class Llama implements LanguageModel {
    private static final String PREFIX = "model.";

    private final LlamaConfig config;
    private final RotaryDecoder decoder;

    public Llama(LlamaConfig config) {
        this.config = config;
        decoder = new RotaryDecoder(
                "llama",
                config.vocabulary(),
                config.context(),
                config.layers(),
                config.keyHeads(),
                config.headWidth(),
                config.rope(),
                new Parts());
    }

    public LlamaConfig config() {
        return config;
    }

    @Override
    public List<Parameter> parameters() {
        return Weights.declared(
                logitsGraph(1, 1, false), config.deviation(), config.variant().gemma() ? 0 : 1);
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
            Value x = new Weights(b, PREFIX)
                    .embedding("embed_tokens", b.reshape(tokens, -1), config.vocabulary(), config.width());
            return config.variant().gemma() ? b.multiply(x, Math.sqrt(config.width())) : x;
        }

        @Override
        public Value block(GraphBuilder b, int layer, Value x, int batch, Rope.Angles angles, Mixer mixer) {
            return new Weights(b, PREFIX).within("layers." + layer, w -> {
                Value first = norm(w, "input_layernorm", x);
                Value y = b.add(x, w.within("self_attn", at -> attention(at, first, batch, angles, mixer)));
                Value second = norm(w, "post_attention_layernorm", y);
                return b.add(
                        y,
                        config.variant().experts() > 0
                                ? w.within("block_sparse_moe", at -> experts(at, second))
                                : w.within("mlp", at -> gated(at, "gate_proj", "up_proj", "down_proj", second)));
            });
        }

        @Override
        public Value lastNorm(GraphBuilder b, Value rows) {
            return norm(new Weights(b, PREFIX), "norm", rows);
        }

        @Override
        public Value head(GraphBuilder b) {
            String name = config.tied() ? PREFIX + "embed_tokens.weight" : "lm_head.weight";
            return b.weight(name, Type.f32(config.vocabulary(), config.width()));
        }

        @Override
        public int window(int layer) {
            return layer >= config.variant().windowFrom() ? config.variant().window() : 0;
        }
    }

    private Value attention(Weights w, Value x, int batch, Rope.Angles angles, Mixer mixer) {
        Variant variant = config.variant();
        Value q = heads(w, "q_proj", x, batch, config.heads());
        Value k = heads(w, "k_proj", x, batch, config.keyHeads());
        Value v = heads(w, "v_proj", x, batch, config.keyHeads()); // [batch, time, heads, head width]
        if (variant.headNorms()) {
            q = norm(w, "q_norm", q);
            k = norm(w, "k_norm", k);
        }
        Value mixed = mixer.mix(Rope.rotate(w.b(), q, angles), Rope.rotate(w.b(), k, angles), v);
        Value joined = w.b().reshape(mixed, x.shape().dim(0), config.heads() * config.headWidth());
        return w.linear("o_proj", joined, config.width(), variant.outputBias());
    }

    private Value heads(Weights w, String name, Value x, int batch, int heads) {
        Value rows =
                w.linear(name, x, heads * config.headWidth(), config.variant().queryBias());
        return w.b().reshape(rows, batch, x.shape().dim(0) / batch, heads, config.headWidth());
    }

    /// down(act(gate(x)) · up(x)) (Shazeer 2020).
    private Value gated(Weights w, String gate, String up, String down, Value x) {
        boolean bias = config.variant().mlpBias();
        Value open = config.variant().activation().apply(w.b(), w.linear(gate, x, config.inner(), bias));
        Value inner = w.b().multiply(open, w.linear(up, x, config.inner(), bias));
        return w.linear(down, inner, config.width(), bias);
    }

    /// The experts a router chooses, each weighed by its share (Jiang et al. 2024). All are computed here: those that
    /// were not chosen count 0.
    private Value experts(Weights w, Value x) {
        GraphBuilder b = w.b();
        Variant variant = config.variant();
        Value shares = Experts.shares(b, w.linear("gate", x, variant.experts(), false), variant.chosen());
        List<Value> parts = new ArrayList<>();
        for (int e = 0; e < variant.experts(); e++) {
            Value share = b.slice(shares, 1, e, e + 1); // [rows, 1]
            Value y = w.within("experts." + e, at -> gated(at, "w1", "w3", "w2", x));
            parts.add(b.multiply(y, share));
        }
        return parts.stream().reduce(b::add).orElseThrow(() -> new IngotException("llama: no experts"));
    }

    private Value norm(Weights w, String name, Value x) {
        if (!config.variant().gemma()) {
            return w.rmsNorm(name, x, config.epsilon());
        }
        GraphBuilder b = w.b();
        return b.scope(name, () -> {
            Value weight = w.of(name + ".weight", x.shape().dim(-1));
            return Norms.rmsNorm(b, x, b.add(weight, 1), config.epsilon());
        });
    }
}
