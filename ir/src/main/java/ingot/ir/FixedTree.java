package ingot.ir;

import java.util.ArrayList;
import java.util.List;
import java.util.function.BinaryOperator;

/// The one order in which partial results are combined: a binary tree over their indices (docs/arithmetic.md, §3).
public final class FixedTree {
    private FixedTree() {}

    /// How many of n ≥ 2 leaves the left half takes: the largest power of two below n.
    public static int split(int n) {
        return Integer.highestOneBit(n - 1);
    }

    public static <T> T reduce(List<T> leaves, BinaryOperator<T> combine) {
        int n = leaves.size();
        if (n == 1) {
            return leaves.getFirst();
        }
        int left = split(n);
        return combine.apply(reduce(leaves.subList(0, left), combine), reduce(leaves.subList(left, n), combine));
    }

    public static float sum(float... leaves) {
        return sum(leaves, 0, leaves.length);
    }

    private static float sum(float[] leaves, int from, int to) {
        if (to - from == 1) {
            return leaves[from];
        }
        int middle = from + split(to - from);
        return sum(leaves, from, middle) + sum(leaves, middle, to);
    }

    /// Sums rows that come one after the other, as a binary counter: never more than log₂ of them are kept.
    static final class Rows {
        private final List<float[]> stack = new ArrayList<>();
        private int pushed;

        /// Takes ownership of `row`.
        void push(float[] row) {
            stack.add(row);
            pushed++;
            for (int carry = pushed; (carry & 1) == 0; carry >>= 1) {
                merge();
            }
        }

        float[] total() {
            while (stack.size() > 1) {
                merge();
            }
            return stack.getFirst();
        }

        private void merge() {
            float[] right = stack.removeLast();
            float[] left = stack.getLast();
            for (int i = 0; i < left.length; i++) {
                left[i] = left[i] + right[i];
            }
        }
    }
}
