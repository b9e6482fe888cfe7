package ingot.train;

import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.CrossEntropy;
import ingot.nn.Head;
import ingot.nn.Randomness;
import ingot.nn.TextEncoder;
import java.util.HashSet;
import java.util.Set;

/// The graphs of an encoder with a head over texts of one length.
///
/// @param weighted the loss of every target counts with the weight of its class: input `weights`, like the targets
record EncoderGraphs(TextEncoder model, int length, boolean weighted) {
    /// Inputs `tokens`, `mask`, perhaps `types`; `targets` (I32 [rows] or [rows, length], or F32 [rows, labels]);
    /// perhaps `weights`; `scale`, by which the sum of the losses is multiplied; with `dropout` also `key`. Output
    /// `loss`.
    Graph loss(int rows, boolean dropout) {
        GraphBuilder b = new GraphBuilder("loss");
        TextEncoder.Text text = text(b, rows, dropout ? Randomness.input(b) : null);
        Head head = model.head();
        Value hidden = model.hidden(b, text);
        Value logits = model.logits(b, hidden, text);
        Value scale = b.input("scale", Type.f32());
        Value losses = b.scope("loss", () -> {
            if (head.kind() == Head.Kind.NUMBERS) {
                Value targets = b.input("targets", Type.f32(rows, head.labels()));
                Value difference = b.subtract(logits, targets);
                return b.sum(b.multiply(difference, difference), 1); // [rows]
            }
            boolean each = head.kind() == Head.Kind.TOKEN_CLASS;
            Value targets = b.input("targets", each ? Type.i32(rows, length) : Type.i32(rows));
            Value flat = CrossEntropy.crossEntropy(
                    b, b.reshape(logits, -1, head.labels()), b.reshape(targets, -1)); // [targets]
            return weighted
                    ? b.multiply(
                            flat, b.reshape(b.input("weights", each ? Type.f32(rows, length) : Type.f32(rows)), -1))
                    : flat;
        });
        b.output("loss", b.sum(b.multiply(losses, scale), 0));
        return b.build();
    }

    /// Inputs `tokens`, `mask`, perhaps `types`; output `logits`.
    Graph logits(int rows) {
        GraphBuilder b = new GraphBuilder("logits");
        TextEncoder.Text text = text(b, rows, null);
        b.output("logits", model.logits(b, model.hidden(b, text), text));
        return b.build();
    }

    private TextEncoder.Text text(GraphBuilder b, int rows, @org.jspecify.annotations.Nullable Randomness random) {
        Value tokens = b.input("tokens", Type.i32(rows, length));
        Value mask = b.input("mask", Type.bool(rows, length));
        Value types = typed() ? b.input("types", Type.i32(rows, length)) : null;
        return new TextEncoder.Text(tokens, mask, types, random);
    }

    /// True if the two texts of a pair have tokens of different kinds.
    boolean typed() {
        return model.tokenTypes() > 1;
    }

    /// Inputs of the loss with the batch on axis 0.
    Set<String> batched() {
        Set<String> inputs = new HashSet<>(Set.of("tokens", "mask", "targets"));
        if (typed()) {
            inputs.add("types");
        }
        if (weighted) {
            inputs.add("weights");
        }
        return inputs;
    }
}
