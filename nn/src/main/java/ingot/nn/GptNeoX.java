package ingot.nn;

import ingot.ir.GraphBuilder;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.KeyValues.Mixer;
import java.util.ArrayList;
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

    public GptNeoX(ParallelConfig config) {
        this.config = config;
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
        CausalHead.check("gpt-neox", tokens, targets, config.context());
        return CausalHead.loss(b, hidden(b, tokens, null), head(b), null, targets, scale);
    }

    @Override
    public Value logits(GraphBuilder b, Value tokens, @Nullable Value mask) {
        Value logits = CausalHead.logits(b, hidden(b, tokens, mask), head(b), null);
        return b.reshape(logits, tokens.shape().dim(0), -1, config.vocabulary());
    }

    @Override
    public List<CacheEntry> cache(int batch, int capacity) {
        return KeyValues.cache(config.layers(), batch, capacity, config.heads(), config.headWidth());
    }

    @Override
    public Decoding decode(GraphBuilder b, Value tokens, Value position, Value last, List<Value> caches) {
        int batch = tokens.shape().dim(0);
        List<Value> rows = new ArrayList<>();
        Value at = b.add(b.iota(Type.i32(tokens.shape().dim(1)), 0), position);
        Rope.Angles angles = config.rope().angles(b, at);
        Value x = embedded(b, tokens);
        for (int i = 0; i < config.layers(); i++) {
            Mixer mixer = KeyValues.cached(
                    b,
                    position,
                    caches.get(2 * i),
                    caches.get(2 * i + 1),
                    0,
                    options().scale(),
                    rows);
            x = block(b, i, x, batch, angles, mixer);
        }
        Value one = norm(b, CausalHead.last(b, x, batch, last)); // [batch, width]
        return new Decoding(CausalHead.logits(b, one, head(b), null), rows);
    }

    private Value hidden(GraphBuilder b, Value tokens, @Nullable Value mask) {
        CausalHead.check("gpt-neox", tokens, null, config.context());
        Rope.Angles angles =
                config.rope().angles(b, b.iota(Type.i32(tokens.shape().dim(1)), 0));
        Value x = embedded(b, tokens);
        for (int i = 0; i < config.layers(); i++) {
            x = block(b, i, x, tokens.shape().dim(0), angles, KeyValues.whole(b, mask, 0, options(), null));
        }
        return norm(b, x);
    }

    private Value embedded(GraphBuilder b, Value tokens) {
        return new Weights(b, PREFIX).embedding("embed_in", b.reshape(tokens, -1), config.vocabulary(), config.width());
    }

    private Value block(GraphBuilder b, int layer, Value x, int batch, Rope.Angles angles, Mixer mixer) {
        return new Weights(b, PREFIX).within("layers." + layer, w -> {
            Value first = w.layerNorm("input_layernorm", x, config.epsilon());
            Value attended = w.within("attention", at -> attention(at, first, batch, angles, mixer));
            Value y = config.parallel() ? x : b.add(attended, x);
            Value second = w.layerNorm("post_attention_layernorm", y, config.epsilon());
            Value fed = w.within("mlp", at -> {
                Value inner = config.activation().apply(b, at.linear("dense_h_to_4h", second, config.inner(), true));
                return at.linear("dense_4h_to_h", inner, config.width(), true);
            });
            return config.parallel() ? b.add(b.add(fed, attended), x) : b.add(fed, y);
        });
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

    private Value norm(GraphBuilder b, Value x) {
        return new Weights(b, PREFIX).layerNorm("final_layer_norm", x, config.epsilon());
    }

    private Attention.Options options() {
        return Attention.Options.of(true, config.headWidth());
    }

    private Value head(GraphBuilder b) {
        String name = config.tied() ? PREFIX + "embed_in.weight" : "embed_out.weight";
        return b.weight(name, Type.f32(config.vocabulary(), config.width()));
    }
}
