package ingot.compiler;

import ingot.ir.Op;
import ingot.ir.Shape;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// A `Dot` as a matrix product: which axes become m, n, k and batch, by the strides of its operands.
///
/// Contracted axes become one k (in their listed order, or the sum would change). Free axes become one m and one n
/// where the strides allow; what does not merge becomes a batch axis along which the other operand repeats.
final class Contraction {
    /// The kernel (layouts at the origin) and where its operands start, in bytes; `exchanged`: its a is the dot's b.
    record Plan(Kernel.Matmul kernel, boolean exchanged, long a, long b, long bias, long c) {
        Plan with(int segments, Kernel.Matmul.Old old) {
            Kernel.Matmul whole = new Kernel.Matmul(kernel.a(), kernel.b(), kernel.bias(), kernel.c(), segments, old);
            return new Plan(whole, exchanged, a, b, bias, c);
        }
    }

    private final int batch;
    private Layout a; // [batch…, free…, k]
    private Layout b; // [batch…, k, free…]
    private Layout c; // [batch…, free a…, free b…]
    private @Nullable Layout bias; // as c

    private Contraction(int batch, Layout a, Layout b, Layout c, @Nullable Layout bias) {
        this.batch = batch;
        this.a = a;
        this.b = b;
        this.c = c;
        this.bias = bias;
    }

    /// The kernel for `dot` over these layouts of a, b, the result and (over the result's shape) a bias row; empty when
    /// the contracted axes do not merge or the bias is no row.
    static Optional<Plan> plan(Op.Dot dot, Layout a, Layout b, Layout c, @Nullable Layout bias, Kernel.Matmul.Old old) {
        int batch = dot.batchA().size();
        Layout orderedA = a.transpose(orderA(dot, a.shape().rank()));
        Layout orderedB = b.transpose(orderB(dot, b.shape().rank()));
        int k = dot.contractA().stream().mapToInt(a.shape()::dim).reduce(1, Math::multiplyExact);
        int freeA = a.shape().rank() - batch - dot.contractA().size();
        int freeB = b.shape().rank() - batch - dot.contractB().size();
        Optional<Layout> mergedA = orderedA.reshape(shape(orderedA, batch + freeA, k, 0));
        Optional<Layout> mergedB = orderedB.reshape(shape(orderedB, batch, k, freeB));
        if (mergedA.isEmpty() || mergedB.isEmpty()) {
            return Optional.empty();
        }
        if (bias != null && IntStream.range(0, batch + freeA).anyMatch(new Repeats(bias)::steps)) {
            return Optional.empty();
        }
        return new Contraction(batch, mergedA.get(), mergedB.get(), c, bias)
                .matmul(freeA, freeB)
                .map(plan -> plan.with(dot.segments(), old));
    }

    private record Repeats(Layout layout) {
        boolean steps(int axis) {
            return layout.shape().dim(axis) != 1 && layout.stride(axis) != 0;
        }
    }

    /// Axes of a in the order batch, free, contracted.
    static List<Integer> orderA(Op.Dot dot, int rank) {
        List<Integer> order = new ArrayList<>(dot.batchA());
        free(dot.batchA(), dot.contractA(), rank).forEach(order::add);
        order.addAll(dot.contractA());
        return order;
    }

    /// Axes of b in the order batch, contracted, free.
    static List<Integer> orderB(Op.Dot dot, int rank) {
        List<Integer> order = new ArrayList<>(dot.batchB());
        order.addAll(dot.contractB());
        free(dot.batchB(), dot.contractB(), rank).forEach(order::add);
        return order;
    }

    private static List<Integer> free(List<Integer> batch, List<Integer> contract, int rank) {
        return IntStream.range(0, rank)
                .filter(i -> !batch.contains(i) && !contract.contains(i))
                .boxed()
                .toList();
    }

    /// The first `lead` axes, then `k`, then the last `tail` axes of a layout.
    private static Shape shape(Layout layout, int lead, int k, int tail) {
        List<Integer> dims = new ArrayList<>();
        for (int i = 0; i < lead; i++) {
            dims.add(layout.shape().dim(i));
        }
        dims.add(k);
        for (int i = layout.shape().rank() - tail; i < layout.shape().rank(); i++) {
            dims.add(layout.shape().dim(i));
        }
        return Shape.of(dims);
    }

    private Optional<Plan> matmul(int freeA, int freeB) {
        Layout rows = axes(a, batch, freeA);
        Shape m = Layout.collapse(rows.shape(), List.of(rows, axes(c, batch, freeA)));
        List<Layout> columnLayouts = new ArrayList<>(List.of(axes(b, batch + 1, freeB), axes(c, batch + freeA, freeB)));
        if (bias != null) {
            columnLayouts.add(axes(bias, batch + freeA, freeB));
        }
        Shape n = Layout.collapse(columnLayouts.getFirst().shape(), columnLayouts);
        if (bias != null && n.rank() > 1) {
            return Optional.empty();
        }
        int k = a.shape().dim(-1);
        List<Integer> lead = list(axes(c, 0, batch).shape());
        a = view(a, lead, list(m), List.of(k));
        b = view(b, lead, List.of(k), list(n));
        c = view(c, lead, list(m), list(n));
        // The largest axis of each side stays, the others join the batch axes.
        int mAxis = largest(m);
        int nAxis = largest(n);
        List<Integer> extraM = others(m.rank(), mAxis);
        List<Integer> extraN = others(n.rank(), nAxis);
        int first = batch;
        Layout leftA = pick(a, IntStream.range(0, first).boxed().toList(), shift(extraM, first), repeat(n, extraN));
        Layout leftB = pick(
                b, IntStream.range(0, first).boxed().toList(), List.of(), repeat(m, extraM), shift(extraN, first + 1));
        Layout leftC = pick(
                c, IntStream.range(0, first).boxed().toList(), shift(extraM, first), shift(extraN, first + m.rank()));
        Shape outer = Layout.collapse(leftC.shape(), List.of(leftA, leftB, leftC));
        boolean none = leftC.shape().elements() == 1;
        Layout finalA = join(leftA, outer, none, List.of(axis(a, first + mAxis), axis(a, first + m.rank())));
        Layout finalB = join(leftB, outer, none, List.of(axis(b, first), axis(b, first + 1 + nAxis)));
        Layout finalC = join(leftC, outer, none, List.of(axis(c, first + mAxis), axis(c, first + m.rank() + nAxis)));
        Layout row = bias == null
                ? null
                : axes(view(bias, lead, list(m), list(n)), first + m.rank(), 1).withUnitSteps();
        return Optional.of(oriented(finalA, finalB, finalC, row));
    }

    /// Exchanges the operands when that makes the result contiguous along n: a·b = b·a in every bit.
    private static Plan oriented(Layout a, Layout b, Layout c, @Nullable Layout bias) {
        int rank = c.shape().rank();
        int rows = c.shape().dim(-2);
        boolean along = c.stride(rank - 2) == 1 && rows > 1;
        boolean across = c.stride(rank - 1) == 1 && c.shape().dim(-1) > 1;
        if (bias == null && along && !across) {
            return plan(flip(b), flip(a), flip(c), null, true);
        }
        return plan(a, b, c, bias, false);
    }

    private static Plan plan(Layout a, Layout b, Layout c, @Nullable Layout bias, boolean exchanged) {
        Kernel.Matmul kernel = new Kernel.Matmul(
                a.withUnitSteps().atOrigin(),
                b.withUnitSteps().atOrigin(),
                bias == null ? null : bias.atOrigin(),
                c.withUnitSteps().atOrigin(),
                1,
                Kernel.Matmul.Old.REPLACED);
        return new Plan(
                kernel,
                exchanged,
                a.byteOffset(),
                b.byteOffset(),
                bias == null ? 0 : bias.byteOffset(),
                c.byteOffset());
    }

    private static Layout flip(Layout x) {
        int rank = x.shape().rank();
        List<Integer> order =
                new ArrayList<>(IntStream.range(0, rank - 2).boxed().toList());
        order.add(rank - 1);
        order.add(rank - 2);
        return x.transpose(order);
    }

    // ---- axes

    private record Axis(int size, long stride) {}

    private static Axis axis(Layout layout, int axis) {
        return new Axis(layout.shape().dim(axis), layout.stride(axis));
    }

    /// `count` axes from `first` on.
    private static Layout axes(Layout layout, int first, int count) {
        List<Integer> dims = new ArrayList<>();
        List<Long> strides = new ArrayList<>();
        for (int i = first; i < first + count; i++) {
            dims.add(layout.shape().dim(i));
            strides.add(layout.stride(i));
        }
        return new Layout(layout.dtype(), Shape.of(dims), layout.offset(), strides);
    }

    @SafeVarargs
    private static Layout view(Layout layout, List<Integer>... dims) {
        List<Integer> all = new ArrayList<>();
        for (List<Integer> some : dims) {
            all.addAll(some);
        }
        return layout.reshape(Shape.of(all))
                .orElseThrow(() -> new IllegalStateException("matmul: " + layout + " does not merge to " + all));
    }

    private static List<Integer> list(Shape shape) {
        return IntStream.of(shape.dims()).boxed().toList();
    }

    private static int largest(Shape shape) {
        int best = shape.rank() - 1;
        for (int i = shape.rank() - 1; i >= 0; i--) {
            best = shape.dim(i) > shape.dim(best) ? i : best;
        }
        return best;
    }

    private static List<Integer> others(int rank, int axis) {
        return IntStream.range(0, rank).filter(i -> i != axis).boxed().toList();
    }

    private static List<Integer> shift(List<Integer> axes, int by) {
        return axes.stream().map(i -> i + by).toList();
    }

    /// Sizes of axes that an operand lacks, as −1 − size.
    private static List<Integer> repeat(Shape shape, List<Integer> axes) {
        return axes.stream().map(i -> -1 - shape.dim(i)).toList();
    }

    /// A layout of picked axes; a negative entry −1 − size is an axis that repeats.
    @SafeVarargs
    private static Layout pick(Layout layout, List<Integer>... axes) {
        List<Integer> dims = new ArrayList<>();
        List<Long> strides = new ArrayList<>();
        for (List<Integer> some : axes) {
            for (int i : some) {
                dims.add(i < 0 ? -1 - i : layout.shape().dim(i));
                strides.add(i < 0 ? 0 : layout.stride(i));
            }
        }
        return new Layout(layout.dtype(), Shape.of(dims), layout.offset(), strides);
    }

    /// Merged batch axes (or none), then two more.
    private static Layout join(Layout batch, Shape outer, boolean none, List<Axis> last) {
        Layout lead =
                none ? new Layout(batch.dtype(), Shape.SCALAR, batch.offset(), List.of()) : view(batch, list(outer));
        List<Integer> dims = new ArrayList<>(list(lead.shape()));
        List<Long> strides = new ArrayList<>(lead.strides());
        for (Axis axis : last) {
            dims.add(axis.size());
            strides.add(axis.stride());
        }
        return new Layout(batch.dtype(), Shape.of(dims), batch.offset(), strides);
    }
}
