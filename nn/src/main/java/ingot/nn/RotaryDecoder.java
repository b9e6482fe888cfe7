package ingot.nn;

import ingot.ir.GraphBuilder;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.KeyValues.Mixer;
import ingot.nn.LanguageModel.CacheEntry;
import ingot.nn.LanguageModel.Decoding;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The way from tokens to logits that decoders with rotary positions have in common; their parts say what differs.
///
/// @param name for errors
/// @param keyHeads heads of keys and values
record RotaryDecoder(
        String name, int vocabulary, int context, int layers, int keyHeads, int headWidth, Rope rope, Parts parts) {

    /// What a model is made of. Rows are [batch · time, width], the batch outermost.
    interface Parts {
        /// Tokens I32 [batch, time] → rows.
        Value embedded(GraphBuilder b, Value tokens);

        Value block(GraphBuilder b, int layer, Value rows, int batch, Rope.Angles angles, Mixer mixer);

        /// What the head reads.
        Value lastNorm(GraphBuilder b, Value rows);

        /// [vocabulary, width].
        Value head(GraphBuilder b);

        default @Nullable Value bias(GraphBuilder b) {
            return null;
        }

        /// How many keys up to its own a query sees; 0: all.
        default int window(int layer) {
            return 0;
        }
    }

    /// See `LanguageModel.loss`.
    Value loss(GraphBuilder b, Value tokens, Value targets, Value scale) {
        CausalHead.check(name, tokens, targets, context);
        return CausalHead.loss(b, hidden(b, tokens, null), parts.head(b), parts.bias(b), targets, scale);
    }

    /// See `LanguageModel.logits`.
    Value logits(GraphBuilder b, Value tokens, @Nullable Value mask) {
        Value logits = CausalHead.logits(b, hidden(b, tokens, mask), parts.head(b), parts.bias(b));
        return b.reshape(logits, tokens.shape().dim(0), -1, vocabulary);
    }

    /// See `LanguageModel.cache`.
    List<CacheEntry> cache(int batch, int capacity) {
        return KeyValues.cache(layers, batch, capacity, keyHeads, headWidth);
    }

    /// See `LanguageModel.decode`.
    Decoding decode(GraphBuilder b, Value tokens, Value position, Value last, List<Value> caches) {
        int batch = tokens.shape().dim(0);
        List<Value> rows = new ArrayList<>();
        Value at = b.add(b.iota(Type.i32(tokens.shape().dim(1)), 0), position);
        Rope.Angles angles = rope.angles(b, at);
        Value x = parts.embedded(b, tokens);
        for (int i = 0; i < layers; i++) {
            Mixer mixer = KeyValues.cached(
                    b,
                    position,
                    caches.get(2 * i),
                    caches.get(2 * i + 1),
                    parts.window(i),
                    options().scale(),
                    rows);
            x = parts.block(b, i, x, batch, angles, mixer);
        }
        Value one = parts.lastNorm(b, CausalHead.last(b, x, batch, last)); // [batch, width]
        return new Decoding(CausalHead.logits(b, one, parts.head(b), parts.bias(b)), rows);
    }

    /// The rows the head reads.
    private Value hidden(GraphBuilder b, Value tokens, @Nullable Value mask) {
        CausalHead.check(name, tokens, null, context);
        Rope.Angles angles = rope.angles(b, b.iota(Type.i32(tokens.shape().dim(1)), 0));
        Value x = parts.embedded(b, tokens);
        for (int i = 0; i < layers; i++) {
            Mixer mixer = KeyValues.whole(b, mask, parts.window(i), options(), null);
            x = parts.block(b, i, x, tokens.shape().dim(0), angles, mixer);
        }
        return parts.lastNorm(b, x);
    }

    private Attention.Options options() {
        return Attention.Options.of(true, headWidth);
    }
}
