package ingot.nn;

import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;

/// A multilayer perceptron with relu between its layers: `sizes` are the widths from input to output.
public record Mlp(List<Integer> sizes) {
    public Mlp {
        sizes = List.copyOf(sizes);
        if (sizes.size() < 2 || sizes.stream().anyMatch(size -> size < 1)) {
            throw new IngotException("mlp: expected at least two positive sizes, from input to output, got " + sizes);
        }
    }

    public static Mlp of(Integer... sizes) {
        return new Mlp(List.of(sizes));
    }

    /// `layers.0.weight` [out, in], `layers.0.bias`, …: uniform in ±1/√in as in PyTorch.
    public List<Parameter> parameters() {
        List<Parameter> all = new ArrayList<>();
        for (int i = 0; i + 1 < sizes.size(); i++) {
            Initializer uniform = new Initializer.Uniform(1 / Math.sqrt(sizes.get(i)));
            all.add(new Parameter("layers." + i + ".weight", Type.f32(sizes.get(i + 1), sizes.get(i)), uniform, true));
            all.add(new Parameter("layers." + i + ".bias", Type.f32(sizes.get(i + 1)), uniform, false));
        }
        return all;
    }

    /// x [batch, in] → [batch, out].
    public Value logits(GraphBuilder b, Value x) {
        Value y = x;
        for (int i = 0; i + 1 < sizes.size(); i++) {
            Value in = i == 0 ? y : Activations.relu(b, y);
            Value weight = b.weight("layers." + i + ".weight", Type.f32(sizes.get(i + 1), sizes.get(i)));
            Value bias = b.weight("layers." + i + ".bias", Type.f32(sizes.get(i + 1)));
            y = b.scope("layers." + i, () -> Layers.linearTransposed(b, in, weight, bias));
        }
        return y;
    }

    /// Σ cross entropy · scale; targets I32 [batch], scale a scalar.
    public Value loss(GraphBuilder b, Value x, Value targets, Value scale) {
        return b.sum(b.multiply(CrossEntropy.crossEntropy(b, logits(b, x), targets), scale), 0);
    }
}
