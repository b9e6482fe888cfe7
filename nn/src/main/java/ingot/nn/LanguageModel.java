package ingot.nn;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A model of the next token: a list of parameters and the graphs over them.
///
/// The builder methods declare the weights they use under the parameters' names; the graph methods name the inputs and
/// outputs as documented.
public interface LanguageModel extends Network {
    int vocabulary();

    /// Most tokens one sequence can have.
    int context();

    /// The sum of the token losses times `scale`; tokens and targets I32 [batch, time], a target of −100 is left out.
    ///
    /// `scale` is a scalar, 1 / (number of targets of the whole batch), so that the losses of its parts add up. `random` null: no dropout.
    Value loss(GraphBuilder builder, Value tokens, Value targets, Value scale, @Nullable Randomness random);

    /// Logits [batch, time, vocabulary]; `mask` BOOL [batch, time] says which tokens may be seen, null: all.
    Value logits(GraphBuilder builder, Value tokens, @Nullable Value mask);

    /// One type per layer and kind of a key/value cache, with axis 1 of size `capacity` for the positions.
    List<CacheEntry> cache(int batch, int capacity);

    /// Continues sequences: tokens I32 [batch, n] at positions `position`, `position` + 1, …, over caches in the order
    /// of `cache`.
    Decoding decode(GraphBuilder builder, Value tokens, Value position, Value last, List<Value> caches);

    /// A named tensor of the cache, [batch, capacity, heads, head width].
    record CacheEntry(String name, Type type) {}

    /// Logits [batch, vocabulary] after token `last` of the n given, and the rows [batch, n, …] to be written to the
    /// caches at `position`.
    record Decoding(Value logits, List<Value> rows) {
        public Decoding {
            rows = List.copyOf(rows);
        }
    }

    /// Inputs `tokens`, `targets`, `scale` and, with `dropout`, `key`; output `loss`.
    default Graph lossGraph(int batch, int time, boolean dropout) {
        GraphBuilder builder = new GraphBuilder("loss");
        Value tokens = builder.input("tokens", Type.i32(batch, time));
        Value targets = builder.input("targets", Type.i32(batch, time));
        Value scale = builder.input("scale", new Type(DType.F32, Shape.SCALAR));
        Randomness random = dropout ? Randomness.input(builder) : null;
        builder.output("loss", loss(builder, tokens, targets, scale, random));
        return builder.build();
    }

    /// Input `tokens` and, if `masked`, `mask`; output `logits`.
    default Graph logitsGraph(int batch, int time, boolean masked) {
        GraphBuilder builder = new GraphBuilder("logits");
        Value tokens = builder.input("tokens", Type.i32(batch, time));
        Value mask = masked ? builder.input("mask", Type.bool(batch, time)) : null;
        builder.output("logits", logits(builder, tokens, mask));
        return builder.build();
    }

    /// Inputs `tokens` [batch, n], `position`, `last` and `cache.` + each entry's name; outputs `logits` and each
    /// entry's name.
    ///
    /// The caller writes rows 0 … m−1 of each output into its cache at `position`, m being the number of real tokens
    /// among the n. What lies beyond in the tokens and in the cache is not seen.
    default Graph decodeGraph(int batch, int n, int capacity) {
        GraphBuilder builder = new GraphBuilder("decode");
        Value tokens = builder.input("tokens", Type.i32(batch, n));
        Value position = builder.input("position", new Type(DType.I32, Shape.SCALAR));
        Value last = builder.input("last", new Type(DType.I32, Shape.SCALAR));
        List<CacheEntry> entries = cache(batch, capacity);
        List<Value> caches = new ArrayList<>();
        entries.forEach(entry -> caches.add(builder.input("cache." + entry.name(), entry.type())));
        Decoding decoding = decode(builder, tokens, position, last, caches);
        builder.output("logits", decoding.logits());
        for (int i = 0; i < entries.size(); i++) {
            builder.output(entries.get(i).name(), decoding.rows().get(i));
        }
        return builder.build();
    }
}
