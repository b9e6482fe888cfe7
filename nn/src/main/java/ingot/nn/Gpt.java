package ingot.nn;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.CompareKind;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
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
        if (!targets.type().equals(tokens.type())) {
            throw new IngotException(
                    "gpt: targets expected " + tokens.type() + " like the tokens, got " + targets.type());
        }
        Value hidden = hidden(b, tokens, null, random);
        return b.scope("head", () -> {
            Value losses = CrossEntropy.linearCrossEntropy(b, hidden, table(b), b.reshape(targets, -1)); // [rows]
            return b.sum(b.multiply(losses, scale), 0);
        });
    }

    @Override
    public Value logits(GraphBuilder b, Value tokens, @Nullable Value mask) {
        int batch = tokens.shape().dim(0);
        int time = tokens.shape().dim(1);
        Value seen = mask == null ? null : b.reshape(mask, batch, 1, 1, time);
        Value hidden = hidden(b, tokens, seen, null);
        return b.scope(
                "head",
                () -> b.reshape(Layers.linearTransposed(b, hidden, table(b), null), batch, time, config.vocabulary()));
    }

    /// The rows the head reads.
    private Value hidden(GraphBuilder b, Value tokens, @Nullable Value mask, @Nullable Randomness random) {
        int batch = tokens.shape().dim(0);
        int time = tokens.shape().dim(1);
        if (time > config.context()) {
            throw new IngotException("gpt: " + time + " tokens, the context holds " + config.context()
                    + "; cut the sequence or raise the context");
        }
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
            x = block(
                    b, "h." + i, x, batch, random, (q, k, v) -> Attention.attention(b, q, k, v, mask, options, random));
        }
        return norm(b, "ln_f", x);
    }

    private interface Mixer {
        /// Queries, keys and values [batch, time, heads, head width] of the new tokens → what each query gathers.
        Value mix(Value q, Value k, Value v);
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
                Value inner = activate(b, linear(b, name + ".mlp.c_fc", second, config.inner()));
                Value out = linear(b, name + ".mlp.c_proj", inner, config.width());
                return b.add(attended, Activations.dropout(b, out, config.residualDropout(), random, batch));
            });
        });
    }

    /// `k.0`, `v.0`, `k.1`, … of [batch, capacity, heads, head width].
    @Override
    public List<CacheEntry> cache(int batch, int capacity) {
        Type type = Type.f32(batch, capacity, config.heads(), config.headWidth());
        List<CacheEntry> entries = new ArrayList<>();
        for (int i = 0; i < config.layers(); i++) {
            entries.add(new CacheEntry("k." + i, type));
            entries.add(new CacheEntry("v." + i, type));
        }
        return entries;
    }

    /// The new keys and values take their places among the cached ones, then every query sees positions up to its own.
    /// Masked positions add exact zeros, so the logits have the same bits as those of the whole sequence at once.
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
        for (int i = 0; i < config.layers(); i++) {
            Value keys = caches.get(2 * i);
            Value values = caches.get(2 * i + 1);
            x = block(b, "h." + i, x, batch, null, (q, k, v) -> {
                rows.add(k);
                rows.add(v);
                Value seen = seen(b, position, n, keys.shape().dim(1));
                Attention.Options options = Attention.Options.of(false, config.headWidth());
                return Attention.attention(
                        b, q, placed(b, keys, k, position), placed(b, values, v, position), seen, options, null);
            });
        }
        Value all = b.reshape(x, batch, n, config.width());
        Value one = norm(b, "ln_f", b.gather(all, last, 1)); // [batch, width]
        Value logits = b.scope("head", () -> Layers.linearTransposed(b, one, table(b), null));
        return new Decoding(logits, rows);
    }

    /// The cache with `rows` [batch, n, …] at `position`.
    private static Value placed(GraphBuilder b, Value cache, Value rows, Value position) {
        int capacity = cache.shape().dim(1);
        Value offset = b.subtract(b.iota(Type.i32(capacity), 0), position);
        Value inside = b.binary(
                BinaryKind.AND,
                b.compare(CompareKind.GREATER_EQUAL, offset, b.constant(0)),
                b.compare(CompareKind.LESS, offset, b.constant(rows.shape().dim(1))));
        return b.select(b.broadcast(inside, cache.shape(), List.of(1)), b.gather(rows, offset, 1), cache);
    }

    /// BOOL [1, 1, n, capacity]: query i stands at `position` + i and sees what is not after it.
    private static Value seen(GraphBuilder b, Value position, int n, int capacity) {
        Type index = new Type(DType.I32, Shape.of(1, 1, n, capacity));
        return b.compare(CompareKind.LESS_EQUAL, b.iota(index, 3), b.add(b.iota(index, 2), position));
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

    private Value activate(GraphBuilder b, Value x) {
        return switch (config.activation()) {
            case GELU_TANH -> Activations.geluTanh(b, x);
            case GELU -> Activations.gelu(b, x);
            case RELU -> Activations.relu(b, x);
            case SILU -> Activations.silu(b, x);
        };
    }
}
