package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import ingot.ir.Graph;
import ingot.ir.IngotException;
import ingot.ir.Interpreter;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.nn.Initializer;
import ingot.nn.Parameter;
import ingot.store.RamStore;
import ingot.store.WeightStore.Key;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Every rule against its formula in double, and compiled as used in training.
class OptimizerTest {
    private static final int ELEMENTS = 37;
    private static final int STEPS = 20;
    private static final double RATE = 0.01;

    /// A rule in double: changes w and the moments.
    private interface Formula {
        double apply(double w, double g, double[] moments, int t, boolean decay);
    }

    record Case(Optimizer optimizer, Formula formula) {
        @Override
        public String toString() {
            return optimizer.toString();
        }
    }

    static List<Case> cases() {
        return List.of(
                new Case(
                        new Optimizer.AdamW(0.9, 0.95, 1e-8, 0.1),
                        (w, g, m, t, decay) ->
                                (decay ? w * (1 - RATE * 0.1) : w) - RATE * adam(g, m, t, 0.9, 0.95, 1e-8)),
                new Case(
                        new Optimizer.Adam(0.9, 0.999, 1e-6, 0.1),
                        (w, g, m, t, decay) -> w - RATE * adam(decay ? g + 0.1 * w : g, m, t, 0.9, 0.999, 1e-6)),
                new Case(new Optimizer.Sgd(0.9, 0.1), (w, g, m, t, decay) -> {
                    m[0] = 0.9 * m[0] + (decay ? g + 0.1 * w : g);
                    return w - RATE * m[0];
                }),
                new Case(new Optimizer.Sgd(0, 0), (w, g, m, t, decay) -> w - RATE * g),
                new Case(new Optimizer.Lion(0.9, 0.99, 0.1), (w, g, m, t, decay) -> {
                    double direction = Math.signum(0.9 * m[0] + 0.1 * g);
                    m[0] = 0.99 * m[0] + 0.01 * g;
                    return w - RATE * (direction + (decay ? 0.1 * w : 0));
                }));
    }

    private static double adam(double g, double[] m, int t, double beta1, double beta2, double epsilon) {
        m[0] = beta1 * m[0] + (1 - beta1) * g;
        m[1] = beta2 * m[1] + (1 - beta2) * g * g;
        return m[0] / (1 - Math.pow(beta1, t)) / (Math.sqrt(m[1] / (1 - Math.pow(beta2, t))) + epsilon);
    }

    @ParameterizedTest
    @MethodSource("cases")
    void followsItsFormula(Case tested) {
        for (boolean decay : new boolean[] {true, false}) {
            Random random = new Random(1);
            Optimizer optimizer = tested.optimizer();
            Graph graph = optimizer.update(ELEMENTS, decay);
            float[] weight = new float[ELEMENTS];
            double[] exact = new double[ELEMENTS];
            double[][] exactMoments = new double[ELEMENTS][2];
            for (int i = 0; i < ELEMENTS; i++) {
                weight[i] = (float) random.nextGaussian();
                exact[i] = weight[i];
            }
            Map<String, Tensor> state = new HashMap<>();
            state.put("weight", Tensor.of(Shape.of(ELEMENTS), weight));
            optimizer.moments().forEach(m -> state.put(m, Tensor.of(Shape.of(ELEMENTS), new float[ELEMENTS])));
            for (int step = 0; step < STEPS; step++) {
                float scale = 0.5f;
                float[] gradient = new float[ELEMENTS];
                for (int i = 0; i < ELEMENTS; i++) {
                    gradient[i] = (float) random.nextGaussian();
                    exact[i] = tested.formula().apply(exact[i], scale * gradient[i], exactMoments[i], step + 1, decay);
                }
                Map<String, Tensor> inputs = new HashMap<>(state);
                inputs.put("gradient", Tensor.of(Shape.of(ELEMENTS), gradient));
                inputs.put("scale", Tensor.scalar(scale));
                optimizer.scalars(step, RATE).forEach((name, value) -> inputs.put(name, Tensor.scalar(value)));
                state.putAll(Interpreter.run(graph, inputs, Map.of()));
            }
            float[] found = state.get("weight").toFloats();
            for (int i = 0; i < ELEMENTS; i++) {
                assertThat((double) found[i]).isCloseTo(exact[i], within(5e-6));
            }
        }
    }

    /// Compiled and applied in place, an update has the interpreter's bits.
    @ParameterizedTest
    @MethodSource("cases")
    void deferredUpdatesHaveTheBitsOfTheGraph(Case tested) {
        Optimizer optimizer = tested.optimizer();
        Parameter parameter = new Parameter("p", ingot.ir.Type.f32(ELEMENTS), new Initializer.Normal(1), true);
        Random random = new Random(2);
        float[] weight = new float[ELEMENTS];
        float[] gradient = new float[ELEMENTS];
        for (int i = 0; i < ELEMENTS; i++) {
            weight[i] = (float) random.nextGaussian();
            gradient[i] = (float) random.nextGaussian();
        }
        Map<String, Tensor> inputs = new HashMap<>();
        inputs.put("weight", Tensor.of(Shape.of(ELEMENTS), weight.clone()));
        inputs.put("gradient", Tensor.of(Shape.of(ELEMENTS), gradient));
        inputs.put("scale", Tensor.scalar(0.25f));
        optimizer.moments().forEach(m -> inputs.put(m, Tensor.of(Shape.of(ELEMENTS), new float[ELEMENTS])));
        optimizer.scalars(0, RATE).forEach((name, value) -> inputs.put(name, Tensor.scalar(value)));
        Map<String, Tensor> expected = Interpreter.run(optimizer.update(ELEMENTS, true), inputs, Map.of());
        try (RamStore store = new RamStore()) {
            store.create(Key.weight("p"), parameter.type());
            store.create(Key.gradient("p"), parameter.type());
            optimizer.moments().forEach(m -> store.create(new Key("p", m), parameter.type()));
            store.pin(Key.weight("p"))
                    .copyFrom(Tensor.of(Shape.of(ELEMENTS), weight).data());
            store.pin(Key.gradient("p"))
                    .copyFrom(Tensor.of(Shape.of(ELEMENTS), gradient).data());
            try (DeferredUpdates updates =
                    new DeferredUpdates(optimizer, List.of(parameter), Backends.tested(), store)) {
                updates.pend(0, RATE, 0.25f);
                updates.flush();
                updates.flush();
            }
            expected.forEach((part, tensor) -> assertThat(Tensor.over(parameter.type(), store.pin(new Key("p", part)))
                            .sameBits(tensor))
                    .as(part)
                    .isTrue());
        }
    }

    @Test
    void impossibleSettingsAreRefused() {
        assertThatThrownBy(() -> new Optimizer.AdamW(1, 0.9, 1e-8, 0))
                .isInstanceOf(IngotException.class)
                .hasMessage("adamw: beta1: expected 0 to below 1, got 1.0");
        assertThatThrownBy(() -> new Optimizer.AdamW(0.9, 0.9, 0, 0))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("epsilon");
        assertThatThrownBy(() -> new Optimizer.Sgd(-0.1, 0)).isInstanceOf(IngotException.class);
        assertThatThrownBy(() -> new Optimizer.Lion(0.9, 0.99, -1)).isInstanceOf(IngotException.class);
    }
}
