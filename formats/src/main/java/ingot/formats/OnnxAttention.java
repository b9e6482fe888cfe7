package ingot.formats;

import static ingot.formats.OnnxOperator.one;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op.CompareKind;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.Softmax;
import java.util.List;
import java.util.Map;

/// Attention and rotary positions, which are operators of their own since opset 23.
final class OnnxAttention {
    private OnnxAttention() {}

    static void addTo(Map<String, OnnxOperator> t) {
        t.put("RotaryEmbedding", one(OnnxAttention::rotary));
        t.put("Attention", OnnxAttention::attention);
    }

    /// [batch, time, heads · width] → [batch, heads, time, width]; four axes stay.
    private static Value heads(GraphBuilder b, Value x, long heads) {
        if (x.shape().rank() == 4) {
            return x;
        }
        int n = Math.toIntExact(heads);
        if (n <= 0 || x.shape().rank() != 3 || x.shape().dim(2) % n != 0) {
            throw new IngotException("expected [batch, heads, time, width], or three axes whose last divides into " + n
                    + " heads, got " + x.shape());
        }
        Value split =
                b.reshape(x, x.shape().dim(0), x.shape().dim(1), n, x.shape().dim(2) / n);
        return b.transpose(split, 0, 2, 1, 3);
    }

    private static Value joined(GraphBuilder b, Value x) {
        return b.reshape(b.transpose(x, 0, 2, 1, 3), x.shape().dim(0), x.shape().dim(2), -1);
    }

    /// Turns pairs of channels by the angle of their position (Su et al. 2021): halves, or neighbours if `interleaved`.
    private static Value rotary(OnnxCall c) {
        GraphBuilder b = c.b();
        boolean joined = c.in(0).shape().rank() == 3;
        Value x = heads(b, c.in(0), c.integer("num_heads", 0)); // [batch, heads, time, width]
        int width = x.shape().dim(3);
        int given = Math.toIntExact(c.integer("rotary_embedding_dim", 0));
        int turned = given == 0 ? width : given;
        int half = turned / 2;
        Shape pairs = Shape.of(x.shape().dim(0), x.shape().dim(1), x.shape().dim(2), half);
        Value cosine = angles(c, 1, pairs);
        Value sine = angles(c, 2, pairs);
        Value part = b.slice(x, 3, 0, turned);
        boolean neighbours = c.flag("interleaved");
        Value split = neighbours
                ? b.transpose(b.reshape(part, pairs.dim(0), pairs.dim(1), pairs.dim(2), half, 2), 0, 1, 2, 4, 3)
                : b.reshape(part, pairs.dim(0), pairs.dim(1), pairs.dim(2), 2, half);
        Value first = b.reshape(b.slice(split, 3, 0, 1), pairs);
        Value second = b.reshape(b.slice(split, 3, 1, 2), pairs);
        Value real = b.subtract(b.multiply(cosine, first), b.multiply(sine, second));
        Value imaginary = b.add(b.multiply(sine, first), b.multiply(cosine, second));
        Value both = b.concatenate(List.of(real, imaginary), 3);
        if (neighbours) {
            Value apart = b.reshape(both, pairs.dim(0), pairs.dim(1), pairs.dim(2), 2, half);
            both = b.reshape(b.transpose(apart, 0, 1, 2, 4, 3), both.shape());
        }
        Value result = turned == width ? both : b.concatenate(List.of(both, b.slice(x, 3, turned, width)), 3);
        return joined ? joined(b, result) : result;
    }

    /// A table [positions, pairs] at the given positions, or [batch, time, pairs] as it is; for all heads.
    private static Value angles(OnnxCall c, int input, Shape pairs) {
        GraphBuilder b = c.b();
        Value table = c.in(input);
        Value perToken = c.has(3)
                ? b.gather(table, OnnxIndexing.index(b, c.in(3), table.shape().dim(0)), 0)
                : table;
        return b.broadcast(perToken, pairs, List.of(0, 2, 3));
    }

    /// softmax(q·kᵀ·scale, masked)·v: results, all keys and values with those of the past, and scores if they are asked
    /// for.
    private static List<Value> attention(OnnxCall c) {
        GraphBuilder b = c.b();
        boolean joined = c.in(0).shape().rank() == 3;
        long keyHeads = c.integer("kv_num_heads", 0);
        Value q = heads(b, c.in(0), c.integer("q_num_heads", 0));
        Value newKeys = heads(b, c.in(1), keyHeads);
        Value newValues = heads(b, c.in(2), keyHeads);
        int past = c.has(4) ? c.in(4).shape().dim(2) : 0;
        Value keys = c.has(4) ? b.concatenate(List.of(c.in(4), newKeys), 2) : newKeys;
        Value values = c.has(5) ? b.concatenate(List.of(c.in(5), newValues), 2) : newValues;
        int groups = q.shape().dim(1) / keys.shape().dim(1);
        Value k = repeated(b, keys, groups);
        Value v = repeated(b, values, groups);
        double scale = c.number("scale", 1 / Math.sqrt(q.shape().dim(3)));
        List<Integer> batch = List.of(0, 1);
        Value raw = b.multiply(b.dot(q, k, batch, batch, List.of(3), List.of(3)), scale); // [batch, heads, time, keys]
        Value masked = masked(c, raw, past);
        double cap = c.number("softcap", 0);
        Value capped = cap == 0 ? masked : b.multiply(b.tanh(b.multiply(masked, 1 / cap)), cap);
        Value weights = Softmax.softmax(b, capped);
        Value y = b.dot(weights, v, batch, batch, List.of(3), List.of(2));
        Value shown = List.of(raw, masked, capped, weights).get(Math.toIntExact(c.integer("qk_matmul_output_mode", 0)));
        return List.of(joined ? joined(b, y) : y, keys, values, shown);
    }

    /// Adds a floating mask, or lets a BOOL one choose; `is_causal` hides what comes after the query.
    private static Value masked(OnnxCall c, Value scores, int past) {
        GraphBuilder b = c.b();
        Value hidden = b.scalarLike(scores, Double.NEGATIVE_INFINITY);
        Value masked = scores;
        if (c.has(3)) {
            masked = c.in(3).dtype() == DType.BOOL ? b.select(c.in(3), scores, hidden) : b.add(scores, c.in(3));
        }
        if (c.flag("is_causal")) {
            Type type = new Type(DType.I32, scores.shape());
            Value seen = b.compare(CompareKind.LESS_EQUAL, b.iota(type, 3), b.add(b.iota(type, 2), b.constant(past)));
            masked = b.select(seen, masked, hidden);
        }
        return masked;
    }

    /// Each key head serves `groups` query heads.
    private static Value repeated(GraphBuilder b, Value x, int groups) {
        int[] d = x.shape().dims();
        return groups == 1
                ? x
                : b.reshape(
                        b.broadcast(x, Shape.of(d[0], d[1], groups, d[2], d[3]), List.of(0, 1, 3, 4)),
                        d[0],
                        d[1] * groups,
                        d[2],
                        d[3]);
    }
}
