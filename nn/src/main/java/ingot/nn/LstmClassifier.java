package ingot.nn;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/// A classifier of token sequences by a long short-term memory (Hochreiter and Schmidhuber 1997) in one or both
/// directions: a linear map of the last layer's final states.
///
/// Parameters have the names of PyTorch's `Embedding`, `LSTM` and `Linear`: `embedding`, `lstm`, `fc`.
///
/// @param deviation standard deviation of the first weights
public record LstmClassifier(
        int vocabulary, int embedding, int width, int layers, boolean bothWays, int labels, double deviation)
        implements Network {
    public LstmClassifier {
        if (vocabulary < 1 || embedding < 1 || width < 1 || layers < 1 || labels < 1 || !(deviation >= 0)) {
            throw new IngotException("lstm: sizes must be positive, got vocabulary " + vocabulary + ", embedding "
                    + embedding + ", width " + width + ", layers " + layers + ", labels " + labels);
        }
    }

    @Override
    public List<Parameter> parameters() {
        return Weights.declared(logitsGraph(1, 1), deviation, 1);
    }

    /// Input `tokens` I32 [batch, time]; outputs `logits` [batch, labels] and `hidden`, the states of the last layer,
    /// [batch, time, width or twice].
    public Graph logitsGraph(int batch, int time) {
        GraphBuilder b = new GraphBuilder("logits");
        States states = states(b, b.input("tokens", Type.i32(batch, time)));
        b.output("logits", logits(b, states));
        b.output("hidden", states.all());
        return b.build();
    }

    /// Inputs `tokens`, `targets` I32 [batch] and `scale`; output `loss`, the sum of the cross entropies times `scale`.
    public Graph lossGraph(int batch, int time) {
        GraphBuilder b = new GraphBuilder("loss");
        Value tokens = b.input("tokens", Type.i32(batch, time));
        Value targets = b.input("targets", Type.i32(batch));
        Value scale = b.input("scale", new Type(DType.F32, Shape.SCALAR));
        Value losses = CrossEntropy.crossEntropy(b, logits(b, states(b, tokens)), targets);
        b.output("loss", b.sum(b.multiply(losses, scale), 0));
        return b.build();
    }

    /// All states of a layer [batch, time, …], and the last of each direction side by side [batch, …].
    private record States(Value all, Value last) {}

    private Value logits(GraphBuilder b, States states) {
        return new Weights(b, "").linear("fc", states.last(), labels, true);
    }

    private States states(GraphBuilder b, Value tokens) {
        Weights w = new Weights(b, "");
        Value x = w.embedding("embedding", tokens, vocabulary, embedding); // [batch, time, embedding]
        Value last = x;
        for (int layer = 0; layer < layers; layer++) {
            Value in = x;
            States forth = direction(w.at("lstm"), in, "_l" + layer, false);
            if (bothWays) {
                States back = direction(w.at("lstm"), in, "_l" + layer + "_reverse", true);
                x = b.concatenate(List.of(forth.all(), back.all()), 2);
                last = b.concatenate(List.of(forth.last(), back.last()), 1);
            } else {
                x = forth.all();
                last = forth.last();
            }
        }
        return new States(x, last);
    }

    /// One step per token: input, forget, cell and output gates from the token and the state before it.
    private States direction(Weights w, Value x, String suffix, boolean backwards) {
        GraphBuilder b = w.b();
        int batch = x.shape().dim(0);
        int time = x.shape().dim(1);
        Value ofInput = Layers.linearTransposed(
                b,
                x,
                w.of("weight_ih" + suffix, 4 * width, x.shape().dim(2)),
                w.of("bias_ih" + suffix, 4 * width)); // [batch, time, 4 width]
        Value recurrent = w.of("weight_hh" + suffix, 4 * width, width);
        Value bias = w.of("bias_hh" + suffix, 4 * width);
        Value state = b.broadcast(b.constant(0f), Shape.of(batch, width));
        Value cell = state;
        List<Value> states = new ArrayList<>();
        for (int i = 0; i < time; i++) {
            int t = backwards ? time - 1 - i : i;
            Value now = b.reshape(b.slice(ofInput, 1, t, t + 1), batch, 4 * width);
            List<Value> gates = Layers.split(b, b.add(now, Layers.linearTransposed(b, state, recurrent, bias)), 4, 1);
            Value in = Activations.sigmoid(b, gates.get(0));
            Value kept = Activations.sigmoid(b, gates.get(1));
            Value fresh = b.unary(UnaryKind.TANH, gates.get(2));
            Value out = Activations.sigmoid(b, gates.get(3));
            cell = b.add(b.multiply(kept, cell), b.multiply(in, fresh));
            state = b.multiply(out, b.unary(UnaryKind.TANH, cell));
            states.add(b.reshape(state, batch, 1, width));
        }
        if (backwards) {
            Collections.reverse(states);
        }
        return new States(b.concatenate(states, 1), state);
    }
}
