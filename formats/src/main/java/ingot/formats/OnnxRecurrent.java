package ingot.formats;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Op.CompareKind;
import ingot.ir.Shape;
import ingot.ir.Value;
import ingot.nn.Activations;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// RNN, GRU and LSTM, unrolled over the time steps of the bound shape.
final class OnnxRecurrent {
    private static final int MAX_STEPS = 4096;

    private final OnnxCall call;
    private final GraphBuilder b;
    private final int gates;
    private final Value x; // [time, batch, input]
    private final int time;
    private final int batch;
    private final int hidden;
    private final int directions;
    private final @Nullable Value lengths; // [batch]
    private final List<String> names;

    private OnnxRecurrent(OnnxCall call, int gates, List<String> defaults) {
        this.call = call;
        this.b = call.b();
        this.gates = gates;
        boolean batchFirst = call.flag("layout");
        this.x = batchFirst ? b.transpose(call.in(0), 1, 0, 2) : call.in(0);
        this.time = x.shape().dim(0);
        this.batch = x.shape().dim(1);
        this.hidden = call.in(2).shape().dim(-1);
        this.directions = call.in(1).shape().dim(0);
        this.lengths = call.has(4) ? b.convert(call.in(4), DType.I32) : null;
        List<String> given = call.texts("activations");
        List<String> all = new ArrayList<>();
        for (int d = 0; d < directions; d++) {
            all.addAll(defaults);
        }
        this.names = given.isEmpty() ? all : given;
        if (time > MAX_STEPS) {
            throw new IngotException("a sequence of " + time + " steps; up to " + MAX_STEPS + " are unrolled");
        }
    }

    static void addTo(Map<String, OnnxOperator> t) {
        t.put("RNN", c -> new OnnxRecurrent(c, 1, List.of("Tanh")).build());
        t.put("GRU", c -> new OnnxRecurrent(c, 3, List.of("Sigmoid", "Tanh")).build());
        t.put("LSTM", c -> new OnnxRecurrent(c, 4, List.of("Sigmoid", "Tanh", "Tanh")).build());
    }

    /// Hidden and, for an LSTM, cell state [batch, hidden].
    private record State(Value hidden, @Nullable Value cell) {}

    /// The weights of one direction: W [gates·hidden, input], R [gates·hidden, hidden], the biases of both, peepholes.
    private record Weights(
            Value w,
            Value r,
            @Nullable Value inputBias,
            @Nullable Value stateBias,
            @Nullable Value peep) {}

    private List<Value> build() {
        boolean batchFirst = call.flag("layout");
        String direction = call.text("direction", "forward");
        List<List<Value>> outputs = new ArrayList<>(); // per direction, per step
        List<State> last = new ArrayList<>();
        for (int d = 0; d < directions; d++) {
            boolean reverse = d == 1 || direction.equals("reverse");
            List<Value> steps = new ArrayList<>();
            last.add(run(d, reverse, steps));
            outputs.add(steps);
        }
        List<Value> perStep = new ArrayList<>();
        for (int t = 0; t < time; t++) {
            List<Value> both = new ArrayList<>();
            for (List<Value> steps : outputs) {
                both.add(b.reshape(steps.get(t), 1, 1, batch, hidden));
            }
            perStep.add(b.concatenate(both, 1));
        }
        Value y = b.concatenate(perStep, 0); // [time, directions, batch, hidden]
        List<Value> results = new ArrayList<>();
        results.add(batchFirst ? b.transpose(y, 2, 0, 1, 3) : y);
        results.add(joined(last.stream().map(State::hidden).toList(), batchFirst));
        if (gates == 4) {
            results.add(joined(
                    last.stream()
                            .map(s -> java.util.Objects.requireNonNull(s.cell()))
                            .toList(),
                    batchFirst));
        }
        return results;
    }

    /// [directions, batch, hidden], or batch first.
    private Value joined(List<Value> states, boolean batchFirst) {
        Value all = b.concatenate(
                states.stream().map(s -> b.reshape(s, 1, batch, hidden)).toList(), 0);
        return batchFirst ? b.transpose(all, 1, 0, 2) : all;
    }

    /// One direction: adds the output of every time step in order of time, and gives the last state.
    private State run(int d, boolean reverse, List<Value> steps) {
        Value bias = call.has(3) ? of(call.in(3), d) : null; // [2·gates·hidden]
        int n = gates * hidden;
        Weights weights = new Weights(
                of(call.in(1), d),
                of(call.in(2), d),
                bias == null ? null : b.slice(bias, 0, 0, n),
                bias == null ? null : b.slice(bias, 0, n, 2 * n),
                call.has(7) ? of(call.in(7), d) : null);
        State state = new State(initial(5, d), gates == 4 ? initial(6, d) : null);
        Value line = reverse ? reversed(x) : x;
        Value inputs = b.dot(line, weights.w(), List.of(), List.of(), List.of(2), List.of(1));
        if (weights.inputBias() != null) {
            inputs = b.add(inputs, weights.inputBias());
        }
        List<Value> found = new ArrayList<>();
        for (int t = 0; t < time; t++) {
            Value input = b.reshape(b.slice(inputs, 0, t, t + 1), batch, n);
            State next = step(d, input, state, weights);
            Value kept = next.hidden();
            if (lengths != null) { // past its length a sequence keeps its state and gives zeros
                Value inside = b.broadcast(
                        b.compare(CompareKind.LESS, b.constant(t), lengths), Shape.of(batch, hidden), List.of(0));
                kept = b.select(inside, next.hidden(), b.scalarLike(kept, 0));
                next = new State(
                        b.select(inside, next.hidden(), state.hidden()),
                        next.cell() == null || state.cell() == null
                                ? null
                                : b.select(inside, next.cell(), state.cell()));
            }
            state = next;
            found.add(kept);
        }
        if (reverse && lengths != null) {
            Value all = b.concatenate(
                    found.stream().map(s -> b.reshape(s, 1, batch, hidden)).toList(), 0);
            Value back = reversed(all);
            for (int t = 0; t < time; t++) {
                steps.add(b.reshape(b.slice(back, 0, t, t + 1), batch, hidden));
            }
        } else {
            steps.addAll(reverse ? found.reversed() : found);
        }
        return state;
    }

    /// In order of time backwards, each sequence within its own length.
    private Value reversed(Value line) {
        return lengths == null
                ? b.add(new Op.Reverse(line, List.of(0)))
                : OnnxIndexing.reversed(b, line, lengths, 0, 1);
    }

    private Value of(Value all, int direction) {
        Value one = b.slice(all, 0, direction, direction + 1);
        return b.reshape(one, one.shape().without(List.of(0)));
    }

    private Value initial(int input, int d) {
        if (!call.has(input)) {
            return b.broadcast(b.constant(0f), Shape.of(batch, hidden));
        }
        Value given = call.flag("layout") ? b.transpose(call.in(input), 1, 0, 2) : call.in(input);
        return of(given, d);
    }

    private State step(int d, Value input, State state, Weights weights) {
        return switch (gates) {
            case 1 -> {
                Value sum = b.add(input, recurrent(state.hidden(), weights, 0, 1));
                yield new State(activation(d, 0).apply(clipped(sum)), null);
            }
            case 3 -> gru(d, input, state.hidden(), weights);
            default -> lstm(d, input, state, weights);
        };
    }

    /// h · Rᵀ + bias for the gates from `first` to `last`: [batch, (last − first)·hidden].
    private Value recurrent(Value h, Weights weights, int first, int last) {
        Value r = b.slice(weights.r(), 0, first * hidden, last * hidden);
        Value product = b.dot(h, r, List.of(), List.of(), List.of(1), List.of(1));
        return weights.stateBias() == null
                ? product
                : b.add(product, b.slice(weights.stateBias(), 0, first * hidden, last * hidden));
    }

    private Value gate(Value all, int i) {
        return b.slice(all, 1, i * hidden, (i + 1) * hidden);
    }

    /// Gates z, r, h: h′ = (1 − z)·n + z·h with n = g(x + r·h), r before or after the matrix (Cho et al. 2014).
    private State gru(int d, Value input, Value h, Weights weights) {
        Value zr = b.add(b.slice(input, 1, 0, 2 * hidden), recurrent(h, weights, 0, 2));
        Value z = activation(d, 0).apply(clipped(gate(zr, 0)));
        Value r = activation(d, 0).apply(clipped(gate(zr, 1)));
        Value inner = call.flag("linear_before_reset")
                ? b.multiply(r, recurrent(h, weights, 2, 3))
                : recurrent(b.multiply(r, h), weights, 2, 3);
        Value n = activation(d, 1).apply(clipped(b.add(gate(input, 2), inner)));
        Value one = b.scalarLike(z, 1);
        return new State(b.add(b.multiply(b.subtract(one, z), n), b.multiply(z, h)), null);
    }

    /// Gates i, o, f, c; peepholes i, o, f look at the cell (Gers and Schmidhuber 2000).
    private State lstm(int d, Value input, State state, Weights weights) {
        Value cell = java.util.Objects.requireNonNull(state.cell());
        Value sums = b.add(input, recurrent(state.hidden(), weights, 0, 4));
        Value i = activation(d, 0).apply(clipped(peeped(gate(sums, 0), cell, weights, 0)));
        Value f = call.flag("input_forget")
                ? b.subtract(b.scalarLike(i, 1), i)
                : activation(d, 0).apply(clipped(peeped(gate(sums, 2), cell, weights, 2)));
        Value candidate = activation(d, 1).apply(clipped(gate(sums, 3)));
        Value next = b.add(b.multiply(f, cell), b.multiply(i, candidate));
        Value o = activation(d, 0).apply(clipped(peeped(gate(sums, 1), next, weights, 1)));
        return new State(b.multiply(o, activation(d, 2).apply(next)), next);
    }

    private Value peeped(Value sum, Value cell, Weights weights, int gate) {
        return weights.peep() == null
                ? sum
                : b.add(sum, b.multiply(cell, b.slice(weights.peep(), 0, gate * hidden, (gate + 1) * hidden)));
    }

    private Value clipped(Value x) {
        double clip = call.number("clip", 0);
        return clip == 0 ? x : b.min(b.max(x, b.scalarLike(x, -clip)), b.scalarLike(x, clip));
    }

    private UnaryOperator<Value> activation(int d, int i) {
        int each = gates == 1 ? 1 : gates == 3 ? 2 : 3;
        int at = d * each + i;
        String name = names.get(at).toLowerCase(Locale.ROOT);
        List<Float> alphas = call.numbers("activation_alpha");
        List<Float> betas = call.numbers("activation_beta");
        Double alpha = at < alphas.size() ? Double.valueOf(alphas.get(at)) : null;
        double beta = at < betas.size() ? betas.get(at) : 0.5;
        return switch (name) {
            case "tanh" -> b::tanh;
            case "sigmoid" -> v -> Activations.sigmoid(b, v);
            case "relu" -> v -> OnnxMath.relu(b, v);
            case "softplus" -> v -> OnnxMath.softplus(b, v);
            case "softsign" -> v -> OnnxMath.softsign(b, v);
            case "elu" -> v -> OnnxMath.elu(b, v, alpha == null ? 1 : alpha);
            case "hardsigmoid" -> v -> OnnxMath.hardSigmoid(b, v, alpha == null ? 0.2 : alpha, beta);
            case "leakyrelu" ->
                v -> b.select(
                        b.compare(CompareKind.LESS, v, b.scalarLike(v, 0)),
                        b.multiply(v, alpha == null ? 0.01 : alpha),
                        v);
            case "thresholdedrelu" ->
                v -> b.select(
                        b.compare(CompareKind.GREATER, v, b.scalarLike(v, alpha == null ? 1 : alpha)),
                        v,
                        b.scalarLike(v, 0));
            case "scaledtanh" -> v -> b.multiply(b.tanh(b.multiply(v, beta)), alpha == null ? 1 : alpha);
            case "affine" -> v -> b.add(b.multiply(v, alpha == null ? 1 : alpha), beta);
            default -> throw new IngotException("activation " + names.get(at) + " is not known");
        };
    }
}
