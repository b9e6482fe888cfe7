package ingot.formats;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Value;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;

/// Padding in its four modes; negative amounts cut off.
final class OnnxPad {
    private OnnxPad() {}

    static Value pad(OnnxCall c) {
        Value x = c.in(0);
        int rank = x.shape().rank();
        List<Long> pads = c.attributeOrInput("pads", 1);
        if (pads == null) {
            pads = c.ints("paddings"); // opset 1
        }
        int[] axes = c.has(3)
                ? c.longs(3).stream().mapToInt(a -> c.axis(a, rank)).toArray()
                : IntStream.range(0, rank).toArray();
        if (pads.size() != 2 * axes.length) {
            throw new IngotException("pads expected two numbers for each of " + axes.length + " axes, got " + pads);
        }
        int[] low = new int[rank];
        int[] high = new int[rank];
        for (int i = 0; i < axes.length; i++) {
            low[axes[i]] = Math.toIntExact(pads.get(i));
            high[axes[i]] = Math.toIntExact(pads.get(i + axes.length));
        }
        String mode = c.text("mode", "constant");
        if (mode.equals("constant")) {
            Value value = c.has(2)
                    ? c.b().reshape(c.in(2), Shape.SCALAR)
                    : c.scalar(x, x.dtype().isFloating() ? c.number("value", 0) : 0);
            return constant(c.b(), x, value, low, high);
        }
        Value padded = x;
        for (int axis = 0; axis < rank; axis++) {
            if (low[axis] != 0 || high[axis] != 0) {
                padded = c.b().gather(
                                padded, c.b().constant(source(mode, x.shape().dim(axis), low[axis], high[axis])), axis);
            }
        }
        return padded;
    }

    /// For each place of a padded axis, the place that it copies.
    private static Tensor source(String mode, int size, int low, int high) {
        int[] at = new int[size + low + high];
        for (int i = 0; i < at.length; i++) {
            int from = i - low;
            at[i] = switch (mode) {
                case "edge" -> Math.clamp(from, 0, size - 1);
                case "wrap" -> Math.floorMod(from, size);
                case "reflect" -> {
                    int period = Math.max(1, 2 * (size - 1));
                    int folded = Math.floorMod(from, period);
                    yield Math.min(folded, period - folded);
                }
                default -> throw new IngotException("padding mode " + mode + " is not known");
            };
        }
        return Tensor.of(Shape.of(at.length), at);
    }

    static Value constant(GraphBuilder b, Value x, Value value, int[] low, int[] high) {
        int rank = x.shape().rank();
        int[] from = new int[rank];
        int[] to = x.shape().dims();
        int[] by = new int[rank];
        for (int i = 0; i < rank; i++) {
            from[i] = Math.max(0, -low[i]);
            to[i] = Math.max(from[i], to[i] - Math.max(0, -high[i]));
            by[i] = 1;
            low[i] = Math.max(0, low[i]);
            high[i] = Math.max(0, high[i]);
        }
        Value kept = OnnxShapes.cut(b, x, from, to, by);
        if (x.dtype() == DType.BOOL) {
            return b.convert(constant(b, b.convert(kept, DType.U8), b.convert(value, DType.U8), low, high), DType.BOOL);
        }
        return b.add(new Op.Pad(
                kept,
                value,
                IntStream.of(low).boxed().toList(),
                IntStream.of(high).boxed().toList(),
                Collections.nCopies(rank, 0)));
    }

    /// Cuts or pads with zeros around the middle to the wanted sizes.
    static Value centre(OnnxCall c) {
        Value x = c.in(0);
        int rank = x.shape().rank();
        List<Long> sizes = c.longs(1);
        List<Long> axes = c.ints("axes");
        int[] low = new int[rank];
        int[] high = new int[rank];
        for (int i = 0; i < sizes.size(); i++) {
            int axis = axes.isEmpty() ? i : c.axis(axes.get(i), rank);
            int more = Math.toIntExact(sizes.get(i) - x.shape().dim(axis));
            // padding: the extra element at the end; cutting: floor of half before
            low[axis] = more >= 0 ? more / 2 : -(-more / 2);
            high[axis] = more - low[axis];
        }
        return constant(c.b(), x, c.scalar(x, 0), low, high);
    }
}
