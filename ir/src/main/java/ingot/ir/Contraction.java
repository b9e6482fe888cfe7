package ingot.ir;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// General contraction: one fma chain per result element.
final class Contraction {
    private Contraction() {}

    static void dot(Op.Dot op, Tensor a, Tensor b, @Nullable Tensor start, Tensor result) {
        List<Integer> freeA = free(a.shape(), op.batchA(), op.contractA());
        List<Integer> freeB = free(b.shape(), op.batchB(), op.contractB());
        float[] x = Elements.floats(Movement.arranged(a, join(op.batchA(), freeA, op.contractA()))); // [batch, m, k]
        float[] y = Elements.floats(Movement.arranged(b, join(op.batchB(), op.contractB(), freeB))); // [batch, k, n]
        int batch = size(a.shape(), op.batchA());
        int m = size(a.shape(), freeA);
        int n = size(b.shape(), freeB);
        int k = size(a.shape(), op.contractA());
        float[] from = start == null ? new float[batch * m * n] : Elements.floats(start); // [batch, m, n]
        float[] out = Elements.target(result); // [batch, m, n]
        int run = k / op.segments();
        for (int row = 0; row < batch * m; row++) {
            FixedTree.Rows rows = new FixedTree.Rows();
            for (int s = 0; s < op.segments(); s++) {
                float[] acc = Arrays.copyOfRange(from, row * n, (row + 1) * n); // +0 if there are segments
                for (int i = s * run; i < (s + 1) * run; i++) {
                    row(acc, x[row * k + i], y, (row / m * k + i) * n);
                }
                rows.push(acc);
            }
            System.arraycopy(rows.total(), 0, out, row * n, n);
        }
        Elements.store(result, out);
    }

    /// acc[j] = fma(x, y[start + j], acc[j]): the same step of n independent chains.
    private static void row(float[] acc, float x, float[] y, int start) {
        for (int j = 0; j < acc.length; j++) {
            acc[j] = Math.fma(x, y[start + j], acc[j]);
        }
    }

    private static List<Integer> free(Shape shape, List<Integer> batch, List<Integer> contract) {
        List<Integer> free = new ArrayList<>();
        for (int i = 0; i < shape.rank(); i++) {
            if (!batch.contains(i) && !contract.contains(i)) {
                free.add(i);
            }
        }
        return free;
    }

    private static List<Integer> join(List<Integer> a, List<Integer> b, List<Integer> c) {
        List<Integer> all = new ArrayList<>(a);
        all.addAll(b);
        all.addAll(c);
        return all;
    }

    private static int size(Shape shape, List<Integer> axes) {
        return axes.stream().mapToInt(shape::dim).reduce(1, (a, b) -> a * b);
    }
}
