package ingot.train;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.CrossEntropy;
import ingot.nn.Randomness;
import ingot.nn.TextEncoder;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// The graphs of an encoder whose vectors are learned: the mean of the hidden states, of length 1.
///
/// Of all second texts of a batch the one that belongs to the first text should be the nearest: cross entropy over the
/// cosines times 20 (Henderson et al. 2017, "Efficient Natural Language Response Suggestion", in-batch negatives).
record EmbeddingGraphs(TextEncoder model, int length) {
    /// What cosines are multiplied by: the inverse of a temperature of 0.05.
    static final double SHARPNESS = 20;

    /// Before the inputs of the second texts.
    static final String SECOND = "second.";

    /// Inputs `tokens`, `mask`, perhaps `types`, and the same of the second texts; `targets`, the number of each row;
    /// `scale`; with `dropout` also `key`. Output `loss`.
    Graph loss(int rows, boolean dropout) {
        GraphBuilder b = new GraphBuilder("loss");
        Randomness random = dropout ? Randomness.input(b) : null;
        Value first = vectors(b, rows, "", random); // [rows, width]
        Value second = vectors(b, rows, SECOND, random);
        Value targets = b.input("targets", Type.i32(rows));
        Value scale = b.input("scale", Type.f32());
        b.output("loss", b.scope("loss", () -> {
            Value cosines = b.dot(first, second, List.of(), List.of(), List.of(1), List.of(1)); // [rows, rows]
            Value losses = CrossEntropy.crossEntropy(b, b.multiply(cosines, SHARPNESS), targets);
            return b.sum(b.multiply(losses, scale), 0);
        }));
        return b.build();
    }

    /// Inputs `tokens`, `mask`, perhaps `types`; output `vectors` [rows, width].
    Graph vectors(int rows) {
        GraphBuilder b = new GraphBuilder("vectors");
        b.output("vectors", vectors(b, rows, "", null));
        return b.build();
    }

    private Value vectors(GraphBuilder b, int rows, String prefix, @Nullable Randomness random) {
        Value tokens = b.input(prefix + "tokens", Type.i32(rows, length));
        Value mask = b.input(prefix + "mask", Type.bool(rows, length));
        Value types = typed() ? b.input(prefix + "types", Type.i32(rows, length)) : null;
        Value hidden = model.hidden(b, new TextEncoder.Text(tokens, mask, types, random)); // [rows, length, width]
        Value real = b.convert(mask, DType.F32);
        Value sum = b.sum(b.multiply(hidden, b.broadcast(real, hidden.shape(), List.of(0, 1))), 1);
        Value mean = b.divide(sum, b.reduceKeep(ReduceKind.SUM, real, 1));
        Value size = b.sqrt(b.add(b.reduceKeep(ReduceKind.SUM, b.multiply(mean, mean), 1), 1e-24));
        return b.divide(mean, size);
    }

    boolean typed() {
        return model.tokenTypes() > 1;
    }

    Set<String> batched() {
        Set<String> inputs = new HashSet<>(Set.of("tokens", "mask", SECOND + "tokens", SECOND + "mask", "targets"));
        if (typed()) {
            inputs.add("types");
            inputs.add(SECOND + "types");
        }
        return inputs;
    }
}
