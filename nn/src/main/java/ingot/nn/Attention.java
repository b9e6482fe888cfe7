package ingot.nn;

import ingot.ir.DType;
import ingot.ir.Function;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Scaled dot-product attention (Vaswani et al. 2017) with grouped key/value heads (Ainslie et al. 2023).
public final class Attention {
    /// The score of a key that is masked out: finite, so that a row without any key gives a mean and not a NaN.
    private static final double MASKED = -Float.MAX_VALUE;

    /// Queries per block: enough that packing the keys for each block is cheap, few enough to leave out keys.
    private static final int BLOCK = 128;

    /// `causal`: query t of T sees keys s ≤ t + (S − T). `dropout` needs `random`.
    public record Options(boolean causal, double scale, double dropout) {
        public static Options of(boolean causal, int headWidth) {
            return new Options(causal, 1 / Math.sqrt(headWidth), 0);
        }
    }

    private Attention() {}

    /// softmax(q·kᵀ·scale, masked)·v per head.
    ///
    /// q [B, T, H, D], k and v [B, S, K, D] where K divides H: query head h reads key head h / (H / K). `mask` is [B or
    /// 1, H or 1, T or 1, S], BOOL (true = may be seen) or F32 (added to the scores). Result [B, T, H, D].
    public static Value attention(
            GraphBuilder b,
            Value q,
            Value k,
            Value v,
            @Nullable Value mask,
            Options options,
            @Nullable Randomness random) {
        Heads heads = Heads.of(q, k, v, mask);
        double dropout = random == null ? 0 : options.dropout();
        int stream = dropout > 0 && random != null ? random.nextStream() : 0;
        List<Value> operands = new ArrayList<>(List.of(q, k, v));
        if (mask != null) {
            operands.add(mask);
        }
        if (dropout > 0 && random != null) {
            operands.add(random.key());
        }
        Meaning meaning = new Meaning(heads, options, mask != null, dropout, stream);
        List<Type> types = operands.stream().map(Value::type).toList();
        List<Type> backward = new ArrayList<>(types);
        backward.add(q.type());
        backward.add(q.type());
        Map<String, Double> attributes = Map.of(
                "causal",
                options.causal() ? 1.0 : 0.0,
                "scale",
                options.scale(),
                "masked",
                mask == null ? 0.0 : 1.0,
                "dropout",
                dropout);
        Function gradient = Definition.of("attentionGradient", attributes, backward, null, meaning::gradient);
        Function function = Definition.of("attention", attributes, types, gradient, meaning::forward);
        return b.call(function, operands).getFirst();
    }

    /// Sizes; `groups` query heads share a key head.
    private record Heads(int batch, int queries, int keys, int keyHeads, int groups, int width) {
        static Heads of(Value q, Value k, Value v, @Nullable Value mask) {
            Shape s = q.shape();
            Shape t = k.shape();
            boolean fits = s.rank() == 4
                    && t.rank() == 4
                    && t.equals(v.shape())
                    && s.dim(0) == t.dim(0)
                    && s.dim(3) == t.dim(3)
                    && t.dim(2) > 0
                    && s.dim(2) % t.dim(2) == 0;
            if (!fits) {
                throw new IngotException(
                        "attention: expected q [B, T, H, D] and k, v [B, S, K, D] with K dividing H, got " + s + " at "
                                + q + ", " + t + " at " + k + ", " + v.shape() + " at " + v);
            }
            if (mask != null) {
                Shape m = mask.shape();
                boolean masks = m.rank() == 4
                        && (m.dim(0) == 1 || m.dim(0) == s.dim(0))
                        && (m.dim(1) == 1 || m.dim(1) == s.dim(2))
                        && (m.dim(2) == 1 || m.dim(2) == s.dim(1))
                        && m.dim(3) == t.dim(1);
                if (!masks || (mask.dtype() != DType.BOOL && mask.dtype() != q.dtype())) {
                    throw new IngotException(
                            "attention: mask expected bool or " + q.dtype().text() + " [" + s.dim(0)
                                    + " or 1, " + s.dim(2) + " or 1, " + s.dim(1) + " or 1, " + t.dim(1) + "], got "
                                    + mask.type()
                                    + " at " + mask);
                }
            }
            return new Heads(s.dim(0), s.dim(1), t.dim(1), t.dim(2), s.dim(2) / t.dim(2), s.dim(3));
        }
    }

    /// Queries from `from` to before `to`, and the first `keys` keys, which are all that they see.
    private record Block(int from, int to, int keys) {
        boolean isWhole(Heads heads) {
            return to - from == heads.queries() && keys == heads.keys();
        }
    }

    /// The definition and its gradient. Scores are [B, H, T, S]; with groups [B, K, T, G, S], what the contraction
    /// gives without a transpose.
    ///
    /// Long sequences go in blocks of queries, one after the other, so that scores take memory for one block; a causal
    /// block leaves out the keys that none of its queries sees. Sums over queries are chains that the next block takes
    /// up, so every number is the same chain as without blocks, but for terms that are 0. (Rabe and Staats 2021 have
    /// the linear memory, by another order of sums.)
    private record Meaning(Heads heads, Options options, boolean masked, double dropout, int stream) {
        List<Value> forward(GraphBuilder g, List<Value> in) {
            List<Value> results = new ArrayList<>();
            for (Block block : blocks(in)) {
                Value p = dropped(g, in, Softmax.probabilities(g, scores(g, in, block)));
                results.add(joined(g, mix(g, p, keys(g, in.get(2), block)), block));
            }
            return List.of(g.concatenate(results, 1));
        }

        /// With o = p·v: dv = pᵀ·do, dp = do·vᵀ, ds = p·(dp − Σ do·o)·scale, dq = ds·k, dk = dsᵀ·q (Dao et al. 2022,
        /// appendix B).
        List<Value> gradient(GraphBuilder g, List<Value> in) {
            Value result = in.get(in.size() - 2);
            Value dResult = in.getLast();
            Value inner = split(g, g.sum(g.multiply(dResult, result), -1)); // [B, T, H] or [B, T, K, G]
            List<Value> dq = new ArrayList<>();
            @Nullable Value dk = null;
            @Nullable Value dv = null;
            @Nullable Value dMask = null;
            for (Block block : blocks(in)) {
                Value q = split(g, queries(g, in.get(0), block));
                Value k = keys(g, in.get(1), block);
                Value v = keys(g, in.get(2), block);
                Value dOut = split(g, queries(g, dResult, block)); // [B, T, H, D] or [B, T, K, G, D]
                Value p = Softmax.probabilities(g, scores(g, in, block));
                dv = keySide(g, dropped(g, in, p), dOut, dv);
                Value dp = dropped(g, in, perKey(g, dOut, v));
                Value ofRows = headsFirst(g, queries(g, inner, block));
                Value ds = g.multiply(p, g.subtract(dp, g.broadcast(ofRows, p.shape(), outer())));
                Value scaled = g.multiply(ds, options.scale());
                dq.add(joined(g, mix(g, scaled, k), block));
                dk = keySide(g, scaled, q, dk);
                if (isTrained(in)) {
                    dMask = ofMask(g, ds, in.get(3).shape());
                }
            }
            List<Value> cotangents =
                    new ArrayList<>(List.of(g.concatenate(dq, 1), keysSecond(g, dk), keysSecond(g, dv)));
            if (dMask != null) {
                cotangents.add(dMask);
            }
            return cotangents;
        }

        private boolean isTrained(List<Value> in) {
            return masked && in.get(3).dtype().isFloating();
        }

        /// One block, unless the sequence is long and blocks divide it (a length to be exported as open is a prime).
        /// Dropout and the gradient of a mask are defined on the whole.
        private List<Block> blocks(List<Value> in) {
            boolean cut = heads.queries() % BLOCK == 0
                    && heads.queries() >= (options.causal() ? 2 : 8) * BLOCK
                    && heads.keys() >= heads.queries()
                    && dropout == 0
                    && !isTrained(in);
            if (!cut) {
                return List.of(new Block(0, heads.queries(), heads.keys()));
            }
            List<Block> blocks = new ArrayList<>();
            for (int from = 0; from < heads.queries(); from += BLOCK) {
                int to = from + BLOCK;
                blocks.add(new Block(from, to, options.causal() ? to + heads.keys() - heads.queries() : heads.keys()));
            }
            return blocks;
        }

        private Value queries(GraphBuilder g, Value x, Block block) {
            return block.isWhole(heads) ? x : g.slice(x, 1, block.from(), block.to());
        }

        private Value keys(GraphBuilder g, Value x, Block block) {
            return block.isWhole(heads) ? x : g.slice(x, 1, 0, block.keys());
        }

        private Value scores(GraphBuilder g, List<Value> in, Block block) {
            Value q = split(g, queries(g, in.get(0), block));
            Value scores = g.multiply(perKey(g, q, keys(g, in.get(1), block)), options.scale());
            if (masked) {
                Value mask = in.get(3);
                if (!block.isWhole(heads)) {
                    Value rows = mask.shape().dim(2) == 1 ? mask : g.slice(mask, 2, block.from(), block.to());
                    mask = g.slice(rows, 3, 0, block.keys());
                }
                Value spread = spread(g, mask, scores.shape());
                scores = mask.dtype() == DType.BOOL
                        ? g.select(spread, scores, g.scalarLike(scores, MASKED))
                        : g.add(scores, spread);
            }
            if (options.causal()) {
                Type index = new Type(DType.I32, scores.shape());
                Value query = g.iota(index, 2);
                Value key = g.iota(index, scores.shape().rank() - 1);
                int before = block.from() + heads.keys() - heads.queries();
                Value last = before == 0 ? query : g.add(query, before);
                Value seen = g.compare(CompareKind.LESS_EQUAL, key, last);
                scores = g.select(seen, scores, g.scalarLike(scores, MASKED));
            }
            return scores;
        }

        private boolean grouped() {
            return heads.groups() > 1;
        }

        /// [B, T, H, …] → [B, T, K, G, …].
        private Value split(GraphBuilder g, Value x) {
            if (!grouped()) {
                return x;
            }
            Shape shape = x.shape();
            return shape.rank() == 3
                    ? g.reshape(x, shape.dim(0), shape.dim(1), heads.keyHeads(), heads.groups())
                    : g.reshape(x, shape.dim(0), shape.dim(1), heads.keyHeads(), heads.groups(), shape.dim(3));
        }

        /// x [B, T, H, D] · k [B, S, K, D] → [B, H, T, S]: the sum over D.
        private Value perKey(GraphBuilder g, Value x, Value k) {
            return g.dot(x, k, List.of(0, 2), List.of(0, 2), List.of(grouped() ? 4 : 3), List.of(3));
        }

        /// p [B, H, T, S] · v [B, S, K, D] → [B, H, T, D]: the sum over keys.
        private Value mix(GraphBuilder g, Value p, Value v) {
            return g.dot(p, v, List.of(0, 1), List.of(0, 2), List.of(grouped() ? 4 : 3), List.of(1));
        }

        /// p [B, H, T, S] · x [B, T, H, D] → [B, K, S, D]: the sum over queries and the heads that share a key head,
        /// which goes on from that of the queries `before`, if these saw fewer keys then with 0 for the others.
        private Value keySide(GraphBuilder g, Value p, Value x, @Nullable Value before) {
            List<Integer> ofP = grouped() ? List.of(2, 3) : List.of(2);
            List<Integer> ofX = grouped() ? List.of(1, 3) : List.of(1);
            @Nullable Value start = before;
            if (before != null) {
                int more = p.shape().dim(-1) - before.shape().dim(2);
                Shape zeros = Shape.of(heads.batch(), heads.keyHeads(), more, heads.width());
                start = more == 0
                        ? before
                        : g.concatenate(List.of(before, g.broadcast(g.scalarLike(before, 0), zeros)), 2);
            }
            return g.add(new Op.Dot(p, x, List.of(0, 1), List.of(0, 2), ofP, ofX, 1, start));
        }

        /// [B, K, S, D] → [B, S, K, D].
        private static Value keysSecond(GraphBuilder g, @Nullable Value x) {
            if (x == null) {
                throw new IllegalStateException("attention: no queries");
            }
            return g.transpose(x, 0, 2, 1, 3);
        }

        /// [B, H, T, D] or [B, K, T, G, D] → [B, T, H, D].
        private Value joined(GraphBuilder g, Value x, Block block) {
            return grouped()
                    ? g.reshape(
                            g.transpose(x, 0, 2, 1, 3, 4),
                            heads.batch(),
                            block.to() - block.from(),
                            heads.keyHeads() * heads.groups(),
                            heads.width())
                    : g.transpose(x, 0, 2, 1, 3);
        }

        /// [B, T, H] or [B, T, K, G] → the scores' order without the keys.
        private Value headsFirst(GraphBuilder g, Value x) {
            return grouped() ? g.transpose(x, 0, 2, 1, 3) : g.transpose(x, 0, 2, 1);
        }

        private List<Integer> outer() {
            return grouped() ? List.of(0, 1, 2, 3) : List.of(0, 1, 2);
        }

        /// [B or 1, H or 1, T or 1, S] → the shape of the scores.
        private Value spread(GraphBuilder g, Value mask, Shape scores) {
            Shape m = mask.shape();
            if (!grouped()) {
                return g.broadcast(mask, scores);
            }
            boolean perHead = m.dim(1) > 1;
            Value split = g.reshape(
                    mask, m.dim(0), perHead ? heads.keyHeads() : 1, perHead ? heads.groups() : 1, m.dim(2), m.dim(3));
            return g.broadcast(g.transpose(split, 0, 1, 3, 2, 4), scores);
        }

        /// The transpose of `spread`: sums over what was repeated.
        private Value ofMask(GraphBuilder g, Value ds, Shape mask) {
            Value perHead = grouped()
                    ? g.reshape(
                            g.transpose(ds, 0, 1, 3, 2, 4),
                            heads.batch(),
                            heads.keyHeads() * heads.groups(),
                            heads.queries(),
                            heads.keys())
                    : ds; // [B, H, T, S]
            int[] repeated = java.util.stream.IntStream.range(0, 3)
                    .filter(i -> mask.dim(i) == 1 && perHead.shape().dim(i) > 1)
                    .toArray();
            return repeated.length == 0 ? perHead : g.reduceKeep(ReduceKind.SUM, perHead, repeated);
        }

        private Value dropped(GraphBuilder g, List<Value> in, Value p) {
            if (dropout == 0) {
                return p;
            }
            Value key = in.get(masked ? 4 : 3);
            Value keep = Activations.keep(g, key, stream, p.shape(), dropout, heads.batch());
            return g.select(keep, g.multiply(p, 1 / (1 - dropout)), g.scalarLike(p, 0));
        }
    }
}
