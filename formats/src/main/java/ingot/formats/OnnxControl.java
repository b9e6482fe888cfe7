package ingot.formats;

import ingot.formats.OnnxGraph.Port;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op.BinaryKind;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Control flow, resolved while importing: a branch is chosen, a loop is unrolled.
final class OnnxControl {
    private static final long MAX_TRIPS = 4096;

    private OnnxControl() {}

    static void addTo(Map<String, OnnxOperator> t) {
        t.put("If", OnnxControl::branch);
        t.put("Loop", OnnxControl::loop);
        t.put("Scan", OnnxControl::scan);
    }

    /// What one output of an inner graph is: a tensor or a sequence.
    private record Found(@Nullable Value tensor, @Nullable List<Value> sequence) {
        Value value(String name) {
            if (tensor == null) {
                throw new IngotException("output " + name + " of the inner graph is a sequence, expected a tensor");
            }
            return tensor;
        }
    }

    private static List<Found> run(OnnxCall c, OnnxGraph graph, OnnxScope scope) {
        c.importer().body(graph, scope, c.importer().model().opsets());
        List<Found> found = new ArrayList<>();
        for (Port output : graph.outputs()) {
            List<Value> sequence = scope.sequence(output.name());
            found.add(sequence != null ? new Found(null, sequence) : new Found(scope.tensor(output.name()), null));
        }
        return found;
    }

    /// A condition known at import takes its branch; another one computes both and selects.
    private static List<Value> branch(OnnxCall c) {
        OnnxGraph yes = c.graph("then_branch");
        OnnxGraph no = c.graph("else_branch");
        Tensor condition = c.knownIfAny(0);
        if (condition != null) {
            OnnxGraph taken = condition.getBoolean(0) ? yes : no;
            OnnxScope scope = new OnnxScope(c.scope());
            run(c, taken, scope);
            for (int i = 0; i < c.outputs(); i++) {
                c.importer()
                        .pass(
                                scope,
                                taken.outputs().get(i).name(),
                                c.scope(),
                                c.node().outputs().get(i));
            }
            return List.of();
        }
        List<Found> first = run(c, yes, new OnnxScope(c.scope()));
        if (first.stream().anyMatch(found -> found.sequence() != null)) {
            c.known(0); // says which inputs decide
        }
        List<Found> second = run(c, no, new OnnxScope(c.scope()));
        List<Value> results = new ArrayList<>();
        Value chosen = c.b().reshape(c.in(0), Shape.SCALAR);
        for (int i = 0; i < first.size(); i++) {
            Value a = first.get(i).value(yes.outputs().get(i).name());
            Value b = second.get(i).value(no.outputs().get(i).name());
            if (!a.type().equals(b.type())) {
                c.known(0); // branches of different types: says which inputs decide
            }
            results.add(c.b().select(chosen, a, b));
        }
        return results;
    }

    /// Inputs: most trips, condition, loop-carried values. Results: the carried values, then stacked ones.
    ///
    /// A condition that is only known at run time freezes the carried values once it is false; stacked outputs need it
    /// at import, since their length is a shape.
    private static List<Value> loop(OnnxCall c) {
        GraphBuilder b = c.b();
        OnnxGraph body = c.graph("body");
        long trips = c.has(0) ? c.longs(0).getFirst() : MAX_TRIPS;
        int carried = Math.max(0, c.inputs() - 2);
        int stacked = body.outputs().size() - 1 - carried;
        OnnxScope state = new OnnxScope(c.scope());
        for (int i = 0; i < carried; i++) {
            c.importer()
                    .pass(
                            c.scope(),
                            c.node().inputs().get(i + 2),
                            state,
                            body.inputs().get(i + 2).name());
        }
        Value condition = c.has(1) ? b.reshape(c.in(1), Shape.SCALAR) : b.constant(true);
        List<List<Value>> stacks = new ArrayList<>();
        for (int i = 0; i < stacked; i++) {
            stacks.add(new ArrayList<>());
        }
        for (long trip = 0; trip < trips; trip++) {
            Tensor going = c.importer().knownIfAny(condition);
            if (going != null && !going.getBoolean(0)) {
                break;
            }
            if (going == null && (stacked > 0 || !c.has(0))) {
                c.importer().known(condition, "the condition of the loop");
            }
            if (trip >= MAX_TRIPS) {
                throw new IngotException("a loop of more than " + MAX_TRIPS + " trips");
            }
            OnnxScope scope = new OnnxScope(state);
            scope.define(body.inputs().get(0).name(), b.reshape(c.ints(trip), Shape.SCALAR));
            scope.define(body.inputs().get(1).name(), condition);
            List<Found> found = run(c, body, scope);
            Value next = b.reshape(found.get(0).value("condition"), Shape.SCALAR);
            OnnxScope after = new OnnxScope(c.scope());
            for (int i = 0; i < carried; i++) {
                String name = body.inputs().get(i + 2).name();
                carry(c, found.get(i + 1), state, after, name, going == null ? condition : null);
            }
            for (int i = 0; i < stacked; i++) {
                stacks.get(i).add(found.get(1 + carried + i).value("scan output"));
            }
            condition = going == null ? b.binary(BinaryKind.AND, condition, next) : next;
            state = after;
        }
        for (int i = 0; i < Math.min(carried, c.outputs()); i++) {
            c.importer()
                    .pass(
                            state,
                            body.inputs().get(i + 2).name(),
                            c.scope(),
                            c.node().outputs().get(i));
        }
        for (int i = 0; i < stacked; i++) {
            Value stack = stacked(c, stacks.get(i), body.outputs().get(1 + carried + i), 0, false);
            c.scope().define(c.node().outputs().get(carried + i), stack);
        }
        return List.of();
    }

    private static void carry(
            OnnxCall c, Found found, OnnxScope before, OnnxScope after, String name, @Nullable Value condition) {
        if (found.sequence() != null) {
            after.define(name, found.sequence());
        } else {
            Value value = found.value(name);
            after.define(name, condition == null ? value : c.b().select(condition, value, before.tensor(name)));
        }
    }

    private static Value stacked(OnnxCall c, List<Value> values, Port port, int axis, boolean reverse) {
        if (values.isEmpty()) {
            if (port.type() == null || port.dims() == null) {
                throw new IngotException("output " + port.name() + " of a loop without trips has no declared type");
            }
            List<Integer> dims = new ArrayList<>();
            port.dims().forEach(dim -> dims.add((int) Math.max(0, dim.size())));
            dims.add(axis, 0);
            return c.b().constant(Tensor.zeros(
                    new ingot.ir.Type(port.type().dtype("output " + port.name()), Shape.of(dims))));
        }
        List<Value> rows = new ArrayList<>();
        for (Value value : reverse ? values.reversed() : values) {
            List<Integer> dims = new ArrayList<>(OnnxShapes.dims(value));
            dims.add(c.axis(axis, dims.size() + 1), 1);
            rows.add(c.b().reshape(value, Shape.of(dims)));
        }
        return c.b().concatenate(rows, axis);
    }

    // ---- scan

    private static List<Value> scan(OnnxCall c) {
        return c.opset() < 9 ? batchedScan(c) : scan(c, c.allInputs(), c.graph("body"));
    }

    private static List<Value> scan(OnnxCall c, List<Value> inputs, OnnxGraph body) {
        GraphBuilder b = c.b();
        int scanned = Math.toIntExact(c.integer("num_scan_inputs", 1));
        int carried = inputs.size() - scanned;
        List<Long> axes = c.ints("scan_input_axes");
        List<Long> directions = c.hasAttribute("directions") ? c.ints("directions") : c.ints("scan_input_directions");
        List<Long> outputAxes = c.ints("scan_output_axes");
        List<Long> outputDirections = c.ints("scan_output_directions");
        List<Value> state = new ArrayList<>(inputs.subList(0, carried));
        List<List<Value>> stacks = new ArrayList<>();
        int stacked = body.outputs().size() - carried;
        for (int i = 0; i < stacked; i++) {
            stacks.add(new ArrayList<>());
        }
        Value first = inputs.get(carried);
        int steps = first.shape().dim(axis(c, axes, 0, first));
        if (steps > MAX_TRIPS) {
            throw new IngotException("a scan of " + steps + " steps; up to " + MAX_TRIPS + " are unrolled");
        }
        for (int step = 0; step < steps; step++) {
            OnnxScope scope = new OnnxScope(c.scope());
            for (int i = 0; i < carried; i++) {
                scope.define(body.inputs().get(i).name(), state.get(i));
            }
            for (int i = 0; i < scanned; i++) {
                Value x = inputs.get(carried + i);
                int axis = axis(c, axes, i, x);
                int at = i < directions.size() && directions.get(i) == 1 ? steps - 1 - step : step;
                Value part = b.slice(x, axis, at, at + 1);
                scope.define(
                        body.inputs().get(carried + i).name(),
                        b.reshape(part, part.shape().without(List.of(axis))));
            }
            List<Found> found = run(c, body, scope);
            for (int i = 0; i < carried; i++) {
                state.set(i, found.get(i).value("state"));
            }
            for (int i = 0; i < stacked; i++) {
                stacks.get(i).add(found.get(carried + i).value("scan output"));
            }
        }
        List<Value> results = new ArrayList<>(state);
        for (int i = 0; i < stacked; i++) {
            boolean reverse = i < outputDirections.size() && outputDirections.get(i) == 1;
            int axis = i < outputAxes.size() ? Math.toIntExact(outputAxes.get(i)) : 0;
            results.add(stacked(c, stacks.get(i), body.outputs().get(carried + i), axis, reverse));
        }
        return results;
    }

    private static int axis(OnnxCall c, List<Long> axes, int i, Value x) {
        return i < axes.size() ? c.axis(axes.get(i), x.shape().rank()) : 0;
    }

    /// Opset 8: the first input may hold sequence lengths, and every operand has the batch in front.
    private static List<Value> batchedScan(OnnxCall c) {
        GraphBuilder b = c.b();
        if (c.has(0)) {
            throw c.unsupported("a scan with sequence lengths");
        }
        List<Value> inputs = new ArrayList<>();
        for (int i = 1; i < c.inputs(); i++) {
            inputs.add(c.in(i));
        }
        int batch = inputs.getFirst().shape().dim(0);
        List<List<Value>> perExample = new ArrayList<>();
        for (int n = 0; n < batch; n++) {
            List<Value> example = new ArrayList<>();
            for (Value x : inputs) {
                Value one = b.slice(x, 0, n, n + 1);
                example.add(b.reshape(one, one.shape().without(List.of(0))));
            }
            perExample.add(scan(c, example, c.graph("body")));
        }
        List<Value> results = new ArrayList<>();
        for (int i = 0; i < perExample.getFirst().size(); i++) {
            List<Value> rows = new ArrayList<>();
            for (List<Value> example : perExample) {
                List<Integer> dims = new ArrayList<>(OnnxShapes.dims(example.get(i)));
                dims.addFirst(1);
                rows.add(b.reshape(example.get(i), Shape.of(dims)));
            }
            results.add(b.concatenate(rows, 0));
        }
        return results;
    }
}
