package ingot.formats;

import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Shape;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// SimpleRNN, GRU and LSTM, unrolled over the time steps of the bound shape, and the wrappers of layers.
final class KerasRecurrent {
    private static final int MAX_STEPS = 4096;

    private KerasRecurrent() {}

    static void addTo(Map<String, Function<KerasCall, List<Value>>> t) {
        t.put("SimpleRNN", c -> run(c, 1));
        t.put("GRU", c -> run(c, 3));
        t.put("LSTM", c -> run(c, 4));
        t.put("Bidirectional", KerasRecurrent::bidirectional);
        t.put("TimeDistributed", KerasRecurrent::distributed);
    }

    /// kernel [in, gates·units], recurrent [units, gates·units], and the bias of the input and, for a GRU that resets
    /// after the product, of the state.
    private record Weights(
            Value kernel,
            Value recurrent,
            @Nullable Value bias,
            @Nullable Value stateBias) {}

    private static List<Value> run(KerasCall c, int gates) {
        GraphBuilder b = c.b();
        KerasLayer layer = c.layer();
        KerasCall.refuseSet(layer, Map.of("stateful", "state kept between batches", "time_major", "time as axis 0"));
        int units = layer.integer("units");
        boolean after = gates == 3 && layer.flag("reset_after", c.version() >= 3);
        Value x = c.in();
        if (x.shape().rank() != 3) {
            throw new IngotException("the input has the shape " + x.shape() + ", expected [batch, time, features]");
        }
        int batch = x.shape().dim(0);
        int time = x.shape().dim(1);
        if (time > MAX_STEPS || time == 0) {
            throw new IngotException("a sequence of " + time + " steps; 1 to " + MAX_STEPS + " are unrolled");
        }
        Weights weights = weights(c, gates, units, x.shape().dim(2), after);
        Value projected = b.dot(x, weights.kernel(), List.of(), List.of(), List.of(2), List.of(0));
        if (weights.bias() != null) {
            projected = b.add(projected, weights.bias());
        }
        Value zero = b.broadcast(b.constant(0f), Shape.of(batch, units));
        List<Value> state = new ArrayList<>(List.of(zero));
        if (gates == 4) {
            state.add(zero);
        }
        if (c.inputs().size() > 1) {
            if (c.inputs().size() != state.size() + 1) {
                throw new IngotException(
                        "called with " + (c.inputs().size() - 1) + " states, expected " + state.size());
            }
            state = c.inputs().subList(1, c.inputs().size());
        }
        boolean backwards = layer.flag("go_backwards", false);
        List<Value> steps = new ArrayList<>();
        for (int t = 0; t < time; t++) {
            int at = backwards ? time - 1 - t : t;
            Value input = b.reshape(b.slice(projected, 1, at, at + 1), batch, gates * units);
            state = switch (gates) {
                case 1 ->
                    List.of(c.activated("activation", b.add(input, product(b, state.getFirst(), weights, 0, units))));
                case 3 -> List.of(gru(c, input, state.getFirst(), weights, units, after));
                default -> lstm(c, input, state, weights, units);
            };
            steps.add(b.reshape(state.getFirst(), batch, 1, units));
        }
        List<Value> results = new ArrayList<>();
        results.add(layer.flag("return_sequences", false) ? b.concatenate(steps, 1) : state.getFirst());
        if (layer.flag("return_state", false)) {
            results.addAll(state);
        }
        return results;
    }

    private static Weights weights(KerasCall c, int gates, int units, int in, boolean after) {
        KerasCall cell = c.inner(c.layer(), "", "cell", c.inputs());
        int n = Math.multiplyExact(gates, units);
        Value kernel = cell.weight(0, "kernel", in, n);
        Value recurrent = cell.weight(1, "recurrent_kernel", units, n);
        if (!c.layer().flag("use_bias", true)) {
            return new Weights(kernel, recurrent, null, null);
        }
        if (!after) {
            return new Weights(kernel, recurrent, cell.weight(2, "bias", n), null);
        }
        Value both = cell.weight(2, "bias", 2, n);
        GraphBuilder b = c.b();
        return new Weights(
                kernel, recurrent, b.reshape(b.slice(both, 0, 0, 1), n), b.reshape(b.slice(both, 0, 1, 2), n));
    }

    /// h · R + bias for the columns [from, to).
    private static Value product(GraphBuilder b, Value h, Weights weights, int from, int to) {
        Value y = b.dot(h, b.slice(weights.recurrent(), 1, from, to), List.of(), List.of(), List.of(1), List.of(0));
        return weights.stateBias() == null ? y : b.add(y, b.slice(weights.stateBias(), 0, from, to));
    }

    /// Gates z, r, h: h′ = z·h + (1 − z)·n, with the reset before or after the matrix (Cho et al. 2014).
    private static Value gru(KerasCall c, Value input, Value h, Weights weights, int units, boolean after) {
        GraphBuilder b = c.b();
        Value sums = b.add(b.slice(input, 1, 0, 2 * units), product(b, h, weights, 0, 2 * units));
        Value gates = c.activated("recurrent_activation", sums);
        Value z = b.slice(gates, 1, 0, units);
        Value r = b.slice(gates, 1, units, 2 * units);
        Value inner = after
                ? b.multiply(r, product(b, h, weights, 2 * units, 3 * units))
                : product(b, b.multiply(r, h), weights, 2 * units, 3 * units);
        Value n = c.activated("activation", b.add(b.slice(input, 1, 2 * units, 3 * units), inner));
        return b.add(b.multiply(z, h), b.multiply(b.subtract(b.scalarLike(z, 1), z), n));
    }

    /// Gates i, f, c, o (Hochreiter and Schmidhuber 1997).
    private static List<Value> lstm(KerasCall c, Value input, List<Value> state, Weights weights, int units) {
        GraphBuilder b = c.b();
        Value sums = b.add(input, product(b, state.getFirst(), weights, 0, 4 * units));
        Value[] gates = new Value[4];
        for (int i = 0; i < 4; i++) {
            Value part = b.slice(sums, 1, i * units, (i + 1) * units);
            gates[i] = c.activated(i == 2 ? "activation" : "recurrent_activation", part);
        }
        Value cell = b.add(b.multiply(gates[1], state.get(1)), b.multiply(gates[0], gates[2]));
        return List.of(b.multiply(gates[3], c.activated("activation", cell)), cell);
    }

    /// A layer over the sequence and one, with weights of its own, over it backwards; their outputs together.
    private static List<Value> bidirectional(KerasCall c) {
        GraphBuilder b = c.b();
        KerasLayer layer = KerasLayer.of(c.layer().config().path("layer"));
        int gates = switch (layer.kind()) {
            case "SimpleRNN" -> 1;
            case "GRU" -> 3;
            case "LSTM" -> 4;
            default -> throw new IngotException("Bidirectional of " + layer + "; expected SimpleRNN, GRU or LSTM");
        };
        KerasCall.refuse(layer.flag("go_backwards", false), "Bidirectional of a layer that goes backwards");
        KerasCall.refuse(c.inputs().size() > 1, "Bidirectional with initial states");
        List<Value> there = run(c.inner(layer, "forward_" + layer.name(), "forward_layer", c.inputs()), gates);
        int axis = 1;
        boolean sequences = layer.flag("return_sequences", false);
        Value turned = b.add(new ingot.ir.Op.Reverse(c.in(), List.of(axis)));
        List<Value> back = run(c.inner(layer, "backward_" + layer.name(), "backward_layer", List.of(turned)), gates);
        Value first = there.getFirst();
        Value second = sequences ? b.add(new ingot.ir.Op.Reverse(back.getFirst(), List.of(axis))) : back.getFirst();
        List<Value> results = new ArrayList<>();
        switch (c.layer().text("merge_mode", "")) {
            case "concat" -> results.add(b.concatenate(List.of(first, second), -1));
            case "sum" -> results.add(b.add(first, second));
            case "mul" -> results.add(b.multiply(first, second));
            case "ave" -> results.add(b.multiply(b.add(first, second), 0.5));
            case "" -> results.addAll(List.of(first, second));
            default -> throw new IngotException("merge_mode " + c.layer().text("merge_mode", "") + " is not known");
        }
        results.addAll(there.subList(1, there.size()));
        results.addAll(back.subList(1, back.size()));
        return results;
    }

    /// A layer at every time step: the steps are rows of its batch.
    private static List<Value> distributed(KerasCall c) {
        GraphBuilder b = c.b();
        KerasLayer layer = KerasLayer.of(c.layer().config().path("layer"));
        int[] dims = c.in().shape().dims();
        int[] rows = java.util.Arrays.copyOfRange(dims, 1, dims.length);
        rows[0] = Math.multiplyExact(dims[0], dims[1]);
        KerasCall inner = c.inner(layer, "", "layer", List.of(b.reshape(c.in(), rows)));
        Value y = KerasLayers.build(inner).getFirst();
        int[] out = y.shape().dims();
        int[] joined = new int[out.length + 1];
        joined[0] = dims[0];
        joined[1] = dims[1];
        System.arraycopy(out, 1, joined, 2, out.length - 1);
        return List.of(b.reshape(y, joined));
    }
}
