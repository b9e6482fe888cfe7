package ingot.compiler;

import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Tensor;
import ingot.ir.Value;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Algebra that keeps every bit.
///
///     x · 1 → x      x ÷ 1 → x      x − (+0) → x      x + (−0) → x      −(−x) → x
///     reshape ∘ reshape → reshape      transpose ∘ transpose → transpose      broadcast ∘ broadcast → broadcast
///     select true a b → a      select c a a → a      what moves nothing → its operand
///
/// Not x + (+0) (it turns −0 into +0), not x · 0 (NaN, −0), not (a + b) − b, nothing that reassociates.
final class Simplify {
    private Simplify() {}

    static Graph apply(Graph graph) {
        return Rewrite.values(graph, (to, value, op) -> simpler(to, op));
    }

    private static Value simpler(GraphBuilder to, Op op) {
        return switch (op) {
            case Op.Binary binary -> simpler(to, binary);
            case Op.Unary(UnaryKind kind, Value(int _, Op.Unary(UnaryKind inner, Value x), var _))
            when kind == inner && (kind == UnaryKind.NEGATE || kind == UnaryKind.NOT) -> x;
            case Op.Select(Value condition, Value a, Value b) -> {
                Tensor known = scalar(condition);
                yield a.equals(b) ? a : known == null ? to.add(op) : known.getBoolean(0) ? a : b;
            }
            case Op.Convert(Value x, var dtype) when x.dtype() == dtype -> x;
            case Op.Bitcast(Value x, var dtype) when x.dtype() == dtype -> x;
            case Op.Bitcast(Value(int _, Op.Bitcast(Value x, var _), var _), var dtype) ->
                x.dtype() == dtype ? x : to.add(new Op.Bitcast(x, dtype));
            case Op.Reshape(Value x, var shape) when x.shape().equals(shape) -> x;
            case Op.Reshape(Value(int _, Op.Reshape(Value x, var _), var _), var shape) -> to.reshape(x, shape);
            case Op.Transpose(Value x, var permutation) when isIdentity(permutation) -> x;
            case Op.Transpose(Value(int _, Op.Transpose(Value x, var inner), var _), var outer) ->
                to.transpose(x, outer.stream().map(inner::get).toList());
            case Op.Broadcast(Value x, var shape, var _) when x.shape().equals(shape) -> x;
            case Op.Broadcast(Value(int _, Op.Broadcast(Value x, var _, var inner), var _), var shape, var outer) ->
                to.broadcast(x, shape, inner.stream().map(outer::get).toList());
            case Op.Slice slice when slice.x().shape().equals(to.add(op).shape()) -> slice.x();
            case Op.Pad pad when isZero(pad.low()) && isZero(pad.high()) && isZero(pad.interior()) -> pad.x();
            case Op.Concatenate(List<Value> parts, int _) when parts.size() == 1 -> parts.getFirst();
            case Op _ -> to.add(op);
        };
    }

    private static Value simpler(GraphBuilder to, Op.Binary op) {
        Value a = op.a();
        Value b = op.b();
        boolean floating = a.dtype().isFloating();
        boolean keepsA = switch (op.kind()) {
            case MULTIPLY, DIVIDE -> is(b, 1);
            case SUBTRACT -> isZero(b, false);
            case ADD -> isZero(b, floating);
            default -> false;
        };
        boolean keepsB = switch (op.kind()) {
            case MULTIPLY -> is(a, 1);
            case ADD -> isZero(a, floating);
            default -> false;
        };
        return keepsA ? a : keepsB ? b : to.add(op);
    }

    private static boolean isIdentity(List<Integer> permutation) {
        return IntStream.range(0, permutation.size()).allMatch(i -> permutation.get(i) == i);
    }

    private static boolean isZero(List<Integer> amounts) {
        return amounts.stream().allMatch(amount -> amount == 0);
    }

    private static boolean is(Value value, int number) {
        Tensor known = scalar(value);
        return known != null && (value.dtype().isFloating() ? known.getFloat(0) == number : known.getLong(0) == number);
    }

    private static boolean isZero(Value value, boolean negative) {
        Tensor known = scalar(value);
        if (known == null) {
            return false;
        }
        return value.dtype().isFloating()
                ? Float.floatToRawIntBits(known.getFloat(0)) == (negative ? 0x8000_0000 : 0)
                : known.getLong(0) == 0;
    }

    /// The one number that a value repeats, if that is known.
    static @Nullable Tensor scalar(Value value) {
        return switch (value.op()) {
            case Op.Constant constant when constant.data().shape().rank() == 0 -> constant.data();
            case Op.Broadcast broadcast -> scalar(broadcast.x());
            case Op.Reshape reshape -> scalar(reshape.x());
            case Op _ -> null;
        };
    }
}
