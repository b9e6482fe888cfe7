package ingot.ir;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// The meaning of every op in plain scalar Java: the definition that compiled code must equal bit for bit
/// (docs/arithmetic.md).
public final class Interpreter {
    private Interpreter() {}

    /// Evaluates what the outputs need and returns them by name, in order. Further entries of `inputs` and `weights`
    /// are ignored.
    public static Map<String, Tensor> run(Graph graph, Map<String, Tensor> inputs, Map<String, Tensor> weights) {
        List<Tensor> results = outputs(graph, inputs, weights);
        Map<String, Tensor> named = new LinkedHashMap<>();
        int i = 0;
        for (String key : graph.outputs().keySet()) {
            named.put(key, results.get(i++));
        }
        return named;
    }

    /// The value of one op on the heap.
    public static Tensor evaluate(Op op, List<Tensor> operands) {
        Tensor result = Elements.allocate(ShapeRules.infer(op));
        evaluate(op, operands, result);
        return result;
    }

    /// Writes the value of one op into `result`, which must not overlap an operand.
    public static void evaluate(Op op, List<Tensor> operands, Tensor result) {
        check(op, operands, result);
        switch (op) {
            case Op.Input x -> throw new IllegalArgumentException("input " + x.name() + " has no value of its own");
            case Op.Weight x -> throw new IllegalArgumentException("weight " + x.name() + " has no value of its own");
            case Op.Constant x -> result.data().copyFrom(x.data().data());
            case Op.Iota x -> Movement.iota(x.axis(), result);
            case Op.RandomBits x -> Movement.randomBits(x.stream(), operands.get(0), result);
            case Op.Unary x -> Pointwise.unary(x.kind(), operands.get(0), result);
            case Op.Binary x -> Pointwise.binary(x.kind(), operands.get(0), operands.get(1), result);
            case Op.Fma _ -> Pointwise.fma(operands.get(0), operands.get(1), operands.get(2), result);
            case Op.Compare x -> Pointwise.compare(x.kind(), operands.get(0), operands.get(1), result);
            case Op.Select _ -> Pointwise.select(operands.get(0), operands.get(1), operands.get(2), result);
            case Op.Convert _ -> Pointwise.convert(operands.get(0), result);
            case Op.Bitcast _, Op.Reshape _ ->
                result.data().copyFrom(operands.get(0).data());
            case Op.Broadcast x -> Movement.broadcast(x.axes(), operands.get(0), result);
            case Op.Transpose x -> Movement.transpose(x.permutation(), operands.get(0), result);
            case Op.Slice x -> Movement.slice(x, operands.get(0), result);
            case Op.Pad x -> Movement.pad(x, operands.get(0), operands.get(1), result);
            case Op.Concatenate x -> Movement.concatenate(x.axis(), operands, result);
            case Op.Reverse x -> Movement.reverse(x.axes(), operands.get(0), result);
            case Op.Gather x -> Indexing.gather(x.axis(), operands.get(0), operands.get(1), result);
            case Op.ScatterAdd x -> Indexing.scatterAdd(x, operands.get(0), operands.get(1), result);
            case Op.TakeAlong x -> Indexing.takeAlong(x.axis(), operands.get(0), operands.get(1), result);
            case Op.AddAlong x -> Indexing.addAlong(x.axis(), operands.get(0), operands.get(1), result);
            case Op.ArgSort x -> Indexing.argSort(x.axis(), x.descending(), operands.get(0), result);
            case Op.Reduce x -> Reductions.reduce(x, operands.get(0), result);
            case Op.Cumulative x -> Reductions.cumulative(x, operands.get(0), result);
            case Op.Dot x ->
                Contraction.dot(
                        x, operands.get(0), operands.get(1), x.start() == null ? null : operands.get(2), result);
            case Op.Convolution x -> Windows.convolution(x, operands.get(0), operands.get(1), result);
            case Op.ReduceWindow x -> Windows.reduceWindow(x, operands.get(0), result);
            case Op.ScatterWindowMax x -> Windows.scatterMax(x, operands.get(0), operands.get(1), result);
            case Op.Composite x ->
                result.data().copyFrom(results(x, operands).getFirst().data());
            case Op.Result _ ->
                throw new IllegalArgumentException("a result needs its composite's call: use Interpreter.results");
            case Op.Custom x ->
                result.data().copyFrom(custom(x, operands, result.type()).data());
        }
    }

    /// All results of a composite: the outputs of its definition.
    public static List<Tensor> results(Op.Composite op, List<Tensor> operands) {
        Map<String, Tensor> inputs = new LinkedHashMap<>();
        List<Value> declared = op.function().definition().inputs();
        for (int i = 0; i < operands.size(); i++) {
            inputs.put(((Op.Input) declared.get(i).op()).name(), operands.get(i));
        }
        return outputs(op.function().definition(), inputs, Map.of());
    }

    private static List<Tensor> outputs(Graph graph, Map<String, Tensor> inputs, Map<String, Tensor> weights) {
        List<Value> values = graph.values();
        int[] uses = uses(graph);
        @Nullable Tensor[] tensors = new @Nullable Tensor[values.size()];
        Map<Integer, List<Tensor>> composites = new LinkedHashMap<>();
        for (Value value : values) {
            if (uses[value.id()] == 0) {
                continue;
            }
            List<Tensor> operands = new ArrayList<>();
            for (Value operand : value.op().operands()) {
                operands.add(present(tensors[operand.id()], operand));
            }
            Tensor tensor = switch (value.op()) {
                case Op.Input x -> given("input", x.name(), x.type(), inputs, graph);
                case Op.Weight x -> given("weight", x.name(), x.type(), weights, graph);
                case Op.Constant x -> x.data();
                case Op.Composite x -> {
                    List<Tensor> results = results(x, operands);
                    composites.put(value.id(), results);
                    yield results.getFirst();
                }
                case Op.Result x ->
                    composites.getOrDefault(x.composite().id(), List.of()).get(x.index());
                default -> evaluate(value.op(), operands);
            };
            tensors[value.id()] = tensor;
            for (Value operand : value.op().operands()) {
                if (--uses[operand.id()] == 0) {
                    tensors[operand.id()] = null;
                    composites.remove(operand.id());
                }
            }
        }
        List<Tensor> results = new ArrayList<>();
        graph.outputs().values().forEach(value -> results.add(present(tensors[value.id()], value)));
        return results;
    }

    /// How often each value is read on the way to an output; 0 means dead.
    private static int[] uses(Graph graph) {
        int[] uses = new int[graph.values().size()];
        BitSet live = new BitSet();
        for (Value output : graph.outputs().values()) {
            uses[output.id()]++;
            live.set(output.id());
        }
        for (int id = uses.length - 1; id >= 0; id--) {
            if (live.get(id)) {
                for (Value operand : graph.values().get(id).op().operands()) {
                    uses[operand.id()]++;
                    live.set(operand.id());
                }
            }
        }
        return uses;
    }

    private static Tensor given(String what, String name, Type type, Map<String, Tensor> tensors, Graph graph) {
        Tensor tensor = tensors.get(name);
        if (tensor == null) {
            throw new IngotException("graph " + graph.name() + ": " + what + " " + name + " : " + type
                    + " is missing, given are " + new java.util.TreeSet<>(tensors.keySet()));
        }
        if (!tensor.type().equals(type)) {
            throw new IngotException("graph " + graph.name() + ": " + what + " " + name + " expected " + type + ", got "
                    + tensor.type());
        }
        return tensor;
    }

    private static Tensor present(@Nullable Tensor tensor, Value value) {
        if (tensor == null) {
            throw new IllegalStateException(value + " : " + value.type() + " is used before it is defined");
        }
        return tensor;
    }

    private static Tensor custom(Op.Custom op, List<Tensor> operands, Type type) {
        Tensor result = op.function().evaluate(operands);
        if (!result.type().equals(type)) {
            throw new IngotException("custom op " + op.function().name() + ": its type rule says " + type
                    + ", its evaluation gave " + result.type());
        }
        return result;
    }

    private static void check(Op op, List<Tensor> operands, Tensor result) {
        List<Value> values = op.operands();
        String name = op.getClass().getSimpleName();
        if (values.size() != operands.size()) {
            throw new IllegalArgumentException(
                    name + ": expected " + values.size() + " operands, got " + operands.size());
        }
        for (int i = 0; i < operands.size(); i++) {
            if (!operands.get(i).type().equals(values.get(i).type())) {
                throw new IllegalArgumentException(name + ": operand " + i + " expected "
                        + values.get(i).type() + ", got " + operands.get(i).type());
            }
        }
        Type type = ShapeRules.infer(op);
        if (!result.type().equals(type)) {
            throw new IllegalArgumentException(name + ": the result is " + type + ", got memory for " + result.type());
        }
    }
}
