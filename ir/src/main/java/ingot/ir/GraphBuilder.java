package ingot.ir;

import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Op.UnaryKind;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/// Builds a graph: adds ops, infers their types, and keeps equal ops as one value.
///
/// The named methods are sugar over `add(Op)`: pointwise ones broadcast their operands against each other by the NumPy
/// rule, axes may be negative.
public final class GraphBuilder {
    private final String name;
    private final LinkedHashMap<Op, Value> values = new LinkedHashMap<>();
    private final List<Value> order = new ArrayList<>();
    private final LinkedHashMap<String, Value> outputs = new LinkedHashMap<>();
    private final Map<String, Op> names = new HashMap<>();
    private final Map<Integer, String> scopes = new HashMap<>();
    private String scope = "";

    public GraphBuilder(String name) {
        this.name = name;
    }

    /// Adds an op, or finds the equal one that is already there.
    public Value add(Op op) {
        Value known = values.get(op);
        if (known != null) {
            return known;
        }
        for (Value operand : op.operands()) {
            if (operand.id() >= order.size() || order.get(operand.id()) != operand) {
                throw new IllegalArgumentException("graph " + name + ": operand " + operand + " : " + operand.type()
                        + " of " + op.getClass().getSimpleName() + " belongs to another graph");
            }
        }
        Type type;
        try {
            type = ShapeRules.infer(op);
        } catch (IngotException e) {
            String where = scope.isEmpty() ? "" : " (" + scope + ")";
            throw new IngotException(e.getMessage() + " at %" + order.size() + where, e);
        }
        String unique = switch (op) {
            case Op.Input input -> input.name();
            case Op.Weight weight -> weight.name();
            default -> "";
        };
        if (!unique.isEmpty() && names.putIfAbsent(unique, op) != null) {
            throw new IngotException("graph " + name + ": the name " + unique + " is declared twice, as "
                    + names.get(unique) + " and " + op);
        }
        Value value = new Value(order.size(), op, type);
        values.put(op, value);
        order.add(value);
        if (!scope.isEmpty()) {
            scopes.put(value.id(), scope);
        }
        return value;
    }

    /// Runs `body` with `part` appended to the scope name, which error messages and listings show.
    public <T> T scope(String part, java.util.function.Supplier<T> body) {
        String outer = scope;
        scope = outer.isEmpty() ? part : outer + "." + part;
        try {
            return body.get();
        } finally {
            scope = outer;
        }
    }

    /// Replaces the scope name for what is added next; used by passes that rebuild a graph.
    public void enterScope(String whole) {
        scope = whole;
    }

    public String scope() {
        return scope;
    }

    /// The scope a value was added in, or an empty string.
    public String scope(Value value) {
        return scopes.getOrDefault(value.id(), "");
    }

    public void output(String key, Value value) {
        if (outputs.putIfAbsent(key, value) != null) {
            throw new IngotException("graph " + name + ": the output " + key + " is declared twice");
        }
    }

    /// The values added so far, in order.
    public List<Value> values() {
        return java.util.Collections.unmodifiableList(order);
    }

    /// The whole graph, dead values included; `Passes` removes them.
    public Graph build() {
        return new Graph(name, order, outputs, scopes);
    }

    /// Copies `graph` into this builder with its inputs replaced by `operands`, in order; the results are its outputs
    /// in order.
    public List<Value> inline(Graph graph, List<Value> operands) {
        Map<Value, Value> mapped = new HashMap<>();
        List<Value> inputs = graph.inputs();
        if (inputs.size() != operands.size()) {
            throw new IngotException(
                    "inline " + graph.name() + ": expected " + inputs.size() + " operands, got " + operands.size());
        }
        for (int i = 0; i < inputs.size(); i++) {
            if (!inputs.get(i).type().equals(operands.get(i).type())) {
                throw new IngotException("inline " + graph.name() + ": operand " + i + " expected "
                        + inputs.get(i).type() + ", got " + operands.get(i).type());
            }
            mapped.put(inputs.get(i), operands.get(i));
        }
        for (Value value : graph.values()) {
            if (!mapped.containsKey(value)) {
                mapped.put(value, add(Operands.replace(value.op(), mapped::get)));
            }
        }
        return graph.outputs().values().stream().map(mapped::get).toList();
    }

    // ---- sources

    public Value input(String key, Type type) {
        return add(new Op.Input(key, type));
    }

    public Value weight(String key, Type type) {
        return add(new Op.Weight(key, type));
    }

    public Value constant(float value) {
        return add(new Op.Constant(Tensor.scalar(value)));
    }

    public Value constant(int value) {
        return add(new Op.Constant(Tensor.scalar(value)));
    }

    public Value constant(boolean value) {
        return add(new Op.Constant(Tensor.of(Shape.SCALAR, value)));
    }

    public Value constant(Tensor value) {
        return add(new Op.Constant(value));
    }

    /// A scalar of the same dtype as `like`.
    public Value scalarLike(Value like, double value) {
        Tensor tensor = Tensor.zeros(new Type(like.dtype(), Shape.SCALAR));
        if (like.dtype().isFloating()) {
            tensor.setFloat(0, (float) value);
        } else {
            tensor.setLong(0, (long) value);
        }
        return constant(tensor);
    }

    /// `value` repeated to the type of `like`.
    public Value fullLike(Value like, double value) {
        return broadcast(scalarLike(like, value), like.shape());
    }

    public Value iota(Type type, int axis) {
        return add(new Op.Iota(type, axis));
    }

    // ---- pointwise

    public Value unary(UnaryKind kind, Value x) {
        return add(new Op.Unary(kind, x));
    }

    public Value negate(Value x) {
        return unary(UnaryKind.NEGATE, x);
    }

    public Value exp(Value x) {
        return unary(UnaryKind.EXP, x);
    }

    public Value log(Value x) {
        return unary(UnaryKind.LOG, x);
    }

    public Value tanh(Value x) {
        return unary(UnaryKind.TANH, x);
    }

    public Value erf(Value x) {
        return unary(UnaryKind.ERF, x);
    }

    public Value sqrt(Value x) {
        return unary(UnaryKind.SQRT, x);
    }

    public Value binary(BinaryKind kind, Value a, Value b) {
        Shape shape = broadcastShape(kind.name().toLowerCase(java.util.Locale.ROOT), a, b);
        return add(new Op.Binary(kind, broadcast(a, shape), broadcast(b, shape)));
    }

    public Value add(Value a, Value b) {
        return binary(BinaryKind.ADD, a, b);
    }

    public Value subtract(Value a, Value b) {
        return binary(BinaryKind.SUBTRACT, a, b);
    }

    public Value multiply(Value a, Value b) {
        return binary(BinaryKind.MULTIPLY, a, b);
    }

    public Value divide(Value a, Value b) {
        return binary(BinaryKind.DIVIDE, a, b);
    }

    public Value max(Value a, Value b) {
        return binary(BinaryKind.MAX, a, b);
    }

    public Value min(Value a, Value b) {
        return binary(BinaryKind.MIN, a, b);
    }

    public Value add(Value a, double b) {
        return add(a, scalarLike(a, b));
    }

    public Value multiply(Value a, double b) {
        return multiply(a, scalarLike(a, b));
    }

    public Value fma(Value a, Value b, Value c) {
        Shape shape = broadcastShape("fma", a, b);
        shape = broadcastShapes("fma", shape, c.shape());
        return add(new Op.Fma(broadcast(a, shape), broadcast(b, shape), broadcast(c, shape)));
    }

    public Value compare(CompareKind kind, Value a, Value b) {
        Shape shape = broadcastShape("compare", a, b);
        return add(new Op.Compare(kind, broadcast(a, shape), broadcast(b, shape)));
    }

    public Value select(Value condition, Value a, Value b) {
        Shape shape = broadcastShape("select", a, b);
        shape = broadcastShapes("select", shape, condition.shape());
        return add(new Op.Select(broadcast(condition, shape), broadcast(a, shape), broadcast(b, shape)));
    }

    public Value convert(Value x, DType to) {
        return x.dtype() == to ? x : add(new Op.Convert(x, to));
    }

    public Value bitcast(Value x, DType to) {
        return x.dtype() == to ? x : add(new Op.Bitcast(x, to));
    }

    // ---- data movement

    /// Repeats by the NumPy rule: axes are aligned at the end, size 1 is repeated.
    public Value broadcast(Value x, Shape shape) {
        if (x.shape().equals(shape)) {
            return x;
        }
        int shift = shape.rank() - x.shape().rank();
        if (shift < 0) {
            throw new IngotException("broadcast: " + x.shape() + " has more axes than " + shape + " at " + x);
        }
        return broadcast(x, shape, IntStream.range(shift, shape.rank()).boxed().toList());
    }

    public Value broadcast(Value x, Shape shape, List<Integer> axes) {
        return x.shape().equals(shape) ? x : add(new Op.Broadcast(x, shape, axes));
    }

    /// One size may be −1: what is left.
    public Value reshape(Value x, int... dims) {
        int[] resolved = dims.clone();
        long known = 1;
        int open = -1;
        for (int i = 0; i < dims.length; i++) {
            if (dims[i] == -1) {
                open = i;
            } else {
                known *= dims[i];
            }
        }
        if (open >= 0) {
            resolved[open] = known == 0 ? 0 : (int) (x.shape().elements() / known);
        }
        return reshape(x, Shape.of(resolved));
    }

    public Value reshape(Value x, Shape shape) {
        return x.shape().equals(shape) ? x : add(new Op.Reshape(x, shape));
    }

    public Value transpose(Value x, int... permutation) {
        return transpose(x, IntStream.of(permutation).boxed().toList());
    }

    public Value transpose(Value x, List<Integer> permutation) {
        boolean identity = permutation.size() == x.shape().rank()
                && IntStream.range(0, permutation.size()).allMatch(i -> permutation.get(i) == i);
        return identity ? x : add(new Op.Transpose(x, permutation));
    }

    /// Elements [start, limit) of one axis.
    public Value slice(Value x, int axis, int start, int limit) {
        int at = axis(x, axis);
        List<Integer> starts =
                new ArrayList<>(java.util.Collections.nCopies(x.shape().rank(), 0));
        List<Integer> limits =
                new ArrayList<>(IntStream.of(x.shape().dims()).boxed().toList());
        starts.set(at, start);
        limits.set(at, limit);
        if (start == 0 && limit == x.shape().dim(at)) {
            return x;
        }
        return add(new Op.Slice(
                x, starts, limits, java.util.Collections.nCopies(x.shape().rank(), 1)));
    }

    public Value concatenate(List<Value> xs, int axis) {
        return xs.size() == 1 ? xs.getFirst() : add(new Op.Concatenate(xs, axis(xs.getFirst(), axis)));
    }

    public Value gather(Value x, Value indices, int axis) {
        return add(new Op.Gather(x, indices, axis(x, axis)));
    }

    // ---- reductions

    /// Reduces the axes away.
    public Value reduce(ReduceKind kind, Value x, int... axes) {
        List<Integer> list =
                IntStream.of(axes).map(a -> axis(x, a)).sorted().boxed().toList();
        return add(new Op.Reduce(kind, x, list, 1));
    }

    public Value sum(Value x, int... axes) {
        return reduce(ReduceKind.SUM, x, axes);
    }

    /// Reduces and keeps the axes with size 1.
    public Value reduceKeep(ReduceKind kind, Value x, int... axes) {
        Shape kept = x.shape();
        for (int a : axes) {
            kept = kept.with(a, 1);
        }
        return reshape(reduce(kind, x, axes), kept);
    }

    /// a [..., m, k] · b [..., k, n] with equal leading (batch) axes, or b of rank 2 shared by all.
    public Value matmul(Value a, Value b) {
        int ra = a.shape().rank();
        int rb = b.shape().rank();
        if (ra < 2 || rb < 2 || a.shape().dim(-1) != b.shape().dim(-2)) {
            throw new IngotException("matmul: inner sizes differ, " + a.shape() + " × " + b.shape() + " at %"
                    + order.size() + (scope.isEmpty() ? "" : " (" + scope + ")"));
        }
        List<Integer> batch =
                rb == 2 ? List.of() : IntStream.range(0, ra - 2).boxed().toList();
        return dot(a, b, batch, batch, List.of(ra - 1), List.of(rb - 2));
    }

    public Value dot(
            Value a,
            Value b,
            List<Integer> batchA,
            List<Integer> batchB,
            List<Integer> contractA,
            List<Integer> contractB) {
        return add(new Op.Dot(a, b, batchA, batchB, contractA, contractB, 1));
    }

    // ---- groups

    /// Calls a function; one value per result.
    public List<Value> call(Function function, List<Value> operands) {
        Value first = add(new Op.Composite(function, operands));
        List<Value> results = new ArrayList<>(List.of(first));
        for (int i = 1; i < function.definition().outputs().size(); i++) {
            results.add(add(new Op.Result(first, i)));
        }
        return results;
    }

    /// A non-negative axis of `x`.
    public static int axis(Value x, int axis) {
        int rank = x.shape().rank();
        if (axis < -rank || axis >= rank) {
            throw new IngotException("axis " + axis + " is outside of " + x.shape() + " at " + x);
        }
        return axis < 0 ? axis + rank : axis;
    }

    private Shape broadcastShape(String what, Value a, Value b) {
        return broadcastShapes(what, a.shape(), b.shape());
    }

    private Shape broadcastShapes(String what, Shape a, Shape b) {
        if (a.equals(b)) {
            return a;
        }
        int rank = Math.max(a.rank(), b.rank());
        int[] dims = new int[rank];
        for (int i = 1; i <= rank; i++) {
            int da = i <= a.rank() ? a.dim(-i) : 1;
            int db = i <= b.rank() ? b.dim(-i) : 1;
            if (da != db && da != 1 && db != 1) {
                throw new IngotException(what + ": shapes " + a + " and " + b + " do not broadcast at %" + order.size()
                        + (scope.isEmpty() ? "" : " (" + scope + ")"));
            }
            dims[rank - i] = da == 1 ? db : da;
        }
        return Shape.of(dims);
    }
}
