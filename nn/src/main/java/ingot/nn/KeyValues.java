package ingot.nn;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.CompareKind;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.LanguageModel.CacheEntry;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// How the queries of a decoder meet keys and values: those of the whole sequence, or those a cache holds.
///
/// A window w > 0 hides all but the last w keys up to the query's own.
final class KeyValues {
    private KeyValues() {}

    /// Attention from queries to keys and values, all of the new tokens: [batch, time, heads, head width].
    interface Mixer {
        Value mix(Value q, Value k, Value v);
    }

    /// Over the whole sequence; `mask` BOOL [batch, time] says which keys may be seen.
    static Mixer whole(
            GraphBuilder b, @Nullable Value mask, int window, Attention.Options options, @Nullable Randomness random) {
        return (q, k, v) ->
                Attention.attention(b, q, k, v, mask(b, mask, q.shape().dim(1), window), options, random);
    }

    /// Over a cache of the past: the new keys and values take their places in it at `position`, then each query sees
    /// positions up to its own. What is hidden adds exact zeros, so the result has the bits of the whole sequence.
    ///
    /// Adds the new keys and values to `rows`.
    static Mixer cached(
            GraphBuilder b, Value position, Value keys, Value values, int window, double scale, List<Value> rows) {
        return (q, k, v) -> {
            rows.add(k);
            rows.add(v);
            Value seen = seen(b, position, q.shape().dim(1), keys.shape().dim(1), window);
            return Attention.attention(
                    b,
                    q,
                    placed(b, keys, k, position),
                    placed(b, values, v, position),
                    seen,
                    new Attention.Options(false, scale, 0),
                    null);
        };
    }

    /// `k.0`, `v.0`, `k.1`, … of [batch, capacity, heads, head width].
    static List<CacheEntry> cache(int layers, int batch, int capacity, int heads, int headWidth) {
        Type type = Type.f32(batch, capacity, heads, headWidth);
        List<CacheEntry> entries = new ArrayList<>();
        for (int i = 0; i < layers; i++) {
            entries.add(new CacheEntry("k." + i, type));
            entries.add(new CacheEntry("v." + i, type));
        }
        return entries;
    }

    private static @Nullable Value mask(GraphBuilder b, @Nullable Value mask, int time, int window) {
        Value given = mask == null ? null : b.reshape(mask, mask.shape().dim(0), 1, 1, time);
        if (window == 0 || window >= time) {
            return given;
        }
        Type index = new Type(DType.I32, Shape.of(1, 1, time, time));
        Value near = b.compare(CompareKind.GREATER, b.iota(index, 3), b.add(b.iota(index, 2), -window));
        return given == null ? near : and(b, near, given);
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

    /// BOOL [1, 1, n, capacity]: query i stands at `position` + i and sees what is not after it, nor before its window.
    private static Value seen(GraphBuilder b, Value position, int n, int capacity, int window) {
        Type index = new Type(DType.I32, Shape.of(1, 1, n, capacity));
        Value key = b.iota(index, 3);
        Value query = b.add(b.iota(index, 2), position);
        Value past = b.compare(CompareKind.LESS_EQUAL, key, query);
        return window == 0 ? past : and(b, past, b.compare(CompareKind.GREATER, key, b.add(query, -window)));
    }

    private static Value and(GraphBuilder b, Value x, Value y) {
        return b.binary(BinaryKind.AND, x, y);
    }
}
