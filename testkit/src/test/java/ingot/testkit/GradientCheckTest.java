package ingot.testkit;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.Map;
import org.junit.jupiter.api.Test;

class GradientCheckTest {
    /// y = Σ tanh(x)·w, with ∂y/∂x = factor·(1 − tanh²(x))·w.
    private static Graph graph(double factor) {
        GraphBuilder b = new GraphBuilder("g");
        Value x = b.input("x", Type.f32(3, 5));
        Value w = b.weight("w", Type.f32(5));
        Value t = b.tanh(x);
        b.output("y", b.sum(b.multiply(t, w), 0, 1));
        Value slope = b.add(b.negate(b.multiply(t, t)), 1);
        b.output("dx", b.multiply(b.multiply(slope, w), factor));
        b.output("dw", b.sum(t, 0));
        return b.build();
    }

    private static void check(Graph graph) {
        GradientCheck.check(
                graph,
                Map.of("x", RandomTensors.of(Type.f32(3, 5), 1), "w", RandomTensors.of(Type.f32(5), 2)),
                "y",
                Map.of("x", "dx", "w", "dw"));
    }

    @Test
    void acceptsRightGradients() {
        assertThatCode(() -> check(graph(1))).doesNotThrowAnyException();
    }

    @Test
    void findsSmallMistakes() {
        assertThatThrownBy(() -> check(graph(1.00001)))
                .isInstanceOf(AssertionError.class)
                .hasMessageContaining("∂/∂x[")
                .hasMessageContaining("finite difference");
    }
}
