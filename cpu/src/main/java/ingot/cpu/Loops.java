package ingot.cpu;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/// A nest of loops over an index space: outer axes with the bytes every operand moves per step, and one innermost axis.
///
/// Axes of size 1 vanish; neighbours that all operands step through as one are merged.
record Loops(int[] outer, long[][] outerSteps, int inner, long[] innerSteps) {

    /// `steps[k][axis]`: bytes operand k moves along `axis`. Iterates in the given order of axes.
    static Loops over(int[] dims, long[][] steps) {
        List<Integer> axes = new ArrayList<>();
        for (int axis = 0; axis < dims.length; axis++) {
            if (dims[axis] != 1) {
                axes.add(axis);
            }
        }
        return merge(dims, steps, axes);
    }

    /// Any order of axes will do: the one in which operand `lead` moves through memory.
    static Loops inMemoryOrder(int[] dims, long[][] steps, int lead) {
        List<Integer> axes = new ArrayList<>();
        for (int axis = 0; axis < dims.length; axis++) {
            if (dims[axis] != 1) {
                axes.add(axis);
            }
        }
        axes.sort(Comparator.comparingLong((Integer axis) -> -Math.abs(steps[lead][axis])));
        return merge(dims, steps, axes);
    }

    private static Loops merge(int[] dims, long[][] steps, List<Integer> axes) {
        int operands = steps.length;
        List<Integer> sizes = new ArrayList<>();
        List<long[]> moves = new ArrayList<>();
        for (int axis : axes) {
            long[] move = new long[operands];
            for (int k = 0; k < operands; k++) {
                move[k] = steps[k][axis];
            }
            int last = sizes.size() - 1;
            if (last >= 0
                    && continues(moves.get(last), move, dims[axis])
                    && (long) sizes.get(last) * dims[axis] <= Integer.MAX_VALUE) {
                sizes.set(last, sizes.get(last) * dims[axis]);
                moves.set(last, move);
            } else {
                sizes.add(dims[axis]);
                moves.add(move);
            }
        }
        if (sizes.isEmpty()) {
            return new Loops(new int[0], new long[0][], 1, new long[operands]);
        }
        int inner = sizes.removeLast();
        long[] innerSteps = moves.removeLast();
        return new Loops(
                sizes.stream().mapToInt(Integer::intValue).toArray(), moves.toArray(long[][]::new), inner, innerSteps);
    }

    private static boolean continues(long[] outer, long[] inner, int size) {
        for (int k = 0; k < outer.length; k++) {
            if (outer[k] != inner[k] * size) {
                return false;
            }
        }
        return true;
    }

    /// Number of runs of the innermost loop.
    long rows() {
        long rows = 1;
        for (int size : outer) {
            rows *= size;
        }
        return rows;
    }

    /// Moves `bases` by the outer index of run `row` (row-major) and leaves that index in `index`.
    void enter(long row, int[] index, long[] bases) {
        long rest = row;
        for (int axis = outer.length - 1; axis >= 0; axis--) {
            int at = (int) (rest % outer[axis]);
            rest /= outer[axis];
            index[axis] = at;
            long[] steps = outerSteps[axis];
            for (int k = 0; k < steps.length; k++) {
                bases[k] += at * steps[k];
            }
        }
    }

    /// Moves on to the next run.
    void next(int[] index, long[] bases) {
        for (int axis = outer.length - 1; axis >= 0; axis--) {
            long[] steps = outerSteps[axis];
            if (++index[axis] < outer[axis]) {
                for (int k = 0; k < steps.length; k++) {
                    bases[k] += steps[k];
                }
                return;
            }
            index[axis] = 0;
            for (int k = 0; k < steps.length; k++) {
                bases[k] -= (outer[axis] - 1) * steps[k];
            }
        }
    }

    @Override
    public String toString() {
        return Arrays.toString(outer) + " × " + inner;
    }
}
