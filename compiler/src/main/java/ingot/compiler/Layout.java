package ingot.compiler;

import ingot.ir.DType;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Type;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.LongStream;

/// How a kernel sees one operand: an affine map from an index space to the elements of a buffer.
///
/// Element (i₀, i₁, …) of the space lies at `offset + Σ iₐ · strides[a]`, counted in elements from the operand's
/// address. A stride of 0 repeats, a negative one reverses, a permuted stride list transposes: views cost nothing.
public record Layout(DType dtype, Shape shape, long offset, List<Long> strides) {
    public Layout {
        strides = List.copyOf(strides);
        if (strides.size() != shape.rank()) {
            throw new IllegalArgumentException("layout: " + shape + " with strides " + strides);
        }
    }

    public static Layout rowMajor(Type type) {
        return of(type.dtype(), type.shape(), 0, type.shape().strides());
    }

    private static Layout of(DType dtype, Shape shape, long offset, long[] strides) {
        return new Layout(dtype, shape, offset, LongStream.of(strides).boxed().toList());
    }

    public Type type() {
        return new Type(dtype, shape);
    }

    public long stride(int axis) {
        return strides.get(axis);
    }

    public long byteOffset() {
        return offset * dtype.bytes();
    }

    /// The same steps from offset 0: what a kernel sees, the offset being added to its address.
    public Layout atOrigin() {
        return offset == 0 ? this : new Layout(dtype, shape, 0, strides);
    }

    /// True when elements follow each other in row-major order from the offset on; axes of size 1 do not count.
    public boolean isRowMajor() {
        long expected = 1;
        for (int i = shape.rank() - 1; i >= 0; i--) {
            if (shape.dim(i) != 1 && stride(i) != expected) {
                return false;
            }
            expected *= shape.dim(i);
        }
        return true;
    }

    /// Result axis i is axis `permutation[i]`.
    public Layout transpose(List<Integer> permutation) {
        int[] dims = new int[shape.rank()];
        long[] steps = new long[shape.rank()];
        for (int i = 0; i < dims.length; i++) {
            dims[i] = shape.dim(permutation.get(i));
            steps[i] = stride(permutation.get(i));
        }
        return of(dtype, Shape.of(dims), offset, steps);
    }

    /// Axis i becomes axis `axes[i]` of `to`; new axes and axes of size 1 that grow repeat by stride 0.
    public Layout broadcast(Shape to, List<Integer> axes) {
        long[] steps = new long[to.rank()];
        for (int i = 0; i < axes.size(); i++) {
            int axis = axes.get(i);
            steps[axis] = shape.dim(i) == to.dim(axis) ? stride(i) : 0;
        }
        return of(dtype, to, offset, steps);
    }

    /// Elements `start, start + step, …` below `limit` on each axis.
    public Layout slice(List<Integer> starts, List<Integer> limits, List<Integer> steps) {
        int[] dims = new int[shape.rank()];
        long[] moved = new long[shape.rank()];
        long begin = offset;
        for (int i = 0; i < dims.length; i++) {
            int step = steps.get(i);
            dims[i] = (limits.get(i) - starts.get(i) + step - 1) / step;
            moved[i] = stride(i) * step;
            begin += stride(i) * starts.get(i);
        }
        return of(dtype, Shape.of(dims), begin, moved);
    }

    /// Elements [start, start + size) of one axis.
    public Layout part(int axis, int start, int size) {
        return new Layout(dtype, shape.with(axis, size), offset + stride(axis) * start, strides);
    }

    /// Runs the axes backwards.
    public Layout reverse(List<Integer> axes) {
        List<Long> steps = new ArrayList<>(strides);
        long begin = offset;
        for (int axis : axes) {
            if (shape.dim(axis) > 0) {
                begin += stride(axis) * (shape.dim(axis) - 1L);
            }
            steps.set(axis, -stride(axis));
        }
        return new Layout(dtype, shape, begin, steps);
    }

    /// Without one axis: its element 0.
    public Layout without(int axis) {
        List<Long> steps = new ArrayList<>(strides);
        steps.remove(axis);
        return new Layout(dtype, shape.without(List.of(axis)), offset, steps);
    }

    /// The same elements in row-major order under another shape, if that is a view: axes split freely, and axes merge
    /// where the outer one steps over exactly the inner one. An axis of size 1 gets the step of a row-major layout of
    /// what is inside it.
    public Optional<Layout> reshape(Shape to) {
        if (to.equals(shape)) {
            return Optional.of(this);
        }
        long[] steps = new long[to.rank()];
        if (to.elements() == 0) {
            return Optional.of(of(dtype, to, offset, steps));
        }
        int from = 0;
        int next = 0;
        while (from < shape.rank() || next < to.rank()) {
            // One run of old axes and one of new axes with the same number of elements.
            int fromEnd = from;
            int nextEnd = next;
            long have = 1;
            long need = 1;
            if (fromEnd < shape.rank()) {
                have = shape.dim(fromEnd++);
            }
            if (nextEnd < to.rank()) {
                need = to.dim(nextEnd++);
            }
            while (have != need) {
                if (have < need) {
                    have *= shape.dim(fromEnd++);
                } else {
                    need *= to.dim(nextEnd++);
                }
            }
            long step = 0;
            long span = 1;
            boolean first = true;
            for (int i = fromEnd - 1; i >= from; i--) {
                if (shape.dim(i) == 1) {
                    continue;
                }
                if (first) {
                    step = stride(i);
                    first = false;
                } else if (stride(i) != step * span) {
                    return Optional.empty();
                }
                span *= shape.dim(i);
            }
            for (int i = nextEnd - 1; i >= next; i--) {
                steps[i] = step;
                step *= to.dim(i);
            }
            from = fromEnd;
            next = nextEnd;
        }
        return Optional.of(of(dtype, to, offset, steps).withUnitSteps());
    }

    /// Axes of size 1 step as a row-major layout would: their step is never taken, equal maps become equal layouts.
    Layout withUnitSteps() {
        long[] steps = new long[shape.rank()];
        for (int i = shape.rank() - 1; i >= 0; i--) {
            boolean last = i == shape.rank() - 1;
            steps[i] = shape.dim(i) != 1 ? stride(i) : last ? 1 : steps[i + 1] * shape.dim(i + 1);
        }
        return of(dtype, shape, offset, steps);
    }

    /// What a view op does to the layout of its operand; empty when it needs a copy or is no view.
    static Optional<Layout> view(Op op, Layout x) {
        return switch (op) {
            case Op.Reshape r -> x.reshape(r.shape());
            case Op.Transpose t -> Optional.of(x.transpose(t.permutation()));
            case Op.Broadcast b -> Optional.of(x.broadcast(b.shape(), b.axes()));
            case Op.Slice s -> Optional.of(x.slice(s.starts(), s.limits(), s.strides()));
            case Op.Reverse r -> Optional.of(x.reverse(r.axes()));
            default -> Optional.empty();
        };
    }

    /// The layout an operand of shape `shape` must have so that the view op's result has layout `result`; empty when
    /// there is none.
    static Optional<Layout> origin(Op op, Shape shape, Layout result) {
        return switch (op) {
            case Op.Reshape _ -> result.reshape(shape);
            case Op.Transpose t -> {
                Integer[] inverse = new Integer[shape.rank()];
                for (int i = 0; i < inverse.length; i++) {
                    inverse[t.permutation().get(i)] = i;
                }
                yield Optional.of(result.transpose(List.of(inverse)));
            }
            case Op.Reverse r -> Optional.of(result.reverse(r.axes()));
            default -> Optional.empty();
        };
    }

    /// The coarsest shape under which all layouts over one index space are still views: axes of size 1 vanish,
    /// neighbours merge when every layout steps through them as one axis. At least one axis remains.
    public static Shape collapse(Shape space, List<Layout> layouts) {
        int[] dims = new int[space.rank()];
        int n = 0;
        int last = -1;
        for (int i = 0; i < space.rank(); i++) {
            int size = space.dim(i);
            if (size == 1) {
                continue;
            }
            if (last >= 0 && merges(last, i, size, layouts)) {
                dims[n - 1] = Math.multiplyExact(dims[n - 1], size);
            } else {
                dims[n++] = size;
            }
            last = i;
        }
        return n == 0 ? Shape.of(1) : Shape.of(Arrays.copyOf(dims, n));
    }

    private static boolean merges(int outer, int inner, int size, List<Layout> layouts) {
        for (Layout layout : layouts) {
            if (layout.stride(outer) != layout.stride(inner) * size) {
                return false;
            }
        }
        return true;
    }

    /// For listings: `f32[4, 8]`, and the strides when they are not row-major's: `f32[4, 8]·[1, 4]`.
    @Override
    public String toString() {
        return type() + (isRowMajor() ? "" : "·" + strides) + (offset == 0 ? "" : "+" + offset);
    }
}
