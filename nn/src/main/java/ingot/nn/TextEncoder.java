package ingot.nn;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import org.jspecify.annotations.Nullable;

/// A model that reads a text as a whole: a hidden state per token and, with a head, classes or numbers.
///
/// The builder methods declare the weights they use under the parameters' names; the graph methods name the inputs and
/// outputs as documented.
public interface TextEncoder extends Network {
    int vocabulary();

    /// Most tokens one text can have.
    int context();

    /// Size of a hidden state.
    int width();

    /// How many kinds of tokens it tells apart, as the two texts of a pair; below 2: it does not.
    int tokenTypes();

    Head head();

    /// The same model with another head, whose weights are new.
    TextEncoder withHead(Head head);

    /// Hidden states [batch, time, width].
    Value hidden(GraphBuilder builder, Text text);

    /// What stands for the whole text, [batch, width]: the pooler's output, or the first token's state where a model
    /// has none.
    Value pooled(GraphBuilder builder, Value hidden);

    /// The head's outputs over the hidden states of a text: [batch, labels], or [batch, time, labels] for one class per
    /// token.
    Value logits(GraphBuilder builder, Value hidden, Text text);

    /// A batch of texts: tokens I32 [batch, time]; `mask` BOOL says which are no padding (null: all), `types` I32 which
    /// kind each is (null: 0); `random` null: no dropout.
    record Text(
            Value tokens,
            @Nullable Value mask,
            @Nullable Value types,
            @Nullable Randomness random) {
        public int batch() {
            return tokens.shape().dim(0);
        }

        public int time() {
            return tokens.shape().dim(1);
        }

        /// Which keys may be seen, for attention.
        @Nullable
        Value seen(GraphBuilder b) {
            return mask == null ? null : b.reshape(mask, batch(), 1, 1, time());
        }
    }

    /// Inputs `tokens`, `mask` and, if the model tells them apart, `types`; outputs `hidden` and `pooled`.
    default Graph hiddenGraph(int batch, int time) {
        GraphBuilder builder = new GraphBuilder("hidden");
        Value hidden = hidden(builder, inputs(builder, batch, time, null));
        builder.output("hidden", hidden);
        builder.output("pooled", pooled(builder, hidden));
        return builder.build();
    }

    /// The same inputs; output `logits`.
    default Graph logitsGraph(int batch, int time) {
        GraphBuilder builder = new GraphBuilder("logits");
        Text text = inputs(builder, batch, time, null);
        builder.output("logits", logits(builder, hidden(builder, text), text));
        return builder.build();
    }

    /// The same inputs, `targets`, `scale` and, with `dropout`, `key`; output `loss`.
    ///
    /// Targets are I32 [batch] or [batch, time], −100 left out, or F32 [batch, labels] for numbers. `scale` is 1 /
    /// (number of targets of the whole batch), so that the losses of its parts add up.
    default Graph lossGraph(int batch, int time, boolean dropout) {
        GraphBuilder builder = new GraphBuilder("loss");
        Text text = inputs(builder, batch, time, dropout ? Randomness.input(builder) : null);
        Type type = switch (head().kind()) {
            case CLASS -> Type.i32(batch);
            case TOKEN_CLASS -> Type.i32(batch, time);
            case NUMBERS -> Type.f32(batch, head().labels());
            case NONE -> throw new IngotException("encoder: a model without a head has no loss; give it one first");
        };
        Value targets = builder.input("targets", type);
        Value scale = builder.input("scale", new Type(DType.F32, Shape.SCALAR));
        Value logits = logits(builder, hidden(builder, text), text);
        Value losses = builder.scope("loss", () -> {
            if (head().kind() == Head.Kind.NUMBERS) {
                Value difference = builder.subtract(logits, targets);
                return builder.sum(builder.multiply(difference, difference), 1); // [batch]
            }
            Value rows = builder.reshape(logits, -1, head().labels());
            return CrossEntropy.crossEntropy(builder, rows, builder.reshape(targets, -1));
        });
        builder.output("loss", builder.sum(builder.multiply(losses, scale), 0));
        return builder.build();
    }

    private Text inputs(GraphBuilder builder, int batch, int time, @Nullable Randomness random) {
        if (time > context()) {
            throw new IngotException(
                    "encoder: " + time + " tokens, the model has positions for " + context() + "; cut the text");
        }
        Value tokens = builder.input("tokens", Type.i32(batch, time));
        Value mask = builder.input("mask", Type.bool(batch, time));
        Value types = tokenTypes() > 1 ? builder.input("types", Type.i32(batch, time)) : null;
        return new Text(tokens, mask, types, random);
    }
}
