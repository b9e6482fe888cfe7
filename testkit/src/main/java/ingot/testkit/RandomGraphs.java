package ingot.testkit;

import ingot.ir.DType;
import ingot.ir.Function;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Shape;
import ingot.ir.ShapeRules;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/// Random graphs over all ops, small odd shapes and, in some inputs, NaN, infinities, denormals and −0.
///
/// No op shows the payload of a NaN, so that any two correct evaluations agree in every bit.
public final class RandomGraphs {
    private static final int[] SIZES = {1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 19};
    private static final int MAX_ELEMENTS = 3000;

    private final SplittableRandom random;
    private final GraphBuilder b;
    private final List<Value> pool = new ArrayList<>();
    private final Map<String, Tensor> inputs = new HashMap<>();
    private final Map<String, Tensor> weights = new HashMap<>();

    private RandomGraphs(long seed) {
        this.random = new SplittableRandom(seed);
        this.b = new GraphBuilder("random" + seed);
    }

    /// A graph of about `size` ops (sources and broadcasts not counted); values that nothing uses are outputs `y0`,
    /// `y1`, …
    public static GraphCase of(long seed, int size) {
        RandomGraphs graphs = new RandomGraphs(seed);
        for (int i = 0; i < 3; i++) {
            graphs.fresh(new Type(DType.F32, graphs.shape()));
        }
        while (size > 0) {
            if (graphs.step()) {
                size--;
            }
        }
        return graphs.finish();
    }

    private GraphCase finish() {
        Set<Value> used = new HashSet<>();
        b.values().forEach(value -> used.addAll(value.op().operands()));
        int n = 0;
        for (Value value : pool) {
            boolean source = value.op() instanceof Op.Input || value.op() instanceof Op.Weight;
            if (!source && (!used.contains(value) || random.nextInt(6) == 0)) {
                b.output("y" + n++, value);
            }
        }
        return new GraphCase(b.build(), inputs, weights);
    }

    /// Adds one op; false if the draw did not fit.
    private boolean step() {
        Op op = switch (random.nextInt(26)) {
            case 0, 1, 2 -> unary();
            case 3, 4, 5, 6 -> binary();
            case 7 -> {
                Value x = floats();
                yield new Op.Fma(x, like(x), like(x));
            }
            case 8 -> {
                Value x = any();
                yield new Op.Compare(pick(CompareKind.values()), x, like(x));
            }
            case 9 -> {
                Value x = any();
                yield new Op.Select(ofType(x.type().with(DType.BOOL)), x, like(x));
            }
            case 10 -> new Op.Convert(any(), pick(DType.F32, DType.F32, DType.I32, DType.BOOL));
            case 11 -> broadcast();
            case 12 -> reshape();
            case 13 -> {
                Value x = any();
                yield new Op.Transpose(x, shuffled(axes(x)));
            }
            case 14 -> slice();
            case 15 -> pad();
            case 16 -> concatenate();
            case 17 -> new Op.Reverse(any(), List.of());
            case 18 -> gather();
            case 19 -> along();
            case 20, 21 -> reduce();
            case 22 -> sequence();
            case 23 -> dot();
            case 24 -> window();
            default -> other();
        };
        if (op instanceof Op.Reverse reverse) {
            op = new Op.Reverse(reverse.x(), subset(axes(reverse.x())));
        }
        if (ShapeRules.infer(op).shape().elements() > MAX_ELEMENTS) {
            return false;
        }
        if (op instanceof Op.Composite composite) {
            pool.addAll(b.call(composite.function(), composite.operands()));
        } else {
            pool.add(b.add(op));
        }
        return true;
    }

    private Op unary() {
        Value x = random.nextInt(4) == 0 ? any() : floats();
        UnaryKind kind = switch (x.dtype()) {
            case F32, BF16, F16 -> {
                UnaryKind drawn = pick(UnaryKind.values());
                yield drawn == UnaryKind.NOT ? UnaryKind.EXP : drawn;
            }
            case I32, I64, I8, U8 -> pick(UnaryKind.NEGATE, UnaryKind.ABS, UnaryKind.SIGN, UnaryKind.NOT);
            case BOOL -> UnaryKind.NOT;
        };
        return new Op.Unary(kind, x);
    }

    private Op binary() {
        Value x = random.nextInt(4) == 0 ? any() : floats();
        BinaryKind kind = switch (x.dtype()) {
            case F32, BF16, F16 ->
                pick(
                        BinaryKind.ADD,
                        BinaryKind.SUBTRACT,
                        BinaryKind.MULTIPLY,
                        BinaryKind.DIVIDE,
                        BinaryKind.REMAINDER,
                        BinaryKind.MIN,
                        BinaryKind.MAX,
                        BinaryKind.POWER);
            case I32, I64, I8, U8 -> {
                BinaryKind drawn = pick(BinaryKind.values());
                yield drawn == BinaryKind.POWER ? BinaryKind.ADD : drawn;
            }
            case BOOL -> pick(BinaryKind.AND, BinaryKind.OR, BinaryKind.XOR);
        };
        Value y = like(x);
        return random.nextBoolean() ? new Op.Binary(kind, x, y) : new Op.Binary(kind, y, x);
    }

    private Op broadcast() {
        Value x = any();
        List<Integer> dims = new ArrayList<>();
        List<Integer> axes = new ArrayList<>();
        for (int i = 0; i <= x.shape().rank(); i++) {
            if (random.nextInt(3) == 0) {
                dims.add(pick(SIZES));
            }
            if (i < x.shape().rank()) {
                axes.add(dims.size());
                dims.add(x.shape().dim(i) == 1 ? pick(SIZES) : x.shape().dim(i));
            }
        }
        return new Op.Broadcast(x, Shape.of(dims), axes);
    }

    private Op reshape() {
        Value x = any();
        int n = (int) x.shape().elements();
        int first = divisor(n);
        int second = divisor(n / Math.max(first, 1));
        return new Op.Reshape(x, n == 0 ? Shape.of(0, 3) : Shape.of(first, second, n / first / second));
    }

    private Op slice() {
        Value x = any();
        List<Integer> starts = new ArrayList<>();
        List<Integer> limits = new ArrayList<>();
        List<Integer> strides = new ArrayList<>();
        for (int dim : x.shape().dims()) {
            int start = random.nextInt(Math.max(dim, 1));
            starts.add(start);
            limits.add(dim == 0 ? 0 : random.nextInt(start, dim) + 1);
            strides.add(random.nextInt(1, 4));
        }
        return new Op.Slice(x, starts, limits, strides);
    }

    private Op pad() {
        Value x = any();
        int rank = x.shape().rank();
        return new Op.Pad(x, ofType(new Type(x.dtype(), Shape.SCALAR)), ints(rank, 3), ints(rank, 3), ints(rank, 2));
    }

    private Op concatenate() {
        Value x = any();
        if (x.shape().rank() == 0) {
            return reshape();
        }
        int axis = random.nextInt(x.shape().rank());
        List<Value> operands = new ArrayList<>(List.of(x));
        for (int i = random.nextInt(3); i > 0; i--) {
            operands.add(ofType(x.type().with(x.shape().with(axis, pick(SIZES)))));
        }
        return new Op.Concatenate(operands, axis);
    }

    private Op gather() {
        Value x = withAxes();
        int axis = random.nextInt(x.shape().rank());
        if (random.nextBoolean() && x.shape().dim(axis) > 0) {
            return new Op.Gather(x, indices(Shape.of(pick(SIZES)), x.shape().dim(axis)), axis);
        }
        int size = pick(SIZES);
        int axes = random.nextInt(1, x.shape().rank() - axis + 1);
        Shape shape =
                Shape.of(IntStream.range(axis, axis + axes).map(x.shape()::dim).toArray());
        Value floats = x.dtype() == DType.BOOL ? ofType(x.type().with(DType.F32)) : x;
        return new Op.ScatterAdd(indices(shape, size), floats, axis, size, divisor((int) shape.elements()));
    }

    private Op along() {
        Value x = withAxes();
        int axis = random.nextInt(x.shape().rank());
        if (random.nextBoolean() && x.shape().dim(axis) > 0) {
            Shape shape = x.shape().with(axis, pick(SIZES));
            return new Op.TakeAlong(x, indices(shape, x.shape().dim(axis)), axis);
        }
        int size = pick(SIZES);
        Value floats = x.dtype() == DType.BOOL ? ofType(x.type().with(DType.F32)) : x;
        return new Op.AddAlong(indices(x.shape(), size), floats, axis, size);
    }

    private Op reduce() {
        Value x = random.nextInt(4) == 0 ? any() : floats();
        List<Integer> axes = subset(axes(x));
        ReduceKind kind = kind(x);
        int n = axes.stream().mapToInt(x.shape()::dim).reduce(1, (p, q) -> p * q);
        return new Op.Reduce(kind, x, axes, kind == ReduceKind.SUM && random.nextInt(3) == 0 ? divisor(n) : 1);
    }

    private Op sequence() {
        Value x = withAxes();
        int axis = random.nextInt(x.shape().rank());
        return random.nextBoolean()
                ? new Op.Cumulative(kind(x), x, axis, random.nextBoolean())
                : new Op.ArgSort(x, axis, random.nextBoolean());
    }

    private ReduceKind kind(Value x) {
        return x.dtype() == DType.BOOL
                ? pick(ReduceKind.AND, ReduceKind.OR)
                : pick(ReduceKind.SUM, ReduceKind.SUM, ReduceKind.PRODUCT, ReduceKind.MIN, ReduceKind.MAX);
    }

    private Op dot() {
        Value a = floats();
        List<Integer> free = shuffled(axes(a));
        int rank = free.size();
        int batch = rank > 2 ? random.nextInt(2) : 0;
        int contract = rank == 0 ? 0 : random.nextInt(1, Math.min(rank - batch, 2) + 1);
        List<Integer> batchA = List.copyOf(free.subList(0, batch));
        List<Integer> contractA = List.copyOf(free.subList(batch, batch + contract));
        // The axes of b: those of the pairs in any order, and up to two free ones.
        List<Integer> order = new ArrayList<>(
                IntStream.range(0, batch + contract + random.nextInt(3)).boxed().toList());
        order = shuffled(order);
        int[] dims = new int[order.size()];
        for (int i = 0; i < dims.length; i++) {
            int role = order.get(i);
            dims[i] = role < batch + contract ? a.shape().dim(free.get(role)) : pick(SIZES);
        }
        List<Integer> places = order;
        List<Integer> batchB =
                IntStream.range(0, batch).mapToObj(places::indexOf).toList();
        List<Integer> contractB = IntStream.range(batch, batch + contract)
                .mapToObj(places::indexOf)
                .toList();
        int k = contractA.stream().mapToInt(a.shape()::dim).reduce(1, (p, q) -> p * q);
        Value other = ofType(new Type(DType.F32, Shape.of(dims)));
        Op.Dot dot =
                new Op.Dot(a, other, batchA, batchB, contractA, contractB, random.nextInt(3) == 0 ? divisor(k) : 1);
        return dot.segments() == 1 && random.nextInt(3) == 0
                ? new Op.Dot(a, other, batchA, batchB, contractA, contractB, 1, ofType(ShapeRules.infer(dot)))
                : dot;
    }

    private Op window() {
        int spatial = random.nextInt(1, 3);
        int groups = random.nextInt(1, 3);
        boolean batchGroups = random.nextInt(4) == 0;
        int channels = random.nextInt(1, 5);
        int[] in = new int[spatial + 2];
        int[] kernel = new int[spatial + 2];
        in[0] = batchGroups ? 2 * groups : random.nextInt(1, 4);
        in[1] = batchGroups ? channels : channels * groups;
        kernel[0] = groups * random.nextInt(1, 4);
        kernel[1] = channels;
        for (int i = 2; i < in.length; i++) {
            in[i] = random.nextInt(1, 9);
            kernel[i] = random.nextInt(1, 4);
        }
        if (random.nextBoolean()) {
            Value x = ofType(Type.f32(in));
            Value w = ofType(Type.f32(kernel));
            return new Op.Convolution(
                    x, w, moves(spatial), batchGroups ? 1 : groups, batchGroups ? groups : 1, divisor(channels));
        }
        Value x = random.nextInt(4) == 0 ? ofType(Type.i32(in)) : ofType(Type.f32(in));
        List<Integer> size = new ArrayList<>();
        for (int i = 0; i < in.length; i++) {
            size.add(i < 2 ? 1 : random.nextInt(1, 4));
        }
        Op.Window moves = moves(in.length);
        ReduceKind kind = pick(ReduceKind.SUM, ReduceKind.MAX);
        Op.ReduceWindow reduce = new Op.ReduceWindow(kind, x, size, moves);
        if (kind == ReduceKind.SUM || random.nextBoolean()) {
            return reduce;
        }
        return new Op.ScatterWindowMax(x, ofType(ShapeRules.infer(reduce)), size, moves);
    }

    private Op.Window moves(int axes) {
        return new Op.Window(atLeastOne(axes), ints(axes, 3), ints(axes, 3), atLeastOne(axes), atLeastOne(axes));
    }

    private Op other() {
        return switch (random.nextInt(5)) {
            case 0 -> {
                Shape shape = Shape.of(pick(SIZES), pick(SIZES));
                yield new Op.Iota(new Type(pick(DType.F32, DType.I32), shape), random.nextInt(2));
            }
            case 1 -> new Op.RandomBits(shape(), random.nextInt(9), ofType(Type.i32(4)));
            case 2 -> new Op.Bitcast(ofType(new Type(DType.I32, floats().shape())), DType.F32);
            case 3 -> {
                Value x = floats();
                yield new Op.Composite(logistic(x.shape()), List.of(x, like(x)));
            }
            default -> {
                Value x = floats();
                yield new Op.Constant(RandomTensors.special(x.type(), random));
            }
        };
    }

    /// (x, y) → (y / (1 + e^(−x)), x·y).
    private static Function logistic(Shape shape) {
        GraphBuilder d = new GraphBuilder("logistic");
        Value x = d.input("0", new Type(DType.F32, shape));
        Value y = d.input("1", new Type(DType.F32, shape));
        d.output("y", d.divide(y, d.add(d.exp(d.negate(x)), 1)));
        d.output("product", d.multiply(x, y));
        return Function.of("logistic", d.build());
    }

    // ---- operands

    private Value any() {
        return pool.get(random.nextInt(pool.size()));
    }

    private Value floats() {
        for (int i = 0; i < 20; i++) {
            Value value = any();
            if (value.dtype() == DType.F32) {
                return value;
            }
        }
        return fresh(new Type(DType.F32, shape()));
    }

    private Value withAxes() {
        for (int i = 0; i < 20; i++) {
            Value value = any();
            if (value.shape().rank() > 0) {
                return value;
            }
        }
        return fresh(Type.f32(pick(SIZES), pick(SIZES)));
    }

    private Value like(Value x) {
        return ofType(x.type());
    }

    /// A known value of the type, a scalar or a row broadcast to it, or something new.
    private Value ofType(Type type) {
        List<Value> known =
                pool.stream().filter(value -> value.type().equals(type)).toList();
        if (!known.isEmpty() && random.nextInt(4) > 0) {
            return known.get(random.nextInt(known.size()));
        }
        int rank = type.shape().rank();
        if (rank > 0 && random.nextInt(3) == 0) {
            return b.broadcast(fresh(type.with(Shape.SCALAR)), type.shape());
        }
        if (rank > 1 && random.nextInt(3) == 0) {
            return b.broadcast(fresh(type.with(Shape.of(type.shape().dim(-1)))), type.shape());
        }
        return fresh(type);
    }

    private Value fresh(Type type) {
        Tensor tensor = random.nextInt(4) == 0 ? RandomTensors.special(type, random) : RandomTensors.of(type, random);
        return source(tensor);
    }

    /// Mostly valid indices, some outside.
    private Value indices(Shape shape, int size) {
        Tensor tensor = RandomTensors.indices(shape, size, random);
        for (int i = 0; i < shape.elements(); i++) {
            if (random.nextInt(16) == 0) {
                tensor.setLong(i, random.nextInt(-3, size + 3));
            }
        }
        return source(tensor);
    }

    private Value source(Tensor tensor) {
        Value value;
        if (random.nextInt(4) == 0) {
            String name = "w" + weights.size();
            weights.put(name, tensor);
            value = b.weight(name, tensor.type());
        } else {
            String name = "x" + inputs.size();
            inputs.put(name, tensor);
            value = b.input(name, tensor.type());
        }
        pool.add(value);
        return value;
    }

    // ---- draws

    private Shape shape() {
        int[] dims = new int[random.nextInt(4)];
        for (int i = 0; i < dims.length; i++) {
            dims[i] = random.nextInt(60) == 0 ? 0 : pick(SIZES);
        }
        return Shape.of(dims).elements() > MAX_ELEMENTS / 2 ? Shape.of(dims[0]) : Shape.of(dims);
    }

    private int divisor(int n) {
        int[] divisors =
                IntStream.rangeClosed(1, Math.max(n, 1)).filter(d -> n % d == 0).toArray();
        return pick(divisors);
    }

    private List<Integer> ints(int n, int bound) {
        return random.ints(n, 0, bound).boxed().toList();
    }

    private List<Integer> atLeastOne(int n) {
        return random.ints(n, 1, 3).boxed().toList();
    }

    private static List<Integer> axes(Value x) {
        return IntStream.range(0, x.shape().rank()).boxed().toList();
    }

    private List<Integer> subset(List<Integer> axes) {
        return axes.stream().filter(axis -> random.nextBoolean()).toList();
    }

    private List<Integer> shuffled(List<Integer> list) {
        List<Integer> shuffled = new ArrayList<>(list);
        for (int i = shuffled.size() - 1; i > 0; i--) {
            Collections.swap(shuffled, i, random.nextInt(i + 1));
        }
        return shuffled;
    }

    private int pick(int... choices) {
        return choices[random.nextInt(choices.length)];
    }

    @SafeVarargs
    private <T> T pick(T... choices) {
        return choices[random.nextInt(choices.length)];
    }
}
