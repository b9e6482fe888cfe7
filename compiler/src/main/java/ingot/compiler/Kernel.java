package ingot.compiler;

import ingot.ir.Graph;
import ingot.ir.Op;
import ingot.ir.Shape;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// One piece of machine work over a grid of tiles: data that a backend turns into code.
///
/// A kernel knows its operands only as layouts; addresses come with the call. Equal kernels share their code, so a
/// kernel never mentions names, buffers or value ids of the graph it came from: bodies are small graphs whose inputs
/// are named `0`, `1`, … after `reads` and whose outputs are named `0`, `1`, … after `writes`.
///
/// All layouts of a kernel have offset 0 (offsets belong to the call) and, except for `Loop`, elements of F32, I32 or
/// BOOL. Strides may be 0 (reads only), negative or permuted; reads and writes never overlap, except in place (`Map`),
/// and neither do two writes.
public sealed interface Kernel {
    List<Layout> reads();

    List<Layout> writes();

    /// A pointwise body over one index space; every element on its own.
    ///
    /// All body values have the shape of the space, of rank 1 or more, except scalar constants, whose only use is their
    /// `Broadcast` to the space. Ops: Input, Constant (scalar), Broadcast of it, Iota, and the pointwise ops Unary,
    /// Binary, Fma, Compare, Select, Convert, Bitcast on F32, I32 and BOOL. An output may be an input: a copy. Adjacent
    /// axes that all operands step through as one are merged.
    ///
    /// In place: a write may lie exactly on a read of the same strides and element size (optimizer updates, sums over
    /// micro-batches). So a run reads an element of all operands before it writes that element, and visits no element
    /// twice.
    record Map(Graph body, List<Layout> reads, List<Layout> writes) implements Kernel {
        public Map {
            reads = List.copyOf(reads);
            writes = List.copyOf(writes);
        }

        public Shape space() {
            return writes.getFirst().shape();
        }
    }

    /// A body over rows: the space is [outer…, length], reductions go along the last axis.
    ///
    /// Body values have the shape of the space or of `outer`; `Reduce` over the last axis leads from the first to the
    /// second, `Broadcast` back (also where the shape of `outer` could be broadcast otherwise: axes are 0 … rank − 2).
    /// Reads and writes may have either shape; a read that is the same for a whole row has the shape of `outer`.
    /// `outer` has rank 1 or more, scalars are [1]. Other ops as in `Map`, on both shapes. `Reduce` has one segment and
    /// any kind that its dtype allows. Softmax, layerNorm, cross entropy and their gradients are such rows.
    record Row(Graph body, Shape space, List<Layout> reads, List<Layout> writes) implements Kernel {
        public Row {
            reads = List.copyOf(reads);
            writes = List.copyOf(writes);
        }
    }

    /// Reductions over axis 0 of the space [length, outer…]: sums over the batch, vectorised over what is left.
    ///
    /// Pointwise ops of the space's shape come before, pointwise ops of the outer shape after the `Reduce`s (which may
    /// have segments, all the same number); all writes have the outer shape, of rank 1 or more. Nothing is broadcast
    /// back to the space.
    record Column(Graph body, Shape space, List<Layout> reads, List<Layout> writes) implements Kernel {
        public Column {
            reads = List.copyOf(reads);
            writes = List.copyOf(writes);
        }
    }

    /// c[batch…, m, n] = Σₖ a[batch…, m, k] · b[batch…, k, n] (+ bias[n]), one fma chain per element, `segments` as in
    /// `Op.Dot`.
    ///
    /// `bias` ([n]) is added after the sum with one rounding. Any number of batch axes, which a and b may repeat by stride 0; m, n and k are always there, possibly of size 1. All strides are free (q, k, v are views of
    /// one buffer), but wherever it can be arranged c has stride 1 along n.
    record Matmul(Layout a, Layout b, @Nullable Layout bias, Layout c, int segments, Old old) implements Kernel {
        /// What becomes of the numbers that c held: nothing, one rounded addition to them at the end, or the chains go
        /// on from them (one segment only).
        public enum Old {
            REPLACED,
            ADDED,
            CONTINUED
        }

        @Override
        public List<Layout> reads() {
            List<Layout> reads = new ArrayList<>(List.of(a, b));
            if (bias != null) {
                reads.add(bias);
            }
            return reads;
        }

        @Override
        public List<Layout> writes() {
            return List.of(c);
        }
    }

    /// out[g, m, n…] = Σ over k… of kernel[g, m, k…] · windows[g, k…, n…], one fma chain per element, k… row-major,
    /// `segments` as in `Op.Dot`.
    ///
    /// A matrix product whose second factor is overlapping windows of a tensor: element (k…, n…) lies wherever the
    /// strides say, several elements may be the same one, and the axes of k and n do not merge. There is always one
    /// axis g, m, k and n, possibly of size 1; k may be empty, which gives +0.
    record Convolution(Layout kernel, Layout windows, Layout out, int segments) implements Kernel {
        public Convolution {
            if (windows.shape().rank() != kernel.shape().rank() + out.shape().rank() - 3
                    || kernel.shape().rank() < 3
                    || out.shape().rank() < 3) {
                throw new IllegalArgumentException(
                        "convolution: expected kernel [g, m, k…], windows [g, k…, n…] and out" + " [g, m, n…], got "
                                + kernel + ", " + windows + ", " + out);
            }
        }

        /// How many axes k has.
        public int contracted() {
            return kernel.shape().rank() - 2;
        }

        @Override
        public List<Layout> reads() {
            return List.of(kernel, windows);
        }

        @Override
        public List<Layout> writes() {
            return List.of(out);
        }
    }

    /// Rows of a table: out[p…, i…] = table[clamp(indices[p…]), i…]; the table has rank 1 or more, indices rank 0 or
    /// more.
    record Gather(Layout table, Layout indices, Layout out) implements Kernel {
        @Override
        public List<Layout> reads() {
            return List.of(table, indices);
        }

        @Override
        public List<Layout> writes() {
            return List.of(out);
        }
    }

    /// Sums rows into zeros: out[r, i…] = Σ updates[p, i…] over positions p with clamp(indices[p]) = r, ascending, in
    /// `segments` runs.
    record ScatterAdd(Layout indices, Layout updates, Layout out, int segments) implements Kernel {
        @Override
        public List<Layout> reads() {
            return List.of(indices, updates);
        }

        @Override
        public List<Layout> writes() {
            return List.of(out);
        }
    }

    /// One op by the plain loops of the reference interpreter, over row-major operands: for what has no faster form.
    ///
    /// The body is that one op over its inputs.
    record Loop(Graph body, List<Layout> reads, List<Layout> writes) implements Kernel {
        public Loop {
            reads = List.copyOf(reads);
            writes = List.copyOf(writes);
        }
    }

    /// Short name of the kind for listings.
    default String kind() {
        return switch (this) {
            case Map _ -> "map";
            case Row _ -> "row";
            case Column _ -> "column";
            case Matmul _ -> "matmul";
            case Convolution _ -> "convolution";
            case Gather _ -> "gather";
            case ScatterAdd _ -> "scatter-add";
            case Loop loop -> "loop " + name(loop.body());
        };
    }

    private static String name(Graph body) {
        Op last = body.outputs().firstEntry().getValue().op();
        return last instanceof Op.Composite composite
                ? composite.function().name()
                : last.getClass().getSimpleName();
    }
}
