package ingot.formats;

import static ingot.formats.OnnxOperator.one;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Shape;
import ingot.ir.Value;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Quantised operators: small integers with a scale and a zero point.
///
/// Products of integers are computed in F32: exact while all partial sums stay below 2²⁴, and to a relative 2⁻²⁴ of the
/// largest one above.
final class OnnxQuantized {
    private OnnxQuantized() {}

    static void addTo(Map<String, OnnxOperator> t) {
        t.put("QuantizeLinear", one(OnnxQuantized::quantize));
        t.put("DequantizeLinear", one(OnnxQuantized::dequantize));
        t.put("DynamicQuantizeLinear", OnnxQuantized::dynamic);
        t.put("MatMulInteger", one(c -> {
            Value x = centred(c.b(), c.in(0), rows(c.b(), c.optional(2)));
            Value y = centred(c.b(), c.in(1), columns(c.b(), c.optional(3)));
            return c.b().convert(OnnxContractions.matmul(c.b(), x, y), DType.I32);
        }));
        t.put("ConvInteger", one(c -> {
            Value x = centred(c.b(), c.in(0), c.optional(2));
            Value w = centred(c.b(), c.in(1), outer(c.b(), c.optional(3), c.in(1)));
            return c.b().convert(OnnxWindows.convolution(c, x, w, null), DType.I32);
        }));
        t.put("QLinearMatMul", one(OnnxQuantized::matmul));
        t.put("QLinearConv", one(OnnxQuantized::convolution));
    }

    /// x − zero in F32.
    private static Value centred(GraphBuilder b, Value x, @Nullable Value zero) {
        Value wide = b.convert(x, DType.F32);
        return zero == null ? wide : b.subtract(wide, b.convert(zero, DType.F32));
    }

    /// round(y) + zero, saturated to the type of `zero` (Convert saturates).
    private static Value rounded(GraphBuilder b, Value y, Value zero, DType to) {
        return b.convert(b.add(b.unary(UnaryKind.ROUND, y), b.convert(zero, DType.F32)), to);
    }

    /// A vector of zero points of a left operand goes with its rows.
    private static @Nullable Value rows(GraphBuilder b, @Nullable Value zero) {
        return zero == null || zero.shape().elements() == 1 || zero.shape().rank() != 1
                ? scalar(b, zero)
                : b.reshape(zero, zero.shape().dim(0), 1);
    }

    private static @Nullable Value columns(GraphBuilder b, @Nullable Value zero) {
        return zero != null && zero.shape().elements() == 1 ? scalar(b, zero) : zero;
    }

    private static @Nullable Value scalar(GraphBuilder b, @Nullable Value x) {
        return x != null && x.shape().elements() == 1 ? b.reshape(x, Shape.SCALAR) : x;
    }

    /// A vector goes with axis 0 of a kernel.
    private static @Nullable Value outer(GraphBuilder b, @Nullable Value values, Value kernel) {
        return values == null || values.shape().elements() == 1
                ? scalar(b, values)
                : b.broadcast(values, kernel.shape(), List.of(0));
    }

    /// A scale or zero point for each element of x: one for all, one per place of an axis, or one per block of it.
    private static Value along(OnnxCall c, Value values, Value x) {
        GraphBuilder b = c.b();
        if (values.shape().elements() == 1) {
            return b.broadcast(b.reshape(values, Shape.SCALAR), x.shape());
        }
        int axis = c.axis("axis", 1, x.shape().rank());
        int block = Math.toIntExact(c.integer("block_size", 0));
        if (block == 0) {
            return values.shape().rank() == 1
                    ? b.broadcast(values, x.shape(), List.of(axis))
                    : b.broadcast(values, x.shape());
        }
        // [.., n / block, ..] → [.., n / block, block, ..] → [.., n, ..]
        int rank = values.shape().rank();
        int[] dims = values.shape().dims();
        int[] spread = IntStream.range(0, rank + 1)
                .map(i -> i <= axis ? dims[i] : i == axis + 1 ? block : dims[i - 1])
                .toArray();
        List<Integer> axes =
                IntStream.range(0, rank).map(i -> i <= axis ? i : i + 1).boxed().toList();
        Value repeated = b.broadcast(values, Shape.of(spread), axes);
        Value joined = b.reshape(repeated, values.shape().with(axis, dims[axis] * block));
        return b.slice(joined, axis, 0, x.shape().dim(axis));
    }

    private static Value quantize(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = b.convert(c.in(0), DType.F32);
        Value scale = along(c, c.in(1), x);
        OnnxType to = c.has(2) ? c.type(2) : c.elementType("output_dtype", OnnxType.UINT8);
        Value zero = c.has(2) ? along(c, c.in(2), x) : b.fullLike(x, 0);
        Value shifted = b.add(b.unary(UnaryKind.ROUND, b.divide(x, scale)), b.convert(zero, DType.F32));
        return b.convert(saturated(b, shifted, to), to.dtype("the target"));
    }

    /// Types that are wider in the graph saturate at their own range.
    private static Value saturated(GraphBuilder b, Value x, OnnxType type) {
        if (type.bits() == type.dtype("the target").bytes() * 8) {
            return x; // Convert does it
        }
        double size = Math.pow(2, type.bits());
        double low = type.isUnsigned() ? 0 : -size / 2;
        return b.min(b.max(x, b.scalarLike(x, low)), b.scalarLike(x, low + size - 1));
    }

    private static Value dequantize(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        Value wide = c.has(2) ? centred(b, x, along(c, c.in(2), x)) : b.convert(x, DType.F32);
        return b.multiply(wide, along(c, c.in(1), x));
    }

    /// U8 by the range of the tensor, which is made to hold 0: quantised values, scale, zero point.
    private static List<Value> dynamic(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        int[] all = IntStream.range(0, x.shape().rank()).toArray();
        Value zero = b.constant(0f);
        Value high = b.max(b.reduce(ReduceKind.MAX, x, all), zero);
        Value low = b.min(b.reduce(ReduceKind.MIN, x, all), zero);
        Value scale = b.divide(b.subtract(high, low), b.constant(255f));
        Value point = b.convert(b.unary(UnaryKind.ROUND, b.divide(b.negate(low), scale)), DType.U8);
        Value y = rounded(b, b.divide(x, scale), point, DType.U8);
        return List.of(y, scale, point);
    }

    /// a, scale, zero, b, scale, zero, then those of the result.
    private static Value matmul(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = centred(b, c.in(0), rows(b, c.in(2)));
        Value y = centred(b, c.in(3), columns(b, c.in(5)));
        Value product = OnnxContractions.matmul(b, x, y);
        Value scales = b.multiply(
                c.in(1).shape().elements() == 1 ? b.reshape(c.in(1), Shape.SCALAR) : b.reshape(c.in(1), -1, 1),
                c.in(4).shape().elements() == 1 ? b.reshape(c.in(4), Shape.SCALAR) : c.in(4));
        Value scaled = b.divide(b.multiply(product, scales), b.reshape(c.in(6), oneOrAll(c.in(6))));
        return rounded(b, scaled, b.reshape(c.in(7), oneOrAll(c.in(7))), c.in(7).dtype());
    }

    private static Shape oneOrAll(Value x) {
        return x.shape().elements() == 1 ? Shape.SCALAR : x.shape();
    }

    /// x, scale, zero, kernel, scale, zero, those of the result, and a bias in units of both scales.
    private static Value convolution(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = centred(b, c.in(0), scalar(b, c.in(2)));
        Value w = centred(b, c.in(3), outer(b, c.in(5), c.in(3)));
        Value bias = c.has(8) ? b.convert(c.in(8), DType.F32) : null;
        Value product = OnnxWindows.convolution(c, x, w, bias);
        Value perChannel = c.in(4).shape().elements() == 1
                ? b.reshape(c.in(4), Shape.SCALAR)
                : b.broadcast(c.in(4), product.shape(), List.of(1));
        Value scales =
                b.divide(b.multiply(b.reshape(c.in(1), Shape.SCALAR), perChannel), b.reshape(c.in(6), Shape.SCALAR));
        return rounded(
                b,
                b.multiply(product, scales),
                b.reshape(c.in(7), Shape.SCALAR),
                c.in(7).dtype());
    }
}
