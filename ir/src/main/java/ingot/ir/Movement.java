package ingot.ir;

import java.lang.foreign.MemorySegment;
import java.util.List;

/// Ops that make or move elements without arithmetic.
final class Movement {
    private Movement() {}

    static void iota(int axis, Tensor result) {
        Shape shape = result.shape();
        long inner = shape.strides()[axis];
        int size = shape.dim(axis);
        int n = Elements.count(result.type());
        for (int i = 0; i < n; i++) {
            int index = (int) (i / inner % size);
            if (result.type().dtype() == DType.F32) {
                result.setFloat(i, index);
            } else {
                result.setLong(i, index);
            }
        }
    }

    static void randomBits(int stream, Tensor key, Tensor result) {
        int[] k = ScalarMath.randomKey(key.getInt(0), key.getInt(1), key.getInt(2), stream);
        int firstRow = key.getInt(3);
        Shape shape = result.shape();
        int rows = shape.rank() == 0 ? 1 : shape.dim(0);
        long inner = shape.rank() == 0 ? 1 : shape.strides()[0];
        for (int row = 0; row < rows; row++) {
            for (long i = 0; i < inner; i++) {
                result.setLong(row * inner + i, ScalarMath.randomBits(k, firstRow + row, (int) i));
            }
        }
    }

    static void broadcast(List<Integer> axes, Tensor x, Tensor result) {
        long[] own = x.shape().strides();
        long[] strides = new long[result.shape().rank()];
        for (int i = 0; i < own.length; i++) {
            int to = axes.get(i);
            strides[to] = x.shape().dim(i) == 1 ? 0 : own[i];
        }
        copy(x, 0, strides, result);
    }

    static void transpose(List<Integer> permutation, Tensor x, Tensor result) {
        long[] own = x.shape().strides();
        copy(x, 0, permutation.stream().mapToLong(axis -> own[axis]).toArray(), result);
    }

    /// `x` with its axes in another order; `x` itself if the order is the same.
    static Tensor arranged(Tensor x, List<Integer> permutation) {
        boolean same = true;
        for (int i = 0; i < permutation.size(); i++) {
            same &= permutation.get(i) == i;
        }
        if (same) {
            return x;
        }
        Shape shape = Shape.of(permutation.stream().map(x.shape()::dim).toList());
        Tensor result = Elements.allocate(x.type().with(shape));
        transpose(permutation, x, result);
        return result;
    }

    static void slice(Op.Slice op, Tensor x, Tensor result) {
        long[] own = x.shape().strides();
        long[] strides = new long[own.length];
        long start = 0;
        for (int i = 0; i < own.length; i++) {
            start += op.starts().get(i) * own[i];
            strides[i] = op.strides().get(i) * own[i];
        }
        copy(x, start, strides, result);
    }

    static void pad(Op.Pad op, Tensor x, Tensor padding, Tensor result) {
        copy(padding, 0, new long[result.shape().rank()], result);
        long[] own = result.shape().strides();
        long[] strides = new long[own.length];
        long start = 0;
        for (int i = 0; i < own.length; i++) {
            start += op.low().get(i) * own[i];
            strides[i] = (op.interior().get(i) + 1) * own[i];
        }
        Strided.copy(width(x), x.shape().dims(), x.data(), 0, x.shape().strides(), result.data(), start, strides);
    }

    static void concatenate(int axis, List<Tensor> operands, Tensor result) {
        long[] strides = result.shape().strides();
        long start = 0;
        for (Tensor x : operands) {
            Strided.copy(width(x), x.shape().dims(), x.data(), 0, x.shape().strides(), result.data(), start, strides);
            start += x.shape().dim(axis) * strides[axis];
        }
    }

    static void reverse(List<Integer> axes, Tensor x, Tensor result) {
        long[] strides = x.shape().strides();
        long start = 0;
        for (int axis : axes) {
            start += Math.max(0, x.shape().dim(axis) - 1) * strides[axis];
            strides[axis] = -strides[axis];
        }
        copy(x, start, strides, result);
    }

    private static void copy(Tensor x, long start, long[] strides, Tensor result) {
        MemorySegment to = result.data();
        Strided.copy(
                width(x),
                result.shape().dims(),
                x.data(),
                start,
                strides,
                to,
                0,
                result.shape().strides());
    }

    private static int width(Tensor x) {
        return x.type().dtype().bytes();
    }
}
