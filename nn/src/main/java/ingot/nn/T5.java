package ingot.nn;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Op.CompareKind;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// T5 (Raffel et al. 2020): an encoder reads a text, a decoder writes another; positions are learned biases of the
/// distance between two tokens, shared by all blocks of a side.
///
/// Parameters have the names of Hugging Face's `T5ForConditionalGeneration`. Inside, activations are rows
/// [batch · time, width].
public final class T5 implements Network {
    private final T5Config config;

    public T5(T5Config config) {
        this.config = config;
    }

    public T5Config config() {
        return config;
    }

    @Override
    public List<Parameter> parameters() {
        return Weights.declared(logitsGraph(1, 1, 1), config.deviation(), 1);
    }

    /// Inputs `tokens` I32 [batch, source], `mask` BOOL of the same shape and `written` I32 [batch, target], what the
    /// decoder has written so far, the start token first; output `logits` [batch, target, vocabulary] of what follows.
    public Graph logitsGraph(int batch, int source, int target) {
        GraphBuilder b = new GraphBuilder("logits");
        Value tokens = b.input("tokens", Type.i32(batch, source));
        Value mask = b.input("mask", Type.bool(batch, source));
        Value written = b.input("written", Type.i32(batch, target));
        b.output("logits", logits(b, encoded(b, tokens, mask, null), mask, written, null));
        return b.build();
    }

    /// Inputs `tokens`, `mask`, `targets` I32 [batch, target] (−100 is left out), `scale` and, with `dropout`, `key`;
    /// output `loss`, the sum of the cross entropies times `scale`. The decoder reads the targets one place later.
    public Graph lossGraph(int batch, int source, int target, boolean dropout) {
        GraphBuilder b = new GraphBuilder("loss");
        Value tokens = b.input("tokens", Type.i32(batch, source));
        Value mask = b.input("mask", Type.bool(batch, source));
        Value targets = b.input("targets", Type.i32(batch, target));
        Value scale = b.input("scale", new Type(DType.F32, Shape.SCALAR));
        Randomness random = dropout ? Randomness.input(b) : null;
        Value known = b.select(
                b.compare(CompareKind.EQUAL, targets, b.constant(CrossEntropy.IGNORED)), b.constant(0), targets);
        Value start = b.broadcast(b.constant(config.start()), Shape.of(batch, 1));
        Value written = target == 1 ? start : b.concatenate(List.of(start, b.slice(known, 1, 0, target - 1)), 1);
        Value logits = logits(b, encoded(b, tokens, mask, random), mask, written, random);
        Value rows = b.reshape(logits, -1, config.vocabulary());
        Value losses = CrossEntropy.crossEntropy(b, rows, b.reshape(targets, -1));
        b.output("loss", b.sum(b.multiply(losses, scale), 0));
        return b.build();
    }

    /// What the encoder makes of a text: [batch, source, width].
    public Value encoded(GraphBuilder b, Value tokens, @Nullable Value mask, @Nullable Randomness random) {
        int batch = tokens.shape().dim(0);
        int time = tokens.shape().dim(1);
        Weights side = new Weights(b, "encoder.");
        Value bias = masked(b, distances(side, batch, time, true), mask);
        Value x = dropped(b, embedded(b, tokens), batch, random);
        for (int i = 0; i < config.layers(); i++) {
            Value in = x;
            x = side.within("block." + i, w -> {
                Value y = w.within("layer.0", l -> attended(l, "SelfAttention", in, in, bias, false, batch, random));
                return w.within("layer.1", l -> fed(l, y, batch, random));
            });
        }
        Value out = side.rmsNorm("final_layer_norm", x, config.epsilon());
        return b.reshape(dropped(b, out, batch, random), batch, time, config.width());
    }

    /// What may follow each token of `written`.
    public Value logits(
            GraphBuilder b, Value encoded, @Nullable Value mask, Value written, @Nullable Randomness random) {
        int batch = written.shape().dim(0);
        int time = written.shape().dim(1);
        Value source = b.reshape(encoded, -1, config.width());
        Weights side = new Weights(b, "decoder.");
        Value own = distances(side, batch, time, false);
        Value seen = mask == null
                ? null
                : b.reshape(mask, batch, 1, 1, encoded.shape().dim(1));
        Value x = dropped(b, embedded(b, written), batch, random);
        for (int i = 0; i < config.decoderLayers(); i++) {
            Value in = x;
            x = side.within("block." + i, w -> {
                Value y = w.within("layer.0", l -> attended(l, "SelfAttention", in, in, own, true, batch, random));
                Value z =
                        w.within("layer.1", l -> attended(l, "EncDecAttention", y, source, seen, false, batch, random));
                return w.within("layer.2", l -> fed(l, z, batch, random));
            });
        }
        Value out = dropped(b, side.rmsNorm("final_layer_norm", x, config.epsilon()), batch, random);
        Value head = config.tied() ? table(b) : b.weight("lm_head.weight", table(b).type());
        Value scaled = config.tied() ? b.multiply(out, 1 / Math.sqrt(config.width())) : out;
        return b.reshape(CausalHead.logits(b, scaled, head, null), batch, time, config.vocabulary());
    }

    private Value embedded(GraphBuilder b, Value tokens) {
        return Layers.embedding(b, table(b), b.reshape(tokens, -1));
    }

    private Value table(GraphBuilder b) {
        return b.weight("shared.weight", Type.f32(config.vocabulary(), config.width()));
    }

    /// x + attention from norm(x) to `source` (to itself, if it is x); scores are not scaled.
    private Value attended(
            Weights w,
            String name,
            Value x,
            Value source,
            @Nullable Value mask,
            boolean causal,
            int batch,
            @Nullable Randomness random) {
        GraphBuilder b = w.b();
        Value normal = w.rmsNorm("layer_norm", x, config.epsilon());
        Value read = source == x ? normal : source;
        int inner = config.heads() * config.headWidth();
        Value out = w.within(name, at -> {
            Value mixed = Attention.attention(
                    b,
                    heads(at, "q", normal, batch),
                    heads(at, "k", read, batch),
                    heads(at, "v", read, batch),
                    mask,
                    new Attention.Options(causal, 1, config.dropout()),
                    random);
            return at.linear("o", b.reshape(mixed, -1, inner), config.width(), false);
        });
        return b.add(x, dropped(b, out, batch, random));
    }

    private Value heads(Weights w, String name, Value x, int batch) {
        Value rows = w.linear(name, x, config.heads() * config.headWidth(), false);
        return w.b().reshape(rows, batch, -1, config.heads(), config.headWidth());
    }

    private Value fed(Weights w, Value x, int batch, @Nullable Randomness random) {
        GraphBuilder b = w.b();
        Value normal = w.rmsNorm("layer_norm", x, config.epsilon());
        Value out = w.within("DenseReluDense", at -> {
            Value open = config.activation()
                    .apply(b, at.linear(config.gated() ? "wi_0" : "wi", normal, config.inner(), false));
            Value inner = config.gated() ? b.multiply(open, at.linear("wi_1", normal, config.inner(), false)) : open;
            return at.linear("wo", dropped(b, inner, batch, random), config.width(), false);
        });
        return b.add(x, dropped(b, out, batch, random));
    }

    private Value dropped(GraphBuilder b, Value x, int batch, @Nullable Randomness random) {
        return Activations.dropout(b, x, config.dropout(), random, batch);
    }

    /// What is added to the scores: the bias of each head for each distance, [batch, heads, queries, keys].
    private Value distances(Weights side, int batch, int time, boolean bothWays) {
        GraphBuilder b = side.b();
        Tensor buckets = Tensor.zeros(Type.i32(time, time));
        for (int q = 0; q < time; q++) {
            for (int k = 0; k < time; k++) {
                buckets.setLong((long) q * time + k, bucket(k - q, bothWays));
            }
        }
        Weights first = side.at("block.0.layer.0.SelfAttention");
        Value biases =
                first.embedding("relative_attention_bias", b.constant(buckets), config.buckets(), config.heads());
        Value perHead = b.transpose(biases, 2, 0, 1); // [heads, queries, keys]
        return b.broadcast(perHead, Shape.of(batch, config.heads(), time, time), List.of(1, 2, 3));
    }

    /// Near distances have a bucket each, farther ones share buckets that grow with the distance.
    private int bucket(int distance, boolean bothWays) {
        int buckets = bothWays ? config.buckets() / 2 : config.buckets();
        int ahead = bothWays && distance > 0 ? buckets : 0;
        int far = bothWays ? Math.abs(distance) : Math.max(0, -distance);
        int exact = buckets / 2;
        if (far < exact) {
            return ahead + far;
        }
        float share = (float) StrictMath.log((float) far / exact)
                / (float) StrictMath.log((double) config.farthest() / exact);
        return ahead + Math.min(buckets - 1, exact + (int) (share * (buckets - exact)));
    }

    /// The bias where a key may be seen, else what no score comes up against.
    private static Value masked(GraphBuilder b, Value bias, @Nullable Value mask) {
        if (mask == null) {
            return bias;
        }
        Value seen = b.reshape(mask, mask.shape().dim(0), 1, 1, mask.shape().dim(1));
        return b.select(seen, bias, b.scalarLike(bias, -Float.MAX_VALUE));
    }
}
