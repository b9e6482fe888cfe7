package ingot.formats;

import static ingot.formats.OnnxOperator.one;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/// Boxes in images: suppression of overlaps, pooling of regions, sampling at places of a grid; and counting n-grams.
final class OnnxDetection {
    private OnnxDetection() {}

    static void addTo(Map<String, OnnxOperator> t) {
        t.put("NonMaxSuppression", one(OnnxDetection::suppress));
        t.put("RoiAlign", one(OnnxRegions::align));
        t.put("GridSample", one(OnnxRegions::sample));
        t.put("AffineGrid", one(OnnxRegions::grid));
        t.put("TfIdfVectorizer", one(OnnxDetection::frequencies));
    }

    // ---- non-maximum suppression, of boxes known at import: the number of results is a shape

    /// Boxes [batch, n, 4] and scores [batch, classes, n] → rows (batch, class, box).
    private static Value suppress(OnnxCall c) {
        Tensor boxes = c.known(0);
        Tensor scores = c.known(1);
        long most = c.has(2) ? c.longs(2).getFirst() : 0;
        float overlap = c.has(3) ? c.floats(3).getFirst() : 0;
        float least = c.has(4) ? c.floats(4).getFirst() : Float.NEGATIVE_INFINITY;
        boolean centred = c.flag("center_point_box");
        int n = boxes.shape().dim(1);
        int classes = scores.shape().dim(1);
        List<Long> rows = new ArrayList<>();
        for (int batch = 0; batch < boxes.shape().dim(0); batch++) {
            for (int k = 0; k < classes; k++) {
                int first = (batch * classes + k) * n;
                List<Integer> order = IntStream.range(0, n)
                        .filter(i -> scores.getFloat(first + i) > least)
                        .boxed()
                        .sorted((i, j) -> Float.compare(scores.getFloat(first + j), scores.getFloat(first + i)))
                        .toList();
                List<double[]> chosen = new ArrayList<>();
                for (int i : order) {
                    double[] box = box(boxes, batch * n + i, centred);
                    if (chosen.size() < most && chosen.stream().noneMatch(other -> shared(box, other) > overlap)) {
                        chosen.add(box);
                        rows.addAll(List.of((long) batch, (long) k, (long) i));
                    }
                }
            }
        }
        Value flat = c.ints(rows.stream().mapToLong(Long::longValue).toArray());
        return c.b().reshape(flat, rows.size() / 3, 3);
    }

    /// Corners (y₀, x₀, y₁, x₁) in ascending order.
    private static double[] box(Tensor boxes, int i, boolean centred) {
        double a = boxes.getFloat(i * 4L);
        double b = boxes.getFloat(i * 4L + 1);
        double c = boxes.getFloat(i * 4L + 2);
        double d = boxes.getFloat(i * 4L + 3);
        return centred
                ? new double[] {b - d / 2, a - c / 2, b + d / 2, a + c / 2}
                : new double[] {Math.min(a, c), Math.min(b, d), Math.max(a, c), Math.max(b, d)};
    }

    /// The intersection of two boxes over their union.
    private static double shared(double[] a, double[] b) {
        double height = Math.max(0, Math.min(a[2], b[2]) - Math.max(a[0], b[0]));
        double width = Math.max(0, Math.min(a[3], b[3]) - Math.max(a[1], b[1]));
        double both = height * width;
        double all = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both;
        return all <= 0 ? 0 : both / all;
    }

    // ---- n-grams

    /// Counts of the pool's n-grams in rows of numbers, with gaps up to `max_skip_count`.
    private static Value frequencies(OnnxCall c) {
        if (c.hasAttribute("pool_strings")) {
            throw c.unsupported("a pool of strings");
        }
        GraphBuilder b = c.b();
        List<Long> pool = c.ints("pool_int64s");
        List<Long> starts = c.ints("ngram_counts");
        List<Long> columns = c.ints("ngram_indexes");
        List<Float> weights = c.numbers("weights");
        int shortest = Math.toIntExact(c.integer("min_gram_length", 1));
        int longest = Math.toIntExact(c.integer("max_gram_length", 1));
        int skips = Math.toIntExact(c.integer("max_skip_count", 0));
        String mode = c.text("mode", "TF");
        boolean flat = c.in(0).shape().rank() == 1;
        Value x = b.convert(flat ? b.reshape(c.in(0), 1, -1) : c.in(0), DType.I32); // [rows, length]
        int rows = x.shape().dim(0);
        int width = Math.toIntExact(
                columns.stream().mapToLong(Long::longValue).max().orElse(-1) + 1);
        Value[] counts = new Value[width];
        java.util.Arrays.fill(counts, b.broadcast(b.constant(0f), Shape.of(rows)));
        int number = 0;
        for (int size = 1; size <= starts.size(); size++) {
            int from = Math.toIntExact(starts.get(size - 1));
            int to = size < starts.size() ? Math.toIntExact(starts.get(size)) : pool.size();
            for (int at = from; at + size <= to; at += size, number++) {
                if (size >= shortest && size <= longest) {
                    int column = Math.toIntExact(columns.get(number));
                    Value found = occurrences(b, x, pool.subList(at, at + size), size == 1 ? 0 : skips);
                    double weight = weights.isEmpty() || mode.equals("TF") ? 1 : weights.get(number);
                    Value value = mode.equals("TF") || mode.equals("TFIDF")
                            ? b.multiply(found, weight)
                            : b.multiply(b.min(found, b.constant(1f)), weight);
                    counts[column] = b.add(counts[column], value);
                }
            }
        }
        List<Value> cells = new ArrayList<>();
        for (Value count : counts) {
            cells.add(b.reshape(count, rows, 1));
        }
        Value all = b.concatenate(cells, 1);
        return flat ? b.reshape(all, width) : all;
    }

    /// How often a sequence of numbers occurs in each row, with equal gaps of 0 … `skips` between them: F32 [rows].
    private static Value occurrences(GraphBuilder b, Value x, List<Long> gram, int skips) {
        int length = x.shape().dim(1);
        Value total = b.broadcast(b.constant(0f), Shape.of(x.shape().dim(0)));
        for (int gap = 1; gap <= skips + 1; gap++) {
            int places = length - (gram.size() - 1) * gap;
            if (places <= 0) {
                break;
            }
            Value all = null;
            for (int i = 0; i < gram.size(); i++) {
                Value part = b.slice(x, 1, i * gap, i * gap + places);
                Value same = b.compare(CompareKind.EQUAL, part, b.constant(Math.toIntExact(gram.get(i))));
                all = all == null ? same : b.binary(BinaryKind.AND, all, same);
            }
            if (all == null) {
                throw new IngotException("an empty n-gram");
            }
            total = b.add(total, b.reduce(ReduceKind.SUM, b.convert(all, DType.F32), 1));
        }
        return total;
    }
}
