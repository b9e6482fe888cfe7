package ingot.autodiff;

import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Shape;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;

/// Derivatives of the ops that move elements: each hands back the cotangents from where the elements went.
final class MovementGradients {
    private MovementGradients() {}

    /// A repeated element gets the sum over its copies: one reduction over the new and the stretched axes.
    static void broadcast(GraphBuilder b, Op.Broadcast op, Value dy, Cotangents flow) {
        flow.add(op.x(), () -> {
            Shape from = op.x().shape();
            List<Integer> summed = new ArrayList<>();
            for (int axis = 0; axis < op.shape().rank(); axis++) {
                int source = op.axes().indexOf(axis);
                if (source < 0 || from.dim(source) != op.shape().dim(axis)) {
                    summed.add(axis);
                }
            }
            return b.reshape(sum(b, dy, summed), from);
        });
    }

    /// The inverse permutation.
    static void transpose(GraphBuilder b, Op.Transpose op, Value dy, Cotangents flow) {
        flow.add(op.x(), () -> b.transpose(dy, inverse(op.permutation())));
    }

    /// Zeros around and between.
    static void slice(GraphBuilder b, Op.Slice op, Value dy, Cotangents flow) {
        flow.add(op.x(), () -> {
            List<Integer> high = new ArrayList<>();
            List<Integer> low = new ArrayList<>();
            List<Integer> interior = new ArrayList<>();
            for (int i = 0; i < op.starts().size(); i++) {
                int taken = dy.shape().dim(i);
                int size = op.x().shape().dim(i);
                int stride = op.strides().get(i);
                int start = taken == 0 ? 0 : op.starts().get(i);
                low.add(start);
                interior.add(stride - 1);
                high.add(taken == 0 ? size : size - (start + (taken - 1) * stride + 1));
            }
            return b.add(new Op.Pad(dy, b.scalarLike(dy, 0), low, high, interior));
        });
    }

    /// The elements take theirs out, the padding gets the sum of all others.
    static void pad(GraphBuilder b, Op.Pad op, Value dy, Cotangents flow) {
        flow.add(op.x(), () -> {
            List<Integer> limits = new ArrayList<>();
            List<Integer> strides = new ArrayList<>();
            for (int i = 0; i < op.low().size(); i++) {
                int size = op.x().shape().dim(i);
                int stride = op.interior().get(i) + 1;
                strides.add(stride);
                limits.add(op.low().get(i) + (size == 0 ? 0 : (size - 1) * stride + 1));
            }
            return b.add(new Op.Slice(dy, op.low(), limits, strides));
        });
        flow.add(op.padding(), () -> {
            Value inside = b.broadcast(b.constant(true), op.x().shape());
            Value mask = b.add(new Op.Pad(inside, b.constant(false), op.low(), op.high(), op.interior()));
            Value outside = b.select(mask, b.scalarLike(dy, 0), dy);
            return sum(b, outside, IntStream.range(0, dy.shape().rank()).boxed().toList());
        });
    }

    /// Each part takes its section.
    static void concatenate(GraphBuilder b, Op.Concatenate op, Value dy, Cotangents flow) {
        int start = 0;
        for (Value part : op.operands()) {
            int from = start;
            int limit = start + part.shape().dim(op.axis());
            flow.add(part, () -> b.slice(dy, op.axis(), from, limit));
            start = limit;
        }
    }

    static Value sum(GraphBuilder b, Value x, List<Integer> axes) {
        return axes.isEmpty() ? x : b.add(new Op.Reduce(ReduceKind.SUM, x, axes, 1));
    }

    static List<Integer> inverse(List<Integer> permutation) {
        List<Integer> inverse = new ArrayList<>(Collections.nCopies(permutation.size(), 0));
        for (int i = 0; i < permutation.size(); i++) {
            inverse.set(permutation.get(i), i);
        }
        return inverse;
    }
}
