package ingot.ir;

import java.util.List;
import org.jspecify.annotations.Nullable;

/// A primitive of the graph: what is computed, from which values.
///
/// Shapes are always explicit: operands of pointwise ops have equal shapes, `Broadcast` makes them so. Axes are never
/// negative here. What an op means is answered by one exhaustive switch per question: `ShapeRules` (types),
/// `Interpreter` (values),
/// `Gradients` (derivatives), the lowering of the compiler (kernels).
public sealed interface Op {
    List<Value> operands();

    // ---- sources

    /// A tensor given at run time. `name` is unique in the graph.
    record Input(String name, Type type) implements Op {
        @Override
        public List<Value> operands() {
            return List.of();
        }
    }

    /// A tensor that belongs to the model and lives in the weight store.
    record Weight(String name, Type type) implements Op {
        @Override
        public List<Value> operands() {
            return List.of();
        }
    }

    record Constant(Tensor data) implements Op {
        @Override
        public List<Value> operands() {
            return List.of();
        }
    }

    /// 0, 1, 2, … along `axis`; dtype I32 or F32.
    record Iota(Type type, int axis) implements Op {
        @Override
        public List<Value> operands() {
            return List.of();
        }
    }

    /// 32 random bits per element (I32), a pure function of `key`, `stream` and position.
    ///
    /// `key` is I32[4] = (seed low, seed high, step, first row): the element at row r (axis 0) and row-major index i inside the row
    /// depends on (seed, stream, step, first row + r, i) only, so that a slice of the batch draws what the whole batch
    /// would. A scalar shape counts as row 0, index 0.
    record RandomBits(Shape shape, int stream, Value key) implements Op {
        @Override
        public List<Value> operands() {
            return List.of(key);
        }
    }

    // ---- pointwise

    record Unary(UnaryKind kind, Value x) implements Op {
        @Override
        public List<Value> operands() {
            return List.of(x);
        }
    }

    record Binary(BinaryKind kind, Value a, Value b) implements Op {
        @Override
        public List<Value> operands() {
            return List.of(a, b);
        }
    }

    /// a·b + c with one rounding.
    record Fma(Value a, Value b, Value c) implements Op {
        @Override
        public List<Value> operands() {
            return List.of(a, b, c);
        }
    }

    /// IEEE comparison; BOOL result. BOOL operands compare as false < true.
    record Compare(CompareKind kind, Value a, Value b) implements Op {
        @Override
        public List<Value> operands() {
            return List.of(a, b);
        }
    }

    /// `a` where `condition` (BOOL), else `b`.
    record Select(Value condition, Value a, Value b) implements Op {
        @Override
        public List<Value> operands() {
            return List.of(condition, a, b);
        }
    }

    /// Element type conversion: float → integer truncates toward zero and saturates to the target's range, NaN → 0;
    /// anything → BOOL is `≠ 0`; narrowing floats rounds to nearest even; narrowing integers keeps the low bits.
    record Convert(Value x, DType to) implements Op {
        @Override
        public List<Value> operands() {
            return List.of(x);
        }
    }

    /// The same bits as another type of equal width: F32 ↔ I32, BF16 ↔ F16, I8 ↔ U8.
    record Bitcast(Value x, DType to) implements Op {
        @Override
        public List<Value> operands() {
            return List.of(x);
        }
    }

    // ---- data movement

    /// Repeats `x`: operand axis i becomes result axis `axes[i]` (ascending); it has the same size there, or size 1 and
    /// is repeated.
    record Broadcast(Value x, Shape shape, List<Integer> axes) implements Op {
        public Broadcast {
            axes = List.copyOf(axes);
        }

        @Override
        public List<Value> operands() {
            return List.of(x);
        }
    }

    record Reshape(Value x, Shape shape) implements Op {
        @Override
        public List<Value> operands() {
            return List.of(x);
        }
    }

    /// Result axis i is operand axis `permutation[i]`.
    record Transpose(Value x, List<Integer> permutation) implements Op {
        public Transpose {
            permutation = List.copyOf(permutation);
        }

        @Override
        public List<Value> operands() {
            return List.of(x);
        }
    }

    /// Elements `start, start + stride, …` below `limit` on each axis.
    record Slice(Value x, List<Integer> starts, List<Integer> limits, List<Integer> strides) implements Op {
        public Slice {
            starts = List.copyOf(starts);
            limits = List.copyOf(limits);
            strides = List.copyOf(strides);
        }

        @Override
        public List<Value> operands() {
            return List.of(x);
        }
    }

    /// Adds `low` elements before, `high` after and `interior` between elements on each axis, all equal to the scalar
    /// `padding`.
    record Pad(Value x, Value padding, List<Integer> low, List<Integer> high, List<Integer> interior) implements Op {
        public Pad {
            low = List.copyOf(low);
            high = List.copyOf(high);
            interior = List.copyOf(interior);
        }

        @Override
        public List<Value> operands() {
            return List.of(x, padding);
        }
    }

    record Concatenate(List<Value> operands, int axis) implements Op {
        public Concatenate {
            operands = List.copyOf(operands);
        }
    }

    record Reverse(Value x, List<Integer> axes) implements Op {
        public Reverse {
            axes = List.copyOf(axes);
        }

        @Override
        public List<Value> operands() {
            return List.of(x);
        }
    }

    // ---- indexing

    /// Takes slices of `x` along `axis`: result shape = x[..axis] + indices + x[axis+1..]. Indices (I32) outside [0,
    /// size) are clamped.
    record Gather(Value x, Value indices, int axis) implements Op {
        @Override
        public List<Value> operands() {
            return List.of(x, indices);
        }
    }

    /// The gradient of `Gather`: sums `updates` into zeros of `size` slices along `axis`, positions ascending
    /// (row-major over `indices`).
    ///
    /// The positions are divided into `segments` equal runs; each run is one chain from +0, runs combine in the fixed
    /// tree. Indices outside [0, size) are clamped.
    record ScatterAdd(Value indices, Value updates, int axis, int size, int segments) implements Op {
        @Override
        public List<Value> operands() {
            return List.of(indices, updates);
        }
    }

    /// Element i of the result is `x[…, indices[i], …]`; `indices` (I32) has x's shape except along `axis`. Clamped
    /// like `Gather`.
    record TakeAlong(Value x, Value indices, int axis) implements Op {
        @Override
        public List<Value> operands() {
            return List.of(x, indices);
        }
    }

    /// The gradient of `TakeAlong`: sums `updates` into zeros of `size` along `axis`, ascending.
    record AddAlong(Value indices, Value updates, int axis, int size) implements Op {
        @Override
        public List<Value> operands() {
            return List.of(indices, updates);
        }
    }

    /// Indices (I32) that sort `x` along `axis`, stable, also when descending; NaN counts as the largest value, −0 <
    /// +0.
    record ArgSort(Value x, int axis, boolean descending) implements Op {
        @Override
        public List<Value> operands() {
            return List.of(x);
        }
    }

    // ---- reductions

    /// Combines along `axes`, which vanish. The reduced elements are numbered row-major over `axes` in ascending order.
    ///
    /// SUM and PRODUCT are floating-point contracts: 16 strided lanes and a fixed tree (docs/arithmetic.md). `segments`
    /// > 1 (SUM only): the numbered elements are divided into equal runs, each reduced so, then combined in the fixed
    /// tree: a sum over batch shards.
    record Reduce(ReduceKind kind, Value x, List<Integer> axes, int segments) implements Op {
        public Reduce {
            axes = List.copyOf(axes);
        }

        @Override
        public List<Value> operands() {
            return List.of(x);
        }
    }

    /// Running reduction along `axis`: one chain from the identity, ascending, or descending if `reverse`.
    record Cumulative(ReduceKind kind, Value x, int axis, boolean reverse) implements Op {
        @Override
        public List<Value> operands() {
            return List.of(x);
        }
    }

    /// General contraction. Result axes: batch axes, then the free axes of `a`, then those of `b`.
    ///
    /// Each element is one fp32 chain `acc = fma(a, b, acc)` over the contracted axes (row-major in the listed order),
    /// from +0 or from the element of `start`: a chain that is taken up where another dot left it, in one segment.
    /// `segments` > 1: the chain is divided into equal runs, each from +0, combined in the fixed tree: a sum over batch shards.
    record Dot(
            Value a,
            Value b,
            List<Integer> batchA,
            List<Integer> batchB,
            List<Integer> contractA,
            List<Integer> contractB,
            int segments,
            @Nullable Value start)
            implements Op {
        public Dot(
                Value a,
                Value b,
                List<Integer> batchA,
                List<Integer> batchB,
                List<Integer> contractA,
                List<Integer> contractB,
                int segments) {
            this(a, b, batchA, batchB, contractA, contractB, segments, null);
        }

        public Dot {
            batchA = List.copyOf(batchA);
            batchB = List.copyOf(batchB);
            contractA = List.copyOf(contractA);
            contractB = List.copyOf(contractB);
        }

        @Override
        public List<Value> operands() {
            return start == null ? List.of(a, b) : List.of(a, b, start);
        }
    }

    /// Convolution of `x` [batch, channels, spatial…] with `kernel` [out, channels / groups, window…] → [out batch,
    /// out, spatial…].
    ///
    /// One fma chain per element over (input channel, window) row-major; positions in the padding are skipped.
    /// `batchGroups` > 1 divides the batch instead of the channels (the gradient of a grouped kernel). `segments` divides the input channels.
    record Convolution(Value x, Value kernel, Window window, int groups, int batchGroups, int segments) implements Op {
        @Override
        public List<Value> operands() {
            return List.of(x, kernel);
        }
    }

    /// Reduces every window of `x` over the window's positions in row-major order, padding skipped, one chain.
    ///
    /// The window covers all axes of `x`; SUM or MAX.
    record ReduceWindow(ReduceKind kind, Value x, List<Integer> size, Window window) implements Op {
        public ReduceWindow {
            size = List.copyOf(size);
        }

        @Override
        public List<Value> operands() {
            return List.of(x);
        }
    }

    /// The gradient of a MAX `ReduceWindow`: adds each element of `updates` to the first largest position of its
    /// window, ascending.
    record ScatterWindowMax(Value x, Value updates, List<Integer> size, Window window) implements Op {
        public ScatterWindowMax {
            size = List.copyOf(size);
        }

        @Override
        public List<Value> operands() {
            return List.of(x, updates);
        }
    }

    // ---- groups

    /// A call of a named function that carries its own meaning as a graph: its value is the function's first result.
    record Composite(Function function, List<Value> operands) implements Op {
        public Composite {
            operands = List.copyOf(operands);
        }
    }

    /// Result `index` of a `Composite`; index 0 is the composite itself.
    record Result(Value composite, int index) implements Op {
        @Override
        public List<Value> operands() {
            return List.of(composite);
        }
    }

    /// The one open door: an operator written by the user in Java.
    record Custom(CustomFunction function, List<Value> operands) implements Op {
        public Custom {
            operands = List.copyOf(operands);
        }
    }

    enum UnaryKind {
        NEGATE,
        ABS,
        SIGN,
        FLOOR,
        CEIL,
        /// To nearest, ties to even.
        ROUND,
        SQRT,
        EXP,
        LOG,
        SIN,
        COS,
        TANH,
        ERF,
        /// BOOL: logical; integers: bitwise.
        NOT
    }

    enum BinaryKind {
        ADD,
        SUBTRACT,
        MULTIPLY,
        /// Integers: Java's truncating division; by zero gives 0.
        DIVIDE,
        /// Java's `%`; integers by zero give 0.
        REMAINDER,
        /// NaN if either is; −0 < +0.
        MIN,
        MAX,
        /// aᵇ, its own function of the contract; the special cases are those of C99 (docs/arithmetic.md).
        POWER,
        AND,
        OR,
        XOR,
        /// Shift amounts count modulo the width of the type.
        SHIFT_LEFT,
        SHIFT_RIGHT,
        SHIFT_RIGHT_UNSIGNED
    }

    enum CompareKind {
        EQUAL,
        NOT_EQUAL,
        LESS,
        LESS_EQUAL,
        GREATER,
        GREATER_EQUAL
    }

    enum ReduceKind {
        SUM,
        PRODUCT,
        MIN,
        MAX,
        AND,
        OR
    }

    /// How a window moves, one entry per windowed axis: step, padding before and after, and the gaps inside input and
    /// window.
    record Window(
            List<Integer> strides,
            List<Integer> low,
            List<Integer> high,
            List<Integer> inputDilation,
            List<Integer> windowDilation) {
        public Window {
            strides = List.copyOf(strides);
            low = List.copyOf(low);
            high = List.copyOf(high);
            inputDilation = List.copyOf(inputDilation);
            windowDilation = List.copyOf(windowDilation);
        }
    }
}
