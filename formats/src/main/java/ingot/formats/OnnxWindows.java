package ingot.formats;

import static ingot.formats.OnnxOperator.one;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Convolution and pooling over [batch, channels, spatial…].
final class OnnxWindows {
    private OnnxWindows() {}

    static void addTo(Map<String, OnnxOperator> t) {
        t.put("Conv", one(c -> convolution(c, c.in(0), c.in(1), c.optional(2))));
        t.put("ConvTranspose", one(OnnxWindows::transposed));
        t.put("MaxPool", OnnxWindows::maxPool);
        t.put("AveragePool", one(OnnxWindows::averagePool));
        t.put("LpPool", one(OnnxWindows::normPool));
        t.put("GlobalAveragePool", one(c -> {
            long count = IntStream.of(spatial(c.in(0)))
                    .mapToLong(c.in(0).shape()::dim)
                    .reduce(1, (a, b) -> a * b);
            return c.b().multiply(c.b().reduceKeep(ReduceKind.SUM, c.in(0), spatial(c.in(0))), 1.0 / count);
        }));
        t.put("GlobalMaxPool", one(c -> c.b().reduceKeep(ReduceKind.MAX, c.in(0), spatial(c.in(0)))));
        t.put("GlobalLpPool", one(c -> {
            double p = c.integer("p", 2);
            Value sum = c.b().reduceKeep(
                            ReduceKind.SUM, power(c.b(), c.b().unary(UnaryKind.ABS, c.in(0)), p), spatial(c.in(0)));
            return power(c.b(), sum, 1 / p);
        }));
        t.put("MaxUnpool", one(OnnxWindows::maxUnpool));
        t.put("Col2Im", one(OnnxWindows::columns));
    }

    private static int[] spatial(Value x) {
        return IntStream.range(2, x.shape().rank()).toArray();
    }

    static Value power(GraphBuilder b, Value x, double p) {
        if (p == 1) {
            return x;
        } else if (p == 2) {
            return b.multiply(x, x);
        } else if (p == 0.5) {
            return b.sqrt(x);
        }
        return b.binary(BinaryKind.POWER, x, b.scalarLike(x, p));
    }

    /// How windows lie over the spatial axes.
    record Places(List<Integer> size, List<Integer> strides, List<Integer> dilations, int[] low, int[] high) {
        /// With the batch and channels in front, for the pooling ops.
        Op.Window overAll() {
            return new Op.Window(
                    front(strides, 1),
                    front(boxed(low), 0),
                    front(boxed(high), 0),
                    front(ones(), 1),
                    front(dilations, 1));
        }

        List<Integer> sizeOverAll() {
            return front(size, 1);
        }

        Op.Window window() {
            return new Op.Window(strides, boxed(low), boxed(high), ones(), dilations);
        }

        private List<Integer> ones() {
            return Collections.nCopies(size.size(), 1);
        }

        private static List<Integer> front(List<Integer> spatial, int value) {
            List<Integer> all = new ArrayList<>(List.of(value, value));
            all.addAll(spatial);
            return all;
        }

        private static List<Integer> boxed(int[] values) {
            return IntStream.of(values).boxed().toList();
        }
    }

    private static Places places(OnnxCall c, Shape x, List<Integer> size) {
        int n = x.rank() - 2;
        List<Integer> strides = c.ints("strides", n, 1);
        List<Integer> dilations = c.ints("dilations", n, 1);
        int[] low = new int[n];
        int[] high = new int[n];
        String auto = c.text("auto_pad", "NOTSET");
        List<Integer> pads = c.ints("pads", 2 * n, 0);
        for (int i = 0; i < n; i++) {
            int reach = (size.get(i) - 1) * dilations.get(i) + 1;
            switch (auto) {
                case "NOTSET", "" -> {
                    low[i] = pads.get(i);
                    high[i] = pads.get(i + n);
                }
                case "VALID" -> {}
                case "SAME_UPPER", "SAME_LOWER" -> {
                    int out = (x.dim(i + 2) + strides.get(i) - 1) / strides.get(i);
                    int total = Math.max(0, (out - 1) * strides.get(i) + reach - x.dim(i + 2));
                    low[i] = auto.equals("SAME_UPPER") ? total / 2 : total - total / 2;
                    high[i] = total - low[i];
                }
                default -> throw new IngotException("auto_pad " + auto + " is not known");
            }
        }
        return new Places(size, strides, dilations, low, high);
    }

    static Value convolution(OnnxCall c, Value x, Value kernel, @Nullable Value bias) {
        GraphBuilder b = c.b();
        List<Integer> dims = OnnxShapes.dims(kernel);
        Places places = places(c, x.shape(), dims.subList(2, dims.size()));
        int groups = Math.toIntExact(c.integer("group", 1));
        Value y = b.add(new Op.Convolution(x, kernel, places.window(), groups, 1, 1));
        return bias == null ? y : b.add(y, b.broadcast(bias, y.shape(), List.of(1)));
    }

    /// The gradient of a convolution by its input: a convolution over the input with gaps of the stride, with the
    /// kernel mirrored and its channels exchanged.
    private static Value transposed(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        Value w = c.in(1); // [in, out / groups, window…]
        int n = x.shape().rank() - 2;
        int groups = Math.toIntExact(c.integer("group", 1));
        int[] k = w.shape().dims();
        List<Integer> strides = c.ints("strides", n, 1);
        List<Integer> dilations = c.ints("dilations", n, 1);
        List<Integer> extra = c.ints("output_padding", n, 0);
        int[] low = new int[n];
        int[] high = new int[n];
        int[] cut = new int[n];
        for (int i = 0; i < n; i++) {
            int reach = (k[i + 2] - 1) * dilations.get(i) + 1;
            int full = strides.get(i) * (x.shape().dim(i + 2) - 1) + reach + extra.get(i);
            int[] pads = outputPads(c, i, n, full, strides.get(i) * x.shape().dim(i + 2));
            low[i] = reach - 1 - pads[0];
            high[i] = reach - 1 - pads[1] + extra.get(i);
            cut[i] = 1;
        }
        int[] order = IntStream.concat(IntStream.of(0, 2, 1), IntStream.range(3, n + 3))
                .toArray();
        int[] split = new int[n + 3];
        split[0] = groups;
        split[1] = k[0] / groups;
        split[2] = k[1];
        System.arraycopy(k, 2, split, 3, n);
        int[] joined = k.clone();
        joined[0] = groups * k[1];
        joined[1] = k[0] / groups;
        Value exchanged = b.reshape(b.transpose(b.reshape(w, split), order), joined); // [out, in / groups, window…]
        Value mirrored = b.add(
                new Op.Reverse(exchanged, IntStream.range(2, n + 2).boxed().toList()));
        Op.Window window = new Op.Window(
                IntStream.of(cut).boxed().toList(),
                IntStream.of(low).boxed().toList(),
                IntStream.of(high).boxed().toList(),
                strides,
                dilations);
        Value y = b.add(new Op.Convolution(x, mirrored, window, groups, 1, 1));
        return c.has(2) ? b.add(y, b.broadcast(c.in(2), y.shape(), List.of(1))) : y;
    }

    /// What is cut off before and after a transposed convolution whose whole result has `full` places.
    private static int[] outputPads(OnnxCall c, int i, int n, int full, int same) {
        String auto = c.text("auto_pad", "NOTSET");
        List<Long> shape = c.ints("output_shape");
        if (!shape.isEmpty() || auto.startsWith("SAME")) {
            int wanted = shape.isEmpty() ? same : Math.toIntExact(shape.get(shape.size() - n + i));
            int total = full - wanted;
            int half = Math.floorDiv(total, 2);
            return auto.equals("SAME_UPPER") ? new int[] {half, total - half} : new int[] {total - half, half};
        }
        List<Integer> pads = c.ints("pads", 2 * n, 0);
        return new int[] {pads.get(i), pads.get(i + n)};
    }

    // ---- pooling

    private static Places pooling(OnnxCall c) {
        Shape x = c.in(0).shape();
        int n = x.rank() - 2;
        Places places = places(c, x, c.ints("kernel_shape", n, 1));
        if (c.flag("ceil_mode")) {
            for (int i = 0; i < n; i++) {
                int stride = places.strides().get(i);
                int reach = (places.size().get(i) - 1) * places.dilations().get(i) + 1;
                int room = x.dim(i + 2) + places.low()[i] + places.high()[i] - reach;
                int out = (room + stride - 1) / stride + 1;
                // a window that begins in the padding after the end does not count
                if ((out - 1) * stride >= x.dim(i + 2) + places.low()[i]) {
                    out--;
                }
                places.high()[i] += Math.max(0, (out - 1) * stride - room);
            }
        }
        return places;
    }

    private static Value windows(GraphBuilder b, ReduceKind kind, Value x, Places places) {
        return b.add(new Op.ReduceWindow(kind, x, places.sizeOverAll(), places.overAll()));
    }

    private static List<Value> maxPool(OnnxCall c) {
        Places places = pooling(c);
        Value max = windows(c.b(), ReduceKind.MAX, c.in(0), places);
        return c.wants(1) ? List.of(max, maxPlaces(c, places, max)) : List.of(max);
    }

    /// For each window the flat place of its first largest element, by trying all window positions from the last.
    private static Value maxPlaces(OnnxCall c, Places places, Value max) {
        GraphBuilder b = c.b();
        Value x = b.convert(c.in(0), DType.F32);
        Value largest = b.convert(max, DType.F32);
        int rank = x.shape().rank();
        Value numbers = b.constant(numbers(x.shape(), c.flag("storage_order")));
        Value best = b.broadcast(b.constant(0), max.shape());
        List<Integer> size = places.size();
        int positions = size.stream().reduce(1, Math::multiplyExact);
        for (int p = positions - 1; p >= 0; p--) {
            int[] offset = new int[rank];
            for (int i = size.size() - 1, rest = p; i >= 0; rest /= size.get(i), i--) {
                offset[i + 2] = rest % size.get(i) * places.dilations().get(i);
            }
            Value element = at(b, x, b.scalarLike(x, Double.NEGATIVE_INFINITY), places, offset, max.shape());
            Value number = at(b, numbers, b.constant(-1), places, offset, max.shape());
            Value isMax = b.binary(
                    BinaryKind.AND,
                    b.compare(CompareKind.EQUAL, element, largest),
                    b.compare(CompareKind.GREATER_EQUAL, number, b.constant(0)));
            best = b.select(isMax, number, best);
        }
        return b.convert(best, DType.I64);
    }

    /// Flat places of all elements; column-major within the last two axes if the node asks for it.
    private static Tensor numbers(Shape shape, boolean columns) {
        int n = Math.toIntExact(shape.elements());
        int[] numbers = IntStream.range(0, n).toArray();
        if (columns && shape.rank() >= 4) {
            int h = shape.dim(-2);
            int w = shape.dim(-1);
            for (int i = 0; i < n; i++) {
                int inPlane = i % (h * w);
                numbers[i] = i - inPlane + inPlane % w * h + inPlane / w;
            }
        }
        return Tensor.of(shape, numbers);
    }

    /// The elements at one window position, for all windows.
    private static Value at(GraphBuilder b, Value x, Value padding, Places places, int[] offset, Shape out) {
        int rank = x.shape().rank();
        int[] low = new int[rank];
        int[] high = new int[rank];
        int[] to = new int[rank];
        int[] by = new int[rank];
        for (int i = 0; i < rank; i++) {
            low[i] = i < 2 ? 0 : places.low()[i - 2];
            by[i] = i < 2 ? 1 : places.strides().get(i - 2);
            to[i] = offset[i] + (out.dim(i) - 1) * by[i] + 1;
            high[i] = Math.max(0, to[i] - low[i] - x.shape().dim(i));
        }
        return OnnxShapes.cut(b, OnnxPad.constant(b, x, padding, low, high), offset, to, by);
    }

    private static Value averagePool(OnnxCall c) {
        GraphBuilder b = c.b();
        Places places = pooling(c);
        Value x = c.in(0);
        Value sum = windows(b, ReduceKind.SUM, x, places);
        Tensor counts = counts(c, places, sum.shape());
        return b.divide(sum, b.broadcast(b.constant(counts), sum.shape()));
    }

    /// Elements of each window: those inside of the input; with `count_include_pad` also those in the padding of the
    /// node, but not in what rounding up has added.
    private static Tensor counts(OnnxCall c, Places places, Shape out) {
        int n = out.rank() - 2;
        boolean padded = c.flag("count_include_pad");
        List<Integer> pads = c.ints("pads", 2 * n, 0);
        boolean explicit = c.text("auto_pad", "NOTSET").equals("NOTSET");
        int[] dims = out.dims();
        dims[0] = 1;
        dims[1] = 1;
        Tensor counts = Tensor.zeros(new Type(DType.F32, Shape.of(dims)));
        for (int p = 0; p < counts.shape().elements(); p++) {
            int count = 1;
            for (int i = n - 1, rest = p; i >= 0; rest /= dims[i + 2], i--) {
                int size = c.in(0).shape().dim(i + 2);
                int from = padded ? -places.low()[i] : 0;
                int end = size + (padded ? explicit ? pads.get(i + n) : places.high()[i] : 0);
                int start = rest % dims[i + 2] * places.strides().get(i) - places.low()[i];
                int inside = 0;
                for (int k = 0; k < places.size().get(i); k++) {
                    int at = start + k * places.dilations().get(i);
                    inside += at >= from && at < end ? 1 : 0;
                }
                count *= inside;
            }
            counts.setFloat(p, count);
        }
        return counts;
    }

    /// (Σ |x|ᵖ)^(1/p).
    private static Value normPool(OnnxCall c) {
        double p = c.integer("p", 2);
        Value powers = power(c.b(), c.b().unary(UnaryKind.ABS, c.in(0)), p);
        return power(c.b(), windows(c.b(), ReduceKind.SUM, powers, pooling(c)), 1 / p);
    }

    private static Value maxUnpool(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        int[] inferred = x.shape().dims();
        int n = inferred.length - 2;
        List<Integer> size = c.ints("kernel_shape", n, 1);
        List<Integer> strides = c.ints("strides", n, 1);
        List<Integer> pads = c.ints("pads", 2 * n, 0);
        for (int i = 0; i < n; i++) {
            inferred[i + 2] = (inferred[i + 2] - 1) * strides.get(i) + size.get(i) - pads.get(i) - pads.get(i + n);
        }
        Shape shape = c.has(2) ? OnnxShapes.shape(c.longs(2)) : Shape.of(inferred);
        // indices count in the inferred shape; a larger wanted shape is filled from its first places on
        Value at = b.convert(b.reshape(c.in(1), Math.toIntExact(x.shape().elements())), DType.I32);
        int[] wanted = shape.dims();
        Value moved = b.constant(0);
        long[] strides1 = Shape.of(inferred).strides();
        for (int i = 0; i < wanted.length; i++) {
            Value place = b.binary(
                    BinaryKind.REMAINDER, b.divide(at, b.constant((int) strides1[i])), b.constant(inferred[i]));
            moved = b.add(b.multiply(moved, b.constant(wanted[i])), place);
        }
        int all = Math.toIntExact(shape.elements());
        Value zeros = b.broadcast(c.scalar(x, 0), Shape.of(all, 1));
        Value flat = b.reshape(x, Math.toIntExact(x.shape().elements()), 1);
        return b.reshape(OnnxIndexing.scatter(c, zeros, moved, flat, "none"), shape);
    }

    /// Sums columns [batch, channels · window, windows] into an image: the transpose of cutting windows out.
    private static Value columns(OnnxCall c) {
        GraphBuilder b = c.b();
        List<Integer> image = c.longs(1).stream().map(Math::toIntExact).toList();
        List<Integer> block = c.longs(2).stream().map(Math::toIntExact).toList();
        int n = image.size();
        List<Integer> strides = c.ints("strides", n, 1);
        List<Integer> dilations = c.ints("dilations", n, 1);
        List<Integer> pads = c.ints("pads", 2 * n, 0);
        int positions = block.stream().reduce(1, Math::multiplyExact);
        int windows = c.in(0).shape().dim(2);
        int batch = c.in(0).shape().dim(0);
        int channels = c.in(0).shape().dim(1) / positions;
        int all = image.stream().reduce(1, Math::multiplyExact);
        int[] at = new int[positions * windows];
        for (int i = 0; i < at.length; i++) {
            int flat = 0;
            boolean inside = true;
            int stride = 1;
            for (int axis = n - 1, k = i / windows, p = i % windows; axis >= 0; axis--) {
                int reach = (block.get(axis) - 1) * dilations.get(axis) + 1;
                int count = (image.get(axis) + pads.get(axis) + pads.get(axis + n) - reach) / strides.get(axis) + 1;
                int place = p % count * strides.get(axis) + k % block.get(axis) * dilations.get(axis) - pads.get(axis);
                inside &= place >= 0 && place < image.get(axis);
                flat += place * stride;
                stride *= image.get(axis);
                k /= block.get(axis);
                p /= count;
            }
            at[i] = inside ? flat : all; // one place past the image takes what is outside
        }
        Value updates = b.reshape(c.in(0), batch * channels, at.length);
        Value places = b.constant(Tensor.of(Shape.of(at.length), at));
        Value sum = b.slice(b.add(new Op.ScatterAdd(places, updates, 1, all + 1, 1)), 1, 0, all);
        List<Integer> dims = new ArrayList<>(List.of(batch, channels));
        dims.addAll(image);
        return b.reshape(sum, Shape.of(dims));
    }
}
