package ingot.compiler;

import ingot.ir.Op;
import ingot.ir.Shape;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/// The index space of a fused kernel, divided finely enough that the shapes of all its values are regroupings of its
/// axes.
///
/// A value of the space has axes [upper…, length, lower…]; one of the outer space lacks the reduced axis `length`. Rows
/// reduce the last axis (`lower` is empty), columns may have axes after it. A space without a reduction has only upper
/// axes.
record Space(List<Integer> upper, @Nullable Block block, List<Integer> lower) {
    Space {
        upper = List.copyOf(upper);
        lower = List.copyOf(lower);
    }

    /// The reduced axis: its length, the number of elements below it, and the runs it is summed in.
    record Block(int length, long inner, int segments) {
        static Block of(Op.Reduce reduce) {
            Shape from = reduce.x().shape();
            int axis = reduce.axes().getFirst();
            long inner = 1;
            for (int i = axis + 1; i < from.rank(); i++) {
                inner *= from.dim(i);
            }
            return new Block(from.dim(axis), inner, reduce.segments());
        }

        /// Sums of runs and sums across rows are column kernels.
        boolean isColumn() {
            return inner > 1 || segments > 1;
        }
    }

    /// The space of values with the shapes `full` and `outer`; empty when their axes are divided at places that do not
    /// fit together. Divisions inside of the reduced axis are ignored: whoever reads across them must find their axes
    /// merged.
    static Optional<Space> of(List<Shape> full, List<Shape> outer, @Nullable Block block) {
        long elements = full.isEmpty() ? 1 : full.getFirst().elements();
        TreeSet<Long> low = new TreeSet<>();
        TreeSet<Long> high = new TreeSet<>();
        long inner = block == null ? 1 : block.inner();
        int length = block == null ? 1 : block.length();
        long above = inner * length;
        for (Shape shape : full) {
            for (long bound : shape.strides()) {
                bound(bound, inner, above, low, high);
            }
        }
        for (Shape shape : outer) {
            for (long bound : shape.strides()) {
                if (bound > inner) {
                    bound(bound * length, inner, above, low, high);
                } else {
                    bound(bound, inner, above, low, high);
                }
            }
        }
        low.add(1L);
        low.add(inner);
        high.add(above);
        high.add(elements);
        Optional<List<Integer>> lower = dims(low);
        Optional<List<Integer>> upper = dims(high);
        return lower.isEmpty() || upper.isEmpty()
                ? Optional.empty()
                : Optional.of(new Space(upper.get(), block, lower.get()));
    }

    private static void bound(long bound, long inner, long above, TreeSet<Long> low, TreeSet<Long> high) {
        if (bound <= inner) {
            low.add(bound);
        } else if (bound >= above) {
            high.add(bound);
        }
    }

    /// Ratios of neighbours, largest first.
    private static Optional<List<Integer>> dims(TreeSet<Long> bounds) {
        List<Integer> dims = new ArrayList<>();
        long previous = 0;
        for (long bound : bounds) {
            if (previous != 0) {
                if (bound % previous != 0) {
                    return Optional.empty();
                }
                dims.addFirst(Math.toIntExact(bound / previous));
            }
            previous = bound;
        }
        return Optional.of(dims);
    }

    Shape shape(boolean outer) {
        List<Integer> dims = new ArrayList<>(upper);
        if (block != null && !outer) {
            dims.add(block.length());
        }
        dims.addAll(lower);
        return Shape.of(dims);
    }

    /// Axes of the space in the order of the kernel: the reduced axis first for columns, last for rows.
    private List<Integer> order() {
        List<Integer> order = new ArrayList<>();
        int reduced = upper.size();
        for (int i = 0; i <= upper.size() + lower.size(); i++) {
            if (i != reduced) {
                order.add(i);
            }
        }
        order.addFirst(reduced);
        return order;
    }

    /// A layout over a value's shape as one over the space, axes in the kernel's order; empty when axes do not merge as
    /// needed.
    Optional<Layout> of(Layout layout, boolean outer) {
        Optional<Layout> view = layout.reshape(shape(outer));
        return block != null && !outer && block.isColumn() ? view.map(x -> x.transpose(order())) : view;
    }

    /// True when a view maps each outer element to its whole row: `map` is a layout over the full shape in an outer
    /// row-major value.
    boolean isRow(Layout map) {
        Optional<Layout> view = map.reshape(shape(false));
        if (block == null || view.isEmpty() || map.offset() != 0) {
            return false;
        }
        Layout layout = view.get();
        int reduced = upper.size();
        return (layout.shape().dim(reduced) == 1 || layout.stride(reduced) == 0)
                && layout.without(reduced).isRowMajor();
    }
}
