package ingot.nn;

import ingot.ir.GraphBuilder;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.KeyValues.Mixer;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// GPT-2 (Radford et al. 2019): a pre-norm decoder with learned positions and the token table as its head.
///
/// Parameters have the names of Hugging Face's `GPT2LMHeadModel` files, `prefix` (`transformer.` or nothing) in front.
/// Inside, activations are rows [batch · time, width], the batch outermost.
public final class Gpt implements LanguageModel {
    private final GptConfig config;
    private final String prefix;

    public Gpt(GptConfig config, String prefix) {
        this.config = config;
        this.prefix = prefix;
    }

    public static Gpt of(GptConfig config) {
        return new Gpt(config, "transformer.");
    }

    public GptConfig config() {
        return config;
    }

    @Override
    public int vocabulary() {
        return config.vocabulary();
    }

    @Override
    public int context() {
        return config.context();
    }

    /// Matrices decay, norms and biases do not. The two projections that end in the residual stream start smaller by
    /// √(2·layers).
    @Override
    public List<Parameter> parameters() {
        int width = config.width();
        Initializer normal = new Initializer.Normal(config.deviation());
        Initializer residual = new Initializer.Normal(config.deviation() / Math.sqrt(2.0 * config.layers()));
        List<Parameter> all = new ArrayList<>();
        all.add(new Parameter(prefix + "wte.weight", Type.f32(config.vocabulary(), width), normal, true));
        all.add(new Parameter(prefix + "wpe.weight", Type.f32(config.context(), width), normal, true));
        for (int i = 0; i < config.layers(); i++) {
            String h = prefix + "h." + i + ".";
            norm(all, h + "ln_1");
            matrix(all, h + "attn.c_attn", width, 3 * width, normal);
            matrix(all, h + "attn.c_proj", width, width, residual);
            norm(all, h + "ln_2");
            matrix(all, h + "mlp.c_fc", width, config.inner(), normal);
            matrix(all, h + "mlp.c_proj", config.inner(), width, residual);
        }
        norm(all, prefix + "ln_f");
        return all;
    }

    private void norm(List<Parameter> all, String name) {
        all.add(new Parameter(name + ".weight", Type.f32(config.width()), new Initializer.Constant(1), false));
        all.add(new Parameter(name + ".bias", Type.f32(config.width()), new Initializer.Constant(0), false));
    }

    private static void matrix(List<Parameter> all, String name, int in, int out, Initializer initializer) {
        all.add(new Parameter(name + ".weight", Type.f32(in, out), initializer, true));
        all.add(new Parameter(name + ".bias", Type.f32(out), new Initializer.Constant(0), false));
    }

    @Override
    public Value loss(GraphBuilder b, Value tokens, Value targets, Value scale, @Nullable Randomness random) {
        CausalHead.check("gpt", tokens, targets, config.context());
        Value hidden = hidden(b, tokens, null, random);
        return CausalHead.loss(b, hidden, table(b), null, targets, scale);
    }

    @Override
    public Value logits(GraphBuilder b, Value tokens, @Nullable Value mask) {
        int batch = tokens.shape().dim(0);
        Value hidden = hidden(b, tokens, mask, null);
        return b.reshape(CausalHead.logits(b, hidden, table(b), null), batch, -1, config.vocabulary());
    }

    /// The rows the head reads.
    private Value hidden(GraphBuilder b, Value tokens, @Nullable Value mask, @Nullable Randomness random) {
        int batch = tokens.shape().dim(0);
        int time = tokens.shape().dim(1);
        CausalHead.check("gpt", tokens, null, config.context());
        Value x = b.scope("embedding", () -> {
            Value ofToken = Layers.embedding(b, table(b), b.reshape(tokens, -1)); // [rows, width]
            Value ofPosition = b.slice(positions(b), 0, 0, time); // [time, width]
            Value repeated = b.broadcast(ofPosition, Shape.of(batch, time, config.width()));
            Value sum = b.add(ofToken, b.reshape(repeated, ofToken.shape()));
            return Activations.dropout(b, sum, config.embeddingDropout(), random, batch);
        });
        Attention.Options options =
                new Attention.Options(true, 1 / Math.sqrt(config.headWidth()), config.attentionDropout());
        for (int i = 0; i < config.layers(); i++) {
            x = block(b, "h." + i, x, batch, random, KeyValues.whole(b, mask, 0, options, random));
        }
        return norm(b, "ln_f", x);
    }

    private Value block(GraphBuilder b, String name, Value x, int batch, @Nullable Randomness random, Mixer attention) {
        return b.scope(name, () -> {
            int rows = x.shape().dim(0);
            Value normal = norm(b, name + ".ln_1", x);
            Value attended = b.scope("attn", () -> {
                List<Value> parts = Layers.split(b, linear(b, name + ".attn.c_attn", normal, 3 * config.width()), 3, 1);
                List<Value> heads = parts.stream()
                        .map(part -> b.reshape(part, batch, rows / batch, config.heads(), config.headWidth()))
                        .toList();
                Value mixed = attention.mix(heads.get(0), heads.get(1), heads.get(2));
                Value joined = b.reshape(mixed, rows, config.width());
                Value out = linear(b, name + ".attn.c_proj", joined, config.width());
                return b.add(x, Activations.dropout(b, out, config.residualDropout(), random, batch));
            });
            Value second = norm(b, name + ".ln_2", attended);
            return b.scope("mlp", () -> {
                Value inner = config.activation().apply(b, linear(b, name + ".mlp.c_fc", second, config.inner()));
                Value out = linear(b, name + ".mlp.c_proj", inner, config.width());
                return b.add(attended, Activations.dropout(b, out, config.residualDropout(), random, batch));
            });
        });
    }

    @Override
    public List<CacheEntry> cache(int batch, int capacity) {
        return KeyValues.cache(config.layers(), batch, capacity, config.heads(), config.headWidth());
    }

    @Override
    public Decoding decode(GraphBuilder b, Value tokens, Value position, Value last, List<Value> caches) {
        int batch = tokens.shape().dim(0);
        int n = tokens.shape().dim(1);
        Value x = b.scope("embedding", () -> {
            Value at = b.add(b.iota(Type.i32(n), 0), position);
            Value ofPosition = Layers.embedding(b, positions(b), at); // [n, width]
            Value repeated = b.broadcast(ofPosition, Shape.of(batch, n, config.width()));
            Value ofToken = Layers.embedding(b, table(b), b.reshape(tokens, -1));
            return b.add(ofToken, b.reshape(repeated, ofToken.shape()));
        });
        List<Value> rows = new ArrayList<>();
        double scale = 1 / Math.sqrt(config.headWidth());
        for (int i = 0; i < config.layers(); i++) {
            Mixer mixer = KeyValues.cached(b, position, caches.get(2 * i), caches.get(2 * i + 1), 0, scale, rows);
            x = block(b, "h." + i, x, batch, null, mixer);
        }
        Value one = norm(b, "ln_f", CausalHead.last(b, x, batch, last)); // [batch, width]
        return new Decoding(CausalHead.logits(b, one, table(b), null), rows);
    }

    private Value table(GraphBuilder b) {
        return b.weight(prefix + "wte.weight", Type.f32(config.vocabulary(), config.width()));
    }

    private Value positions(GraphBuilder b) {
        return b.weight(prefix + "wpe.weight", Type.f32(config.context(), config.width()));
    }

    private Value norm(GraphBuilder b, String name, Value x) {
        Value weight = b.weight(prefix + name + ".weight", Type.f32(config.width()));
        Value bias = b.weight(prefix + name + ".bias", Type.f32(config.width()));
        String scope = name.substring(name.lastIndexOf('.') + 1);
        return b.scope(scope, () -> Norms.layerNorm(b, x, weight, bias, config.epsilon()));
    }

    private Value linear(GraphBuilder b, String name, Value x, int out) {
        Value weight = b.weight(prefix + name + ".weight", Type.f32(x.shape().dim(-1), out));
        Value bias = b.weight(prefix + name + ".bias", Type.f32(out));
        return Layers.linear(b, x, weight, bias);
    }
}
