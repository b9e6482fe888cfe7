package ingot.train;

import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Value;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// A rule that changes one weight from its gradient and its moments: a graph like any other, compiled like any other.
///
/// The graph works on flat F32 arrays. Inputs: `weight`, `gradient`, one per moment, and the scalars of `scalars`.
/// Outputs: `weight` and the moments. The gradient is multiplied by the scalar `scale` first: the factor of global-norm
/// clipping.
public sealed interface Optimizer {
    /// Names of the arrays the rule keeps per weight, zeros at the start.
    List<String> moments();

    /// The update of `elements` elements.
    Graph update(int elements, boolean decay);

    /// Values of the scalar inputs at update number `step` (from 0), beside `scale`.
    Map<String, Float> scalars(long step, double learningRate);

    /// AdamW (Loshchilov & Hutter 2019): decoupled weight decay.
    ///
    /// w ← w − lr·wd·w, m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g², w ← w − lr·(m/(1−β₁ᵗ)) / (√(v/(1−β₂ᵗ)) + ε)
    record AdamW(double beta1, double beta2, double epsilon, double weightDecay) implements Optimizer {
        public static final AdamW DEFAULT = new AdamW(0.9, 0.999, 1e-8, 0.01);

        public AdamW {
            checkAdam("adamw", beta1, beta2, epsilon, weightDecay);
        }

        @Override
        public List<String> moments() {
            return List.of("m", "v");
        }

        @Override
        public Graph update(int elements, boolean decay) {
            UpdateGraph u = new UpdateGraph("adamw", elements);
            Value w = u.input("weight");
            if (decay && weightDecay > 0) {
                w = u.builder()
                        .subtract(w, u.builder().multiply(u.builder().multiply(u.scalar("rate"), weightDecay), w));
            }
            return adam(u, w, u.gradient(), beta1, beta2, epsilon);
        }

        @Override
        public Map<String, Float> scalars(long step, double learningRate) {
            return adamScalars(step, learningRate, beta1, beta2);
        }
    }

    /// Adam (Kingma & Ba 2015) with the decay added to the gradient (L2).
    record Adam(double beta1, double beta2, double epsilon, double weightDecay) implements Optimizer {
        public Adam {
            checkAdam("adam", beta1, beta2, epsilon, weightDecay);
        }

        @Override
        public List<String> moments() {
            return List.of("m", "v");
        }

        @Override
        public Graph update(int elements, boolean decay) {
            UpdateGraph u = new UpdateGraph("adam", elements);
            Value w = u.input("weight");
            return adam(u, w, u.decayedGradient(w, decay ? weightDecay : 0), beta1, beta2, epsilon);
        }

        @Override
        public Map<String, Float> scalars(long step, double learningRate) {
            return adamScalars(step, learningRate, beta1, beta2);
        }
    }

    /// Stochastic gradient descent with momentum, as in PyTorch: b ← μb + g, w ← w − lr·b. The decay is added to the
    /// gradient.
    record Sgd(double momentum, double weightDecay) implements Optimizer {
        public Sgd {
            range("sgd: momentum", momentum, 0, 1);
            range("sgd: weight decay", weightDecay, 0, Double.MAX_VALUE);
        }

        @Override
        public List<String> moments() {
            return momentum == 0 ? List.of() : List.of("momentum");
        }

        @Override
        public Graph update(int elements, boolean decay) {
            UpdateGraph u = new UpdateGraph("sgd", elements);
            Value w = u.input("weight");
            Value step = u.decayedGradient(w, decay ? weightDecay : 0);
            if (momentum != 0) {
                // from zeros: μ·0 + g = g, PyTorch's first step
                step = u.builder().add(u.builder().multiply(u.input("momentum"), momentum), step);
                u.builder().output("momentum", step);
            }
            u.builder().output("weight", u.builder().subtract(w, u.builder().multiply(u.scalar("rate"), step)));
            return u.builder().build();
        }

        @Override
        public Map<String, Float> scalars(long step, double learningRate) {
            return Map.of("rate", (float) learningRate);
        }
    }

    /// Lion (Chen et al. 2023): w ← w − lr·(sign(β₁m + (1−β₁)g) + wd·w), m ← β₂m + (1−β₂)g.
    record Lion(double beta1, double beta2, double weightDecay) implements Optimizer {
        public Lion {
            range("lion: beta1", beta1, 0, 1);
            range("lion: beta2", beta2, 0, 1);
            range("lion: weight decay", weightDecay, 0, Double.MAX_VALUE);
        }

        @Override
        public List<String> moments() {
            return List.of("m");
        }

        @Override
        public Graph update(int elements, boolean decay) {
            UpdateGraph u = new UpdateGraph("lion", elements);
            Value w = u.input("weight");
            Value m = u.input("m");
            Value g = u.gradient();
            Value direction = u.builder()
                    .unary(
                            UnaryKind.SIGN,
                            u.builder()
                                    .add(
                                            u.builder().multiply(m, beta1),
                                            u.builder().multiply(g, 1 - beta1)));
            if (decay && weightDecay > 0) {
                direction = u.builder().add(direction, u.builder().multiply(w, weightDecay));
            }
            u.builder().output("weight", u.builder().subtract(w, u.builder().multiply(u.scalar("rate"), direction)));
            u.builder()
                    .output(
                            "m",
                            u.builder()
                                    .add(
                                            u.builder().multiply(m, beta2),
                                            u.builder().multiply(g, 1 - beta2)));
            return u.builder().build();
        }

        @Override
        public Map<String, Float> scalars(long step, double learningRate) {
            return Map.of("rate", (float) learningRate);
        }
    }

    private static Graph adam(UpdateGraph u, Value w, Value g, double beta1, double beta2, double epsilon) {
        GraphBuilder b = u.builder();
        Value m = b.add(b.multiply(u.input("m"), beta1), b.multiply(g, 1 - beta1));
        Value v = b.add(b.multiply(u.input("v"), beta2), b.multiply(b.multiply(g, g), 1 - beta2));
        Value denominator = b.add(b.sqrt(b.multiply(v, u.scalar("correction2"))), epsilon);
        Value step = b.divide(b.multiply(m, u.scalar("correction1")), denominator);
        b.output("weight", b.subtract(w, b.multiply(u.scalar("rate"), step)));
        b.output("m", m);
        b.output("v", v);
        return b.build();
    }

    /// correctionᵢ = 1 / (1 − βᵢᵗ), t counted from 1.
    private static Map<String, Float> adamScalars(long step, double learningRate, double beta1, double beta2) {
        Map<String, Float> scalars = new LinkedHashMap<>();
        scalars.put("rate", (float) learningRate);
        scalars.put("correction1", (float) (1 / (1 - StrictMath.pow(beta1, step + 1.0))));
        scalars.put("correction2", (float) (1 / (1 - StrictMath.pow(beta2, step + 1.0))));
        return scalars;
    }

    private static void checkAdam(String name, double beta1, double beta2, double epsilon, double weightDecay) {
        range(name + ": beta1", beta1, 0, 1);
        range(name + ": beta2", beta2, 0, 1);
        range(name + ": epsilon", epsilon, Double.MIN_VALUE, 1);
        range(name + ": weight decay", weightDecay, 0, Double.MAX_VALUE);
    }

    private static void range(String what, double value, double low, double high) {
        boolean unit = low == 0 && high == 1;
        if (!(value >= low && value <= high) || (unit && value == 1)) {
            throw new IngotException(
                    what + ": expected " + (unit ? "0 to below 1" : "at least " + low) + ", got " + value);
        }
    }
}
