package ingot.formats;

import ingot.formats.OnnxGraph.Port;
import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Interpreter;
import ingot.ir.Op;
import ingot.ir.Operands;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.Randomness;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/// Walks the nodes of an ONNX model and builds their values.
///
/// What follows from constants and shapes alone is computed at once, by the interpreter: so shape arithmetic
/// vanishes, and an operator can ask for the value of an operand that its shape depends on.
final class OnnxImporter {
    /// Larger results stay ops of the graph.
    private static final long MAX_FOLDED = 1 << 20;
    /// Integer initializers of more elements are weights, which stay in their file.
    private static final long MAX_CONSTANT = 1 << 12;
    /// Floating `Constant` nodes of more elements are parameters; some exporters write all of them so.
    private static final long MAX_SETTING = 8;
    /// Functions that call functions.
    private static final int MAX_CALLS = 64;

    private final OnnxModel model;
    private final OnnxBinding binding;
    private final GraphBuilder builder;
    private final Map<String, OnnxTensor> weights = new HashMap<>();
    private final Map<Integer, Tensor> folded = new HashMap<>();
    private final Map<String, OnnxReader.Function> functions = new HashMap<>();
    private final Map<String, OnnxOperator> operators = OnnxOperators.table();
    private final BitSet atRunTime = new BitSet(); // ids of values that follow from inputs
    private int inspected; // values below this id have been folded, if they can be
    private int calls;
    private @Nullable Randomness randomness;

    OnnxImporter(OnnxModel model, OnnxBinding binding) {
        this.model = model;
        this.binding = binding;
        this.builder = new GraphBuilder(
                model.graph().name().isEmpty() ? "onnx" : model.graph().name());
        for (OnnxReader.Function function : model.functions()) {
            functions.put(function.domain() + ":" + function.name(), function);
        }
    }

    GraphBuilder builder() {
        return builder;
    }

    OnnxBinding binding() {
        return binding;
    }

    OnnxModel model() {
        return model;
    }

    Randomness randomness() {
        if (randomness == null) {
            randomness = Randomness.input(builder);
        }
        return randomness;
    }

    OnnxTensor weight(String name) {
        return Objects.requireNonNull(weights.get(name), name);
    }

    Graph build() {
        OnnxSupport.check(model);
        OnnxGraph graph = model.graph();
        OnnxScope scope = new OnnxScope(null);
        inputs(graph, scope);
        body(graph, scope, model.opsets());
        for (Port output : graph.outputs()) {
            List<Value> sequence = scope.sequence(output.name());
            if (sequence != null) {
                for (int i = 0; i < sequence.size(); i++) {
                    builder.output(output.name() + "." + i, sequence.get(i));
                }
            } else {
                builder.output(output.name(), output(output, scope));
            }
        }
        return live(builder.build());
    }

    private Value output(Port output, OnnxScope scope) {
        try {
            return scope.tensor(output.name());
        } catch (IngotException e) {
            throw new IngotException("onnx: output " + output.name() + " is computed by no node", e);
        }
    }

    // ---- inputs and constants

    private void inputs(OnnxGraph graph, OnnxScope scope) {
        List<String> open = new ArrayList<>();
        for (Port port : graph.freeInputs()) {
            scope.declare(port.name(), port.type());
            Tensor constant = binding.constants().get(port.name());
            if (constant != null) {
                scope.define(port.name(), builder.constant(constant));
            } else if (port.kind() == OnnxGraph.Kind.SEQUENCE && port.type() != null) {
                scope.define(port.name(), sequence(port, port.type(), open));
            } else if (port.kind() != OnnxGraph.Kind.TENSOR || port.type() == null) {
                throw new IngotException("onnx: input " + port.name() + " is a "
                        + port.kind().name().toLowerCase(java.util.Locale.ROOT)
                        + "; only tensors can be inputs of a graph");
            } else {
                Shape shape = shape(port, open);
                if (shape != null) {
                    DType dtype = port.type().dtype("input " + port.name());
                    scope.define(port.name(), builder.input(port.name(), new Type(dtype, shape)));
                }
            }
        }
        if (!open.isEmpty()) {
            throw new IngotException(
                    "onnx: these sizes must be given before the model can be imported: " + String.join(", ", open));
        }
    }

    /// A sequence goes in as inputs `name.0`, `name.1` …, as many as shapes are bound.
    private List<Value> sequence(Port port, OnnxType type, List<String> open) {
        List<Value> values = new ArrayList<>();
        for (int i = 0; ; i++) {
            String name = port.name() + "." + i;
            Shape shape = binding.shapes().get(name);
            if (shape == null) {
                break;
            }
            values.add(builder.input(name, new Type(type.dtype("input " + port.name()), shape)));
        }
        if (values.isEmpty()) {
            open.add("the shapes of " + port.name() + ".0, " + port.name() + ".1 …, the tensors of a sequence");
        }
        return values;
    }

    /// The bound shape of an input, or null after naming what is missing.
    private @Nullable Shape shape(Port port, List<String> open) {
        Shape given = binding.shapes().get(port.name());
        if (given != null) {
            return given;
        }
        if (port.dims() == null) {
            open.add("the shape of " + port.name());
            return null;
        }
        int[] dims = new int[port.dims().size()];
        boolean complete = true;
        for (int i = 0; i < dims.length; i++) {
            OnnxGraph.Dim dim = port.dims().get(i);
            Integer bound = binding.sizes().get(dim.symbol().isEmpty() ? port.name() + "." + i : dim.symbol());
            if (dim.isKnown()) {
                dims[i] = Math.toIntExact(dim.size());
            } else if (bound != null) {
                dims[i] = bound;
            } else {
                complete = false;
                String text = dim.symbol().isEmpty() ? port.name() + "." + i : dim.symbol();
                if (!open.contains(text)) {
                    open.add(text);
                }
            }
        }
        return complete ? Shape.of(dims) : null;
    }

    private void initializers(OnnxGraph graph, OnnxScope scope) {
        for (OnnxTensor tensor : graph.initializers()) {
            scope.declare(tensor.name(), tensor.type());
            if (tensor.type() == OnnxType.STRING) {
                continue; // named where it is used
            }
            Tensor replaced = binding.constants().get(tensor.name());
            scope.define(tensor.name(), replaced != null ? builder.constant(replaced) : initializer(tensor));
        }
    }

    /// Scalars and short integer lists steer the graph: they are constants. All else is a weight.
    private Value initializer(OnnxTensor tensor) {
        boolean small = tensor.type().dtype("initializer " + tensor.name()).isFloating()
                ? tensor.dims().isEmpty()
                : tensor.elements() <= MAX_CONSTANT;
        return small ? builder.constant(tensor.read(model)) : weight(tensor.name(), tensor);
    }

    /// Inner graphs may use a name again: it gets a number.
    private Value weight(String name, OnnxTensor tensor) {
        String unique = name;
        for (int i = 2; weights.getOrDefault(unique, tensor) != tensor; i++) {
            unique = name + "." + i;
        }
        weights.put(unique, tensor);
        return builder.weight(unique, tensor.valueType());
    }

    /// The tensor of a `Constant` node: what was a constant before an export is one again.
    Value constant(OnnxTensor tensor, String name) {
        boolean floating = tensor.type().dtype("constant " + name).isFloating();
        boolean ours = name.startsWith(OnnxExport.NAMES) && tensor.elements() <= MAX_FOLDED;
        return ours || tensor.elements() <= (floating ? MAX_SETTING : MAX_CONSTANT)
                ? builder.constant(tensor.read(model))
                : weight(name, tensor);
    }

    // ---- nodes

    /// Builds all nodes of a graph; its inputs are defined in `scope` already.
    void body(OnnxGraph graph, OnnxScope scope, Map<String, Long> opsets) {
        initializers(graph, scope);
        graph.values().forEach(port -> scope.declare(port.name(), port.type()));
        for (OnnxNode node : graph.nodes()) {
            node(node, scope, opsets);
        }
    }

    private void node(OnnxNode node, OnnxScope scope, Map<String, Long> opsets) {
        OnnxCall call = new OnnxCall(this, scope, node, opsets.getOrDefault(node.domain(), 1L));
        try {
            List<Value> results = builder.scope(node.label(), () -> {
                OnnxReader.Function function = functions.get(node.domain() + ":" + node.operator());
                return function == null || node.domain().equals(OnnxExport.DOMAIN)
                        ? operator(node).build(call)
                        : function(call, function);
            });
            fold();
            for (int i = 0; i < Math.min(results.size(), node.outputs().size()); i++) {
                Tensor known = folded.get(results.get(i).id());
                scope.define(node.outputs().get(i), known == null ? results.get(i) : builder.constant(known));
            }
        } catch (OnnxDataDependentException e) {
            throw isPlaced(e) ? e : new OnnxDataDependentException(at(node) + e.getMessage(), e.inputs());
        } catch (IngotException e) {
            throw isPlaced(e) ? e : new IngotException(at(node) + e.getMessage(), e);
        } catch (IndexOutOfBoundsException
                | IllegalArgumentException
                | ArithmeticException
                | NegativeArraySizeException
                | java.util.NoSuchElementException e) {
            throw new IngotException(at(node) + "its attributes and operands do not fit together (" + e + ")", e);
        }
    }

    /// True when the message says already in which node of an inner graph it happened.
    private static boolean isPlaced(IngotException e) {
        return String.valueOf(e.getMessage()).startsWith("onnx: ");
    }

    private static String at(OnnxNode node) {
        return "onnx: node " + node.label() + " (" + node.qualified() + "): ";
    }

    private OnnxOperator operator(OnnxNode node) {
        OnnxOperator operator = operators.get(node.qualified());
        if (operator == null) {
            throw new IngotException("this operator is not known");
        }
        return operator;
    }

    /// A function of the file: its nodes over the operands of the call.
    private List<Value> function(OnnxCall call, OnnxReader.Function function) {
        if (++calls > MAX_CALLS) {
            throw new IngotException("functions call each other deeper than " + MAX_CALLS);
        }
        OnnxScope inner = new OnnxScope(null);
        for (int i = 0; i < function.inputs().size(); i++) {
            if (call.has(i)) {
                pass(
                        call.scope(),
                        call.node().inputs().get(i),
                        inner,
                        function.inputs().get(i));
            }
        }
        Map<String, OnnxAttribute> attributes = new HashMap<>(function.defaults());
        attributes.putAll(call.node().attributes());
        for (OnnxNode node : function.nodes()) {
            node(resolve(node, attributes), inner, function.opsets());
        }
        for (int i = 0; i < call.outputs(); i++) {
            pass(
                    inner,
                    function.outputs().get(i),
                    call.scope(),
                    call.node().outputs().get(i));
        }
        calls--;
        return List.of();
    }

    /// Gives a name of one scope a name in another.
    void pass(OnnxScope from, String name, OnnxScope to, String as) {
        List<Value> sequence = from.sequence(name);
        if (sequence != null) {
            to.define(as, sequence);
        } else {
            to.define(as, from.tensor(name));
            to.declare(as, from.declared(name));
        }
    }

    private static OnnxNode resolve(OnnxNode node, Map<String, OnnxAttribute> given) {
        Map<String, OnnxAttribute> attributes = new HashMap<>();
        node.attributes().forEach((name, attribute) -> {
            OnnxAttribute value =
                    attribute instanceof OnnxAttribute.Reference(String from) ? given.get(from) : attribute;
            if (value instanceof OnnxAttribute.OfGraph(OnnxGraph graph)) {
                value = new OnnxAttribute.OfGraph(new OnnxGraph(
                        graph.name(),
                        graph.nodes().stream()
                                .map(inner -> resolve(inner, given))
                                .toList(),
                        graph.initializers(),
                        graph.inputs(),
                        graph.outputs(),
                        graph.values()));
            }
            if (value != null) {
                attributes.put(name, value);
            }
        });
        return new OnnxNode(node.name(), node.domain(), node.operator(), node.inputs(), node.outputs(), attributes);
    }

    // ---- what is known at import

    /// Evaluates every new value whose operands are constants.
    private void fold() {
        List<Value> values = builder.values();
        for (; inspected < values.size(); inspected++) {
            Value value = values.get(inspected);
            boolean known = value.type().shape().elements() <= MAX_FOLDED && !(value.op() instanceof Op.Weight);
            boolean open = value.op() instanceof Op.Input || value.op() instanceof Op.RandomBits;
            for (Value operand : value.op().operands()) {
                known &= folded.containsKey(operand.id());
                open |= atRunTime.get(operand.id());
            }
            atRunTime.set(value.id(), open);
            if (known && !open) {
                folded.put(value.id(), evaluate(value, folded));
            }
        }
    }

    private Tensor evaluate(Value value, Map<Integer, Tensor> known) {
        List<Tensor> operands = new ArrayList<>();
        value.op().operands().forEach(operand -> operands.add(Objects.requireNonNull(known.get(operand.id()))));
        return switch (value.op()) {
            case Op.Constant x -> x.data();
            case Op.Weight x -> weight(x.name()).read(model);
            case Op.Result x -> {
                Op.Composite composite = (Op.Composite) x.composite().op();
                List<Tensor> inputs = new ArrayList<>();
                composite.operands().forEach(operand -> inputs.add(Objects.requireNonNull(known.get(operand.id()))));
                yield Interpreter.results(composite, inputs).get(x.index());
            }
            case Op op -> Interpreter.evaluate(op, operands);
        };
    }

    Tensor known(Value value, String what) {
        Tensor tensor = knownIfAny(value);
        if (tensor == null) {
            Set<String> inputs = new TreeSet<>();
            for (Value source : cone(value)) {
                if (source.op() instanceof Op.Input input) {
                    inputs.add(input.name());
                }
            }
            throw new OnnxDataDependentException(
                    what + " must be known at import, but depends on " + (inputs.isEmpty() ? "large weights" : inputs)
                            + "; give the values of these inputs, or fix their shapes, before importing",
                    inputs);
        }
        return tensor;
    }

    /// The value if it follows from constants, shapes and small weights.
    @Nullable
    Tensor knownIfAny(Value value) {
        fold();
        Tensor known = folded.get(value.id());
        if (known != null || atRunTime.get(value.id())) {
            return known;
        }
        List<Value> cone = cone(value);
        for (Value source : cone) {
            if (source.type().shape().elements() > MAX_FOLDED) {
                return null;
            }
        }
        Map<Integer, Tensor> tensors = new HashMap<>(folded);
        for (Value source : cone) {
            tensors.put(source.id(), evaluate(source, tensors));
        }
        return tensors.get(value.id());
    }

    /// All that a value is computed from and is not folded, operands first.
    private List<Value> cone(Value value) {
        TreeSet<Integer> ids = new TreeSet<>(Set.of(value.id()));
        List<Value> open = new ArrayList<>(List.of(value));
        while (!open.isEmpty()) {
            for (Value operand : open.removeLast().op().operands()) {
                if (!folded.containsKey(operand.id()) && ids.add(operand.id())) {
                    open.add(operand);
                }
            }
        }
        return ids.stream().map(builder.values()::get).toList();
    }

    // ---- the graph without what nothing uses

    private static Graph live(Graph graph) {
        Set<Value> used = new HashSet<>(graph.outputs().values());
        for (Value value : graph.values().reversed()) {
            if (used.contains(value)) {
                used.addAll(value.op().operands());
            }
        }
        GraphBuilder copy = new GraphBuilder(graph.name());
        Map<Value, Value> mapped = new HashMap<>();
        for (Value value : graph.values()) {
            if (used.contains(value) || value.op() instanceof Op.Input) {
                copy.enterScope(graph.scope(value));
                mapped.put(value, copy.add(Operands.replace(value.op(), x -> Objects.requireNonNull(mapped.get(x)))));
            }
        }
        graph.outputs().forEach((name, value) -> copy.output(name, Objects.requireNonNull(mapped.get(value))));
        return copy.build();
    }
}
