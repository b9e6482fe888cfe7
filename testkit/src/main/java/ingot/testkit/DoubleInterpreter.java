package ingot.testkit;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.Interpreter;
import ingot.ir.Op;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Operands;
import ingot.ir.ScalarMath;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/// Evaluates a graph in double precision: every tensor is a `double[]`, integers and BOOL included.
///
/// Independent of the interpreter's arithmetic, with `StrictMath` for the functions, so that finite differences are
/// exact to about
/// 10⁻¹⁰. Moving data is left to the interpreter: eight-byte elements travel as I64. Ops on bits of floats have no
/// meaning here.
public final class DoubleInterpreter {
    private DoubleInterpreter() {}

    /// All outputs; `tensors` holds inputs and weights by name.
    public static Map<String, double[]> run(Graph graph, Map<String, double[]> tensors) {
        return run(graph, tensors, graph.outputs().keySet());
    }

    /// The named outputs; only what they need is evaluated.
    public static Map<String, double[]> run(Graph graph, Map<String, double[]> tensors, Collection<String> outputs) {
        BitSet live = new BitSet();
        outputs.forEach(key -> live.set(graph.output(key).id()));
        for (int id = graph.values().size() - 1; id >= 0; id--) {
            if (live.get(id)) {
                graph.values().get(id).op().operands().forEach(operand -> live.set(operand.id()));
            }
        }
        double[][] known = new double[graph.values().size()][];
        Map<Integer, List<double[]>> composites = new LinkedHashMap<>();
        for (Value value : graph.values()) {
            if (!live.get(value.id())) {
                continue;
            }
            List<double[]> operands = value.op().operands().stream()
                    .map(operand -> known[operand.id()])
                    .toList();
            known[value.id()] = switch (value.op()) {
                case Op.Input x -> given(x.name(), x.type(), tensors);
                case Op.Weight x -> given(x.name(), x.type(), tensors);
                case Op.Composite x -> {
                    List<double[]> results = call(x, operands);
                    composites.put(value.id(), results);
                    yield results.getFirst();
                }
                case Op.Result x ->
                    composites.getOrDefault(x.composite().id(), List.of()).get(x.index());
                default -> evaluate(value.op(), value.type(), operands);
            };
        }
        Map<String, double[]> results = new LinkedHashMap<>();
        outputs.forEach(key -> results.put(key, known[graph.output(key).id()]));
        return results;
    }

    /// The elements of a tensor, exactly (I64 beyond 2⁵³ rounds).
    public static double[] doubles(Tensor tensor) {
        double[] values = new double[(int) tensor.shape().elements()];
        for (int i = 0; i < values.length; i++) {
            values[i] = tensor.type().dtype().isFloating() ? tensor.getFloat(i) : tensor.getLong(i);
        }
        return values;
    }

    private static double[] given(String name, Type type, Map<String, double[]> tensors) {
        double[] values = tensors.get(name);
        if (values == null || values.length != type.shape().elements()) {
            throw new IllegalArgumentException(name + " : " + type + " expected, got "
                    + (values == null ? "nothing" : values.length + " elements"));
        }
        return values;
    }

    private static List<double[]> call(Op.Composite op, List<double[]> operands) {
        Map<String, double[]> inputs = new LinkedHashMap<>();
        for (int i = 0; i < operands.size(); i++) {
            inputs.put(Integer.toString(i), operands.get(i));
        }
        return List.copyOf(run(op.function().definition(), inputs).values());
    }

    private static double[] evaluate(Op op, Type type, List<double[]> in) {
        int n = (int) type.shape().elements();
        return switch (op) {
            case Op.Input _, Op.Weight _, Op.Composite _, Op.Result _ -> throw new IllegalArgumentException("" + op);
            case Op.Constant x -> doubles(x.data());
            case Op.Iota x -> doubles(Interpreter.evaluate(x, List.of()));
            case Op.RandomBits x -> randomBits(x, in.get(0));
            case Op.Unary x -> fill(n, i -> unary(x.kind(), in.get(0)[i], type.dtype()));
            case Op.Binary x -> fill(n, i -> binary(x.kind(), in.get(0)[i], in.get(1)[i], type.dtype()));
            case Op.Fma _ -> fill(n, i -> in.get(0)[i] * in.get(1)[i] + in.get(2)[i]);
            case Op.Compare x -> fill(n, i -> compare(x.kind(), in.get(0)[i], in.get(1)[i]) ? 1 : 0);
            case Op.Select _ -> fill(n, i -> in.get(0)[i] != 0 ? in.get(1)[i] : in.get(2)[i]);
            case Op.Convert x -> fill(n, i -> convert(in.get(0)[i], x.to()));
            case Op.Bitcast x -> throw new IllegalArgumentException("no bits in double precision: " + x);
            case Op.Broadcast _, Op.Reshape _, Op.Transpose _, Op.Slice _, Op.Pad _, Op.Concatenate _, Op.Reverse _ ->
                move(op, in);
            case Op.Gather _, Op.TakeAlong _ -> move(op, in);
            case Op.ScatterAdd x ->
                scatter(x.indices().shape(), x.axis(), x.size(), x.updates().shape(), in, n);
            case Op.AddAlong x -> {
                int inner = (int) type.shape().strides()[x.axis()];
                int length = x.indices().shape().dim(x.axis());
                double[] sum = new double[n];
                for (int i = 0; i < in.get(0).length; i++) {
                    int at = clamp(in.get(0)[i], x.size());
                    sum[(i / inner / length * x.size() + at) * inner + i % inner] += in.get(1)[i];
                }
                yield sum;
            }
            case Op.ArgSort x -> argSort(x, type.shape(), in.get(0));
            case Op.Reduce x -> reduce(x, in.get(0), n);
            case Op.Cumulative x -> cumulative(x, type, in.get(0));
            case Op.Dot x ->
                dot(
                        x,
                        in.get(0),
                        in.get(1),
                        x.start() == null ? new double[n] : in.get(2).clone());
            case Op.Convolution x -> convolution(x, type.shape(), in.get(0), in.get(1));
            case Op.ReduceWindow x -> reduceWindow(x, type.shape(), in.get(0));
            case Op.ScatterWindowMax x -> scatterMax(x, in.get(0), in.get(1));
            case Op.Custom x ->
                throw new IllegalArgumentException(
                        "no double meaning of custom op " + x.function().name());
        };
    }

    private static double unary(Op.UnaryKind kind, double x, DType dtype) {
        return switch (kind) {
            case NEGATE -> dtype.isFloating() ? -x : 0 - x;
            case ABS -> Math.abs(x);
            case SIGN -> Math.signum(x);
            case FLOOR -> Math.floor(x);
            case CEIL -> Math.ceil(x);
            case ROUND -> Math.rint(x);
            case SQRT -> Math.sqrt(x);
            case EXP -> StrictMath.exp(x);
            case LOG -> StrictMath.log(x);
            case SIN -> StrictMath.sin(x);
            case COS -> StrictMath.cos(x);
            case TANH -> StrictMath.tanh(x);
            case ERF -> erf(x);
            case NOT -> dtype == DType.BOOL ? 1 - x : ~(long) x;
        };
    }

    /// 2/√π · e^(−x²) · Σ 2ⁿ x^(2n+1) / (2n+1)‼, all terms of one sign.
    static double erf(double x) {
        if (Double.isNaN(x) || Math.abs(x) > 6) {
            return Math.signum(x);
        }
        double term = x;
        double sum = x;
        for (int n = 1; Math.abs(term) > Math.abs(sum) * 1e-18; n++) {
            term *= 2 * x * x / (2 * n + 1);
            sum += term;
        }
        return 2 / Math.sqrt(Math.PI) * Math.exp(-x * x) * sum;
    }

    private static double binary(Op.BinaryKind kind, double a, double b, DType dtype) {
        if (dtype.isFloating()) {
            return switch (kind) {
                case ADD -> a + b;
                case SUBTRACT -> a - b;
                case MULTIPLY -> a * b;
                case DIVIDE -> a / b;
                case REMAINDER -> a % b;
                case MIN -> Math.min(a, b);
                case MAX -> Math.max(a, b);
                case POWER -> StrictMath.pow(a, b);
                case AND, OR, XOR, SHIFT_LEFT, SHIFT_RIGHT, SHIFT_RIGHT_UNSIGNED ->
                    throw new IllegalArgumentException(kind + ": undefined for floats");
            };
        }
        // Whole numbers: as the interpreter has it.
        Tensor x = integer(a, dtype);
        Tensor y = integer(b, dtype);
        Value value = new Value(0, new Op.Input("", x.type()), x.type());
        return Interpreter.evaluate(new Op.Binary(kind, value, value), List.of(x, y))
                .getLong(0);
    }

    private static Tensor integer(double value, DType dtype) {
        Tensor tensor = Tensor.zeros(new Type(dtype, Shape.SCALAR));
        tensor.setLong(0, (long) value);
        return tensor;
    }

    private static boolean compare(Op.CompareKind kind, double a, double b) {
        return switch (kind) {
            case EQUAL -> a == b;
            case NOT_EQUAL -> a != b;
            case LESS -> a < b;
            case LESS_EQUAL -> a <= b;
            case GREATER -> a > b;
            case GREATER_EQUAL -> a >= b;
        };
    }

    private static double convert(double x, DType to) {
        return switch (to) {
            case F32, BF16, F16 -> x;
            case I32 -> (int) x;
            case I64 -> (long) x;
            case I8 -> Math.clamp((int) x, -128, 127);
            case U8 -> Math.clamp((int) x, 0, 255);
            case BOOL -> x != 0 ? 1 : 0;
        };
    }

    private static double[] randomBits(Op.RandomBits op, double[] key) {
        int[] k = ScalarMath.randomKey((int) key[0], (int) key[1], (int) key[2], op.stream());
        int inner = op.shape().rank() == 0 ? 1 : (int) op.shape().strides()[0];
        return fill((int) op.shape().elements(), i -> ScalarMath.randomBits(k, (int) key[3] + i / inner, i % inner));
    }

    /// Runs an op that only moves elements with I64 in place of floats, index operands excepted.
    private static double[] move(Op op, List<double[]> in) {
        List<Value> operands = op.operands();
        Op moved = Operands.replace(
                op, v -> isIndex(op, v) ? v : new Value(v.id(), v.op(), v.type().with(DType.I64)));
        List<Tensor> tensors = new ArrayList<>();
        for (int i = 0; i < operands.size(); i++) {
            Type type = operands.get(i).type();
            double[] values = in.get(i);
            if (isIndex(op, operands.get(i)) && i == 1) {
                tensors.add(Tensor.of(
                        type.shape(),
                        Arrays.stream(values).mapToInt(x -> (int) x).toArray()));
            } else {
                long[] bits = Arrays.stream(values)
                        .mapToLong(Double::doubleToRawLongBits)
                        .toArray();
                tensors.add(Tensor.over(type.with(DType.I64), MemorySegment.ofArray(bits)));
            }
        }
        long[] bits = Interpreter.evaluate(moved, tensors).data().toArray(ValueLayout.JAVA_LONG_UNALIGNED);
        return Arrays.stream(bits).mapToDouble(Double::longBitsToDouble).toArray();
    }

    private static boolean isIndex(Op op, Value operand) {
        return switch (op) {
            case Op.Gather x -> x.indices() == operand;
            case Op.TakeAlong x -> x.indices() == operand;
            default -> false;
        };
    }

    private static double[] scatter(Shape index, int axis, int size, Shape updates, List<double[]> in, int n) {
        int inner = 1;
        for (int i = axis + index.rank(); i < updates.rank(); i++) {
            inner *= updates.dim(i);
        }
        double[] sum = new double[n];
        int positions = (int) index.elements();
        for (int i = 0; i < in.get(1).length; i++) {
            int outer = i / inner / positions;
            int at = clamp(in.get(0)[i / inner % positions], size);
            sum[(outer * size + at) * inner + i % inner] += in.get(1)[i];
        }
        return sum;
    }

    private static double[] argSort(Op.ArgSort op, Shape shape, double[] x) {
        int size = shape.dim(op.axis());
        int inner = (int) shape.strides()[op.axis()];
        double[] out = new double[x.length];
        for (int line = 0; size > 0 && line < x.length / size; line++) {
            int start = line / inner * size * inner + line % inner;
            List<Integer> order =
                    new ArrayList<>(IntStream.range(0, size).boxed().toList());
            order.sort((i, j) -> {
                int ascending = Double.compare(x[start + i * inner], x[start + j * inner]);
                return op.descending() ? -ascending : ascending;
            });
            for (int i = 0; i < size; i++) {
                out[start + i * inner] = order.get(i);
            }
        }
        return out;
    }

    private static double[] reduce(Op.Reduce op, double[] x, int n) {
        Shape shape = op.x().shape();
        double[] out = new double[n];
        Arrays.fill(out, identity(op.kind(), op.x().dtype()));
        for (int i = 0; i < x.length; i++) {
            int[] index = index(i, shape.dims());
            int to = 0;
            for (int axis = 0; axis < index.length; axis++) {
                to = op.axes().contains(axis) ? to : to * shape.dim(axis) + index[axis];
            }
            out[to] = combine(op.kind(), out[to], x[i]);
        }
        return out;
    }

    private static double[] cumulative(Op.Cumulative op, Type type, double[] x) {
        int size = type.shape().dim(op.axis());
        int inner = (int) type.shape().strides()[op.axis()];
        double[] out = new double[x.length];
        for (int i = 0; i < x.length; i++) {
            int at = op.reverse() ? x.length - 1 - i : i;
            boolean first = at / inner % size == (op.reverse() ? size - 1 : 0);
            double before = first ? identity(op.kind(), type.dtype()) : out[op.reverse() ? at + inner : at - inner];
            out[at] = combine(op.kind(), before, x[at]);
        }
        return out;
    }

    private static double identity(ReduceKind kind, DType dtype) {
        long bits = 8L * dtype.bytes();
        return switch (kind) {
            case SUM, OR -> 0;
            case PRODUCT, AND -> 1;
            case MIN -> dtype.isFloating() ? Double.POSITIVE_INFINITY : dtype == DType.U8 ? 255 : -1L >>> (65 - bits);
            case MAX -> dtype.isFloating() ? Double.NEGATIVE_INFINITY : dtype == DType.U8 ? 0 : -1L << (bits - 1);
        };
    }

    private static double combine(ReduceKind kind, double a, double b) {
        return switch (kind) {
            case SUM -> a + b;
            case PRODUCT -> a * b;
            case MIN, AND -> Math.min(a, b);
            case MAX, OR -> Math.max(a, b);
        };
    }

    /// Elements of b meet those of a that agree with them on the batch and the contracted axes.
    private static double[] dot(Op.Dot op, double[] a, double[] b, double[] out) {
        int[] dimsA = op.a().shape().dims();
        int[] dimsB = op.b().shape().dims();
        List<Integer> freeA = free(dimsA, op.batchA(), op.contractA());
        List<Integer> freeB = free(dimsB, op.batchB(), op.contractB());
        int sizeB = size(dimsB, freeB);
        int perBatch = size(dimsA, freeA) * sizeB;
        int contracted = size(dimsB, op.contractB());
        double[][] factors = new double[size(dimsB, op.batchB()) * contracted][sizeB];
        for (int j = 0; j < b.length; j++) {
            int[] at = index(j, dimsB);
            factors[place(at, dimsB, op.batchB()) * contracted + place(at, dimsB, op.contractB())][
                            place(at, dimsB, freeB)] =
                    b[j];
        }
        for (int i = 0; i < a.length; i++) {
            int[] at = index(i, dimsA);
            int batch = place(at, dimsA, op.batchA());
            int to = batch * perBatch + place(at, dimsA, freeA) * sizeB;
            double[] row = factors[batch * contracted + place(at, dimsA, op.contractA())];
            for (int j = 0; j < sizeB; j++) {
                out[to + j] += a[i] * row[j];
            }
        }
        return out;
    }

    private static List<Integer> free(int[] dims, List<Integer> batch, List<Integer> contract) {
        return IntStream.range(0, dims.length)
                .filter(axis -> !batch.contains(axis) && !contract.contains(axis))
                .boxed()
                .toList();
    }

    private static int size(int[] dims, List<Integer> axes) {
        int size = 1;
        for (int axis : axes) {
            size *= dims[axis];
        }
        return size;
    }

    /// The row-major number of `at` over the listed axes.
    private static int place(int[] at, int[] dims, List<Integer> axes) {
        int place = 0;
        for (int axis : axes) {
            place = place * dims[axis] + at[axis];
        }
        return place;
    }

    private static double[] convolution(Op.Convolution op, Shape shape, double[] x, double[] kernel) {
        int[] in = op.x().shape().dims();
        int[] window = op.kernel().shape().dims();
        int[] spatial = Arrays.copyOfRange(in, 2, in.length);
        int[] out = shape.dims();
        double[] sum = new double[(int) shape.elements()];
        for (int i = 0; i < sum.length; i++) {
            int[] o = index(i, out);
            for (int k = 0; k < kernel.length; k++) {
                int[] w = index(k, window);
                if (w[0] != o[1]) {
                    continue;
                }
                int batch = o[1] / (out[1] / op.batchGroups()) * out[0] + o[0];
                int channel = o[1] / (out[1] / op.groups()) * window[1] + w[1];
                int at = element(
                        Arrays.copyOfRange(o, 2, o.length), Arrays.copyOfRange(w, 2, w.length), spatial, op.window());
                if (at >= 0) {
                    sum[i] +=
                            x[(batch * in[1] + channel) * Arrays.stream(spatial).reduce(1, (p, q) -> p * q) + at]
                                    * kernel[k];
                }
            }
        }
        return sum;
    }

    private static double[] reduceWindow(Op.ReduceWindow op, Shape shape, double[] x) {
        int[] size = op.size().stream().mapToInt(Integer::intValue).toArray();
        int windows = Arrays.stream(size).reduce(1, (p, q) -> p * q);
        return fill((int) shape.elements(), i -> {
            double acc = identity(op.kind(), op.x().dtype());
            for (int w = 0; w < windows; w++) {
                int at = element(
                        index(i, shape.dims()), index(w, size), op.x().shape().dims(), op.window());
                acc = at < 0 ? acc : combine(op.kind(), acc, x[at]);
            }
            return acc;
        });
    }

    private static double[] scatterMax(Op.ScatterWindowMax op, double[] x, double[] updates) {
        int[] size = op.size().stream().mapToInt(Integer::intValue).toArray();
        int windows = Arrays.stream(size).reduce(1, (p, q) -> p * q);
        double[] sum = new double[x.length];
        for (int i = 0; i < updates.length; i++) {
            int best = -1;
            for (int w = 0; w < windows; w++) {
                int at = element(
                        index(i, op.updates().shape().dims()),
                        index(w, size),
                        op.x().shape().dims(),
                        op.window());
                best = at >= 0 && (best < 0 || Double.compare(x[at], x[best]) > 0) ? at : best;
            }
            if (best >= 0) {
                sum[best] += updates[i];
            }
        }
        return sum;
    }

    /// The element that window position `w` of output position `p` reads, or −1.
    private static int element(int[] p, int[] w, int[] in, Op.Window window) {
        int flat = 0;
        for (int axis = 0; axis < in.length; axis++) {
            int at = p[axis] * window.strides().get(axis)
                    + w[axis] * window.windowDilation().get(axis)
                    - window.low().get(axis);
            int dilation = window.inputDilation().get(axis);
            if (at < 0 || at % dilation != 0 || at / dilation >= in[axis]) {
                return -1;
            }
            flat = flat * in[axis] + at / dilation;
        }
        return flat;
    }

    private static int[] index(int flat, int[] dims) {
        int[] index = new int[dims.length];
        for (int axis = dims.length - 1; axis >= 0; axis--) {
            index[axis] = flat % dims[axis];
            flat /= dims[axis];
        }
        return index;
    }

    private static int clamp(double index, int size) {
        return (int) Math.max(0, Math.min(index, size - 1));
    }

    private static double[] fill(int n, java.util.function.IntToDoubleFunction element) {
        return IntStream.range(0, n).mapToDouble(element).toArray();
    }
}
