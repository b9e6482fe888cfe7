package ingot.nn;

import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// The vision transformer (Dosovitskiy et al. 2021): patches of an image are tokens of a pre-norm encoder.
///
/// Parameters have the names of Hugging Face's `ViTForImageClassification`, or of `ViTModel` without a head. Inside,
/// activations are rows [batch · tokens, width]; the first token of each image is the class token.
public final class Vit implements ImageClassifier {
    private final VitConfig config;

    public Vit(VitConfig config) {
        this.config = config;
    }

    public VitConfig config() {
        return config;
    }

    @Override
    public List<Parameter> parameters() {
        GraphBuilder b = new GraphBuilder("vit");
        Value pixels = b.input("pixels", Type.f32(1, config.channels(), config.imageSize(), config.imageSize()));
        if (config.labels() > 0) {
            logits(b, pixels);
        } else {
            pooled(b, hidden(b, pixels, null));
        }
        return Weights.declared(b.build(), config.deviation(), 1);
    }

    @Override
    public int imageSize() {
        return config.imageSize();
    }

    @Override
    public int channels() {
        return config.channels();
    }

    @Override
    public int labels() {
        return config.labels();
    }

    @Override
    public Vit withLabels(int labels) {
        return new Vit(config.withLabels(labels));
    }

    @Override
    public boolean drops() {
        return config.hiddenDropout() > 0 || config.attentionDropout() > 0;
    }

    /// Hidden states [batch, 1 + patches, width] after the last norm.
    public Value hidden(GraphBuilder b, Value pixels, @Nullable Randomness random) {
        int batch = pixels.shape().dim(0);
        int tokens = 1 + config.side() * config.side();
        Value x = embedded(b, pixels, tokens, random);
        for (int i = 0; i < config.layers(); i++) {
            x = block(b, i, x, batch, random);
        }
        return b.reshape(body(b).layerNorm("layernorm", x, config.epsilon()), batch, tokens, config.width());
    }

    /// What stands for the whole image, [batch, width].
    public Value pooled(GraphBuilder b, Value hidden) {
        Value first = b.reshape(b.slice(hidden, 1, 0, 1), hidden.shape().dim(0), config.width());
        return config.pooler()
                ? body(b).within("pooler", w -> b.unary(UnaryKind.TANH, w.linear("dense", first, config.width(), true)))
                : first;
    }

    @Override
    public Value logits(GraphBuilder b, Value pixels, @Nullable Randomness random, Predicate<String> tracked) {
        if (config.labels() == 0) {
            throw new IngotException("vit: a model without a head has no logits; give it one first");
        }
        Value first = pooled(b, hidden(b, pixels, random));
        return new Weights(b, "").linear("classifier", first, config.labels(), true);
    }

    /// A patch's pixels times a kernel, which is a convolution with stride = size, as one product over rows.
    private Value embedded(GraphBuilder b, Value pixels, int tokens, @Nullable Randomness random) {
        int batch = pixels.shape().dim(0);
        int side = config.side();
        int patch = config.patch();
        int width = config.width();
        return body(b).within("embeddings", w -> {
            Value split = b.reshape(pixels, batch, config.channels(), side, patch, side, patch);
            Value patches = b.reshape(
                    b.transpose(split, 0, 2, 4, 1, 3, 5), batch * side * side, config.channels() * patch * patch);
            Weights projection = w.at("patch_embeddings").at("projection");
            Value kernel = b.reshape(projection.of("weight", width, config.channels(), patch, patch), width, -1);
            Value ofPatches = b.reshape(
                    Layers.linearTransposed(b, patches, kernel, projection.of("bias", width)), batch, -1, width);
            Value token = b.reshape(w.of("cls_token", 1, 1, width), width);
            Value first = b.broadcast(token, Shape.of(batch, 1, width), List.of(2));
            Value all = b.concatenate(List.of(first, ofPatches), 1);
            Value positions = b.reshape(w.of("position_embeddings", 1, tokens, width), tokens, width);
            Value sum = b.reshape(b.add(all, positions), -1, width);
            return Activations.dropout(b, sum, config.hiddenDropout(), random, batch);
        });
    }

    private Value block(GraphBuilder b, int layer, Value x, int batch, @Nullable Randomness random) {
        return body(b).within("encoder.layer." + layer, w -> {
            Value normal = w.layerNorm("layernorm_before", x, config.epsilon());
            Value mixed = Attention.attention(
                    b,
                    heads(w, "query", normal, batch),
                    heads(w, "key", normal, batch),
                    heads(w, "value", normal, batch),
                    null,
                    new Attention.Options(
                            false, 1 / Math.sqrt(config.width() / (double) config.heads()), config.attentionDropout()),
                    random);
            Value out = w.linear("attention.output.dense", b.reshape(mixed, x.shape()), config.width(), true);
            Value y = b.add(x, dropped(b, out, batch, random));
            Value second = w.layerNorm("layernorm_after", y, config.epsilon());
            Value inner = config.activation().apply(b, w.linear("intermediate.dense", second, config.inner(), true));
            return b.add(y, dropped(b, w.linear("output.dense", inner, config.width(), true), batch, random));
        });
    }

    private Value heads(Weights w, String part, Value x, int batch) {
        Value rows = w.linear("attention.attention." + part, x, config.width(), config.bias());
        return w.b().reshape(rows, batch, -1, config.heads(), config.width() / config.heads());
    }

    private Value dropped(GraphBuilder b, Value x, int batch, @Nullable Randomness random) {
        return Activations.dropout(b, x, config.hiddenDropout(), random, batch);
    }

    private Weights body(GraphBuilder b) {
        return new Weights(b, config.labels() > 0 ? "vit." : "");
    }
}
