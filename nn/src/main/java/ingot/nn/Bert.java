package ingot.nn;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.BertConfig.Layout;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// BERT (Devlin et al. 2019), RoBERTa (Liu et al. 2019) and DistilBERT (Sanh et al. 2019): a post-norm encoder with
/// learned positions.
///
/// Parameters have the names of Hugging Face's files: with a head the encoder's begin with `bert.`, `roberta.` or
/// `distilbert.`, without one they have no prefix. Inside, activations are rows [batch · time, width].
public final class Bert implements TextEncoder {
    private final BertConfig config;

    public Bert(BertConfig config) {
        this.config = config;
    }

    public BertConfig config() {
        return config;
    }

    /// What stands before the encoder's names in a model with a head.
    public static String prefix(Layout layout) {
        return switch (layout) {
            case BERT -> "bert.";
            case ROBERTA -> "roberta.";
            case DISTILBERT -> "distilbert.";
        };
    }

    /// The names of a block's parts.
    private record Names(
            String block,
            String query,
            String key,
            String value,
            String output,
            String attentionNorm,
            String inner,
            String outer,
            String outputNorm) {
        static final Names BERT = new Names(
                "encoder.layer.",
                "attention.self.query",
                "attention.self.key",
                "attention.self.value",
                "attention.output.dense",
                "attention.output.LayerNorm",
                "intermediate.dense",
                "output.dense",
                "output.LayerNorm");
        static final Names DISTILBERT = new Names(
                "transformer.layer.",
                "attention.q_lin",
                "attention.k_lin",
                "attention.v_lin",
                "attention.out_lin",
                "sa_layer_norm",
                "ffn.lin1",
                "ffn.lin2",
                "output_layer_norm");
    }

    @Override
    public List<Parameter> parameters() {
        GraphBuilder b = new GraphBuilder("bert");
        Text text = new Text(b.input("tokens", Type.i32(1, 1)), null, null, null);
        Value hidden = hidden(b, text);
        if (config.head().kind() == Head.Kind.NONE) {
            pooled(b, hidden);
        } else {
            logits(b, hidden, text);
        }
        return Weights.declared(b.build(), config.deviation(), 1);
    }

    @Override
    public int vocabulary() {
        return config.vocabulary();
    }

    @Override
    public int context() {
        return config.positions() - (config.padding() + 1);
    }

    @Override
    public int width() {
        return config.width();
    }

    @Override
    public int tokenTypes() {
        return config.types();
    }

    @Override
    public Head head() {
        return config.head();
    }

    @Override
    public Bert withHead(Head head) {
        return new Bert(config.withHead(head));
    }

    /// The same model as far as its hidden states.
    public Bert withoutPooler() {
        return new Bert(config.withoutPooler());
    }

    @Override
    public Value hidden(GraphBuilder b, Text text) {
        Value x = embedded(b, text);
        Attention.Options options = new Attention.Options(
                false, 1 / Math.sqrt(config.width() / (double) config.heads()), config.attentionDropout());
        for (int i = 0; i < config.layers(); i++) {
            x = block(b, i, x, text, options);
        }
        return b.reshape(x, text.batch(), text.time(), config.width());
    }

    @Override
    public Value pooled(GraphBuilder b, Value hidden) {
        Value first = b.reshape(b.slice(hidden, 1, 0, 1), hidden.shape().dim(0), config.width());
        return config.pooler()
                ? encoder(b)
                        .within("pooler", w -> b.unary(UnaryKind.TANH, w.linear("dense", first, config.width(), true)))
                : first;
    }

    @Override
    public Value logits(GraphBuilder b, Value hidden, Text text) {
        Randomness random = text.random();
        Weights w = new Weights(b, "");
        int labels = config.head().labels();
        int batch = hidden.shape().dim(0);
        return switch (config.head().kind()) {
            case NONE -> throw new IngotException("bert: a model without a head has no logits; give it one first");
            case TOKEN_CLASS -> {
                Value rows = b.reshape(hidden, -1, config.width());
                Value y = w.linear("classifier", dropped(b, rows, random, batch), labels, true);
                yield b.reshape(y, batch, -1, labels);
            }
            case CLASS, NUMBERS -> {
                Value pooled = pooled(b, hidden);
                yield switch (config.layout()) {
                    case BERT -> w.linear("classifier", dropped(b, pooled, random, batch), labels, true);
                    case ROBERTA -> {
                        Value x = w.linear("classifier.dense", dropped(b, pooled, random, batch), config.width(), true);
                        Value y = dropped(b, b.unary(UnaryKind.TANH, x), random, batch);
                        yield w.linear("classifier.out_proj", y, labels, true);
                    }
                    case DISTILBERT -> {
                        Value x = Activations.relu(b, w.linear("pre_classifier", pooled, config.width(), true));
                        yield w.linear("classifier", dropped(b, x, random, batch), labels, true);
                    }
                };
            }
        };
    }

    private Value dropped(GraphBuilder b, Value x, @Nullable Randomness random, int batch) {
        return Activations.dropout(b, x, config.headDropout(), random, batch);
    }

    /// Tokens, positions and types, normalised: rows [batch · time, width].
    private Value embedded(GraphBuilder b, Text text) {
        return encoder(b).within("embeddings", w -> {
            Value tokens = b.reshape(text.tokens(), -1);
            Value sum = w.embedding("word_embeddings", tokens, config.vocabulary(), config.width());
            if (config.types() > 0) {
                Value types = text.types() == null ? b.fullLike(tokens, 0) : b.reshape(text.types(), -1);
                sum = b.add(sum, w.embedding("token_type_embeddings", types, config.types(), config.width()));
            }
            sum = b.add(sum, positions(w, text, sum.shape()));
            Value x = w.layerNorm("LayerNorm", sum, config.epsilon());
            return Activations.dropout(b, x, config.hiddenDropout(), text.random(), text.batch());
        });
    }

    private Value positions(Weights w, Text text, Shape rows) {
        GraphBuilder b = w.b();
        Value table = w.of("position_embeddings.weight", config.positions(), config.width());
        if (config.padding() < 0) {
            Value ofPosition = b.slice(table, 0, 0, text.time()); // [time, width]
            return b.reshape(b.broadcast(ofPosition, Shape.of(text.batch(), text.time(), config.width())), rows);
        }
        // tokens that are not padding count from padding + 1 on, whatever is between them
        Value real =
                b.convert(b.compare(CompareKind.NOT_EQUAL, text.tokens(), b.constant(config.padding())), DType.I32);
        Value count = b.add(new Op.Cumulative(ReduceKind.SUM, real, 1, false)); // [batch, time]
        Value at = b.add(b.multiply(count, real), config.padding());
        return Layers.embedding(b, table, b.reshape(at, -1));
    }

    private Value block(GraphBuilder b, int layer, Value x, Text text, Attention.Options options) {
        Names names = config.layout() == Layout.DISTILBERT ? Names.DISTILBERT : Names.BERT;
        return encoder(b).within(names.block() + layer, w -> {
            Value mixed = Attention.attention(
                    b,
                    heads(w, names.query(), x, text),
                    heads(w, names.key(), x, text),
                    heads(w, names.value(), x, text),
                    text.seen(b),
                    options,
                    text.random());
            Value attended = w.linear(names.output(), b.reshape(mixed, x.shape()), config.width(), true);
            Value y = residual(w, names.attentionNorm(), x, attended, text);
            Value inner = config.activation().apply(b, w.linear(names.inner(), y, config.inner(), true));
            return residual(w, names.outputNorm(), y, w.linear(names.outer(), inner, config.width(), true), text);
        });
    }

    private Value heads(Weights w, String name, Value x, Text text) {
        Value rows = w.linear(name, x, config.width(), true);
        return w.b().reshape(rows, text.batch(), text.time(), config.heads(), config.width() / config.heads());
    }

    private Value residual(Weights w, String norm, Value x, Value change, Text text) {
        Value dropped = Activations.dropout(w.b(), change, config.hiddenDropout(), text.random(), text.batch());
        return w.layerNorm(norm, w.b().add(dropped, x), config.epsilon());
    }

    private Weights encoder(GraphBuilder b) {
        return new Weights(b, config.head().kind() == Head.Kind.NONE ? "" : prefix(config.layout()));
    }
}
