package ingot.nn;

import ingot.ir.GraphBuilder;
import ingot.ir.Value;

/// The nonlinearity of a feed-forward layer.
public enum Activation {
    GELU_TANH,
    GELU,
    RELU,
    SILU;

    Value apply(GraphBuilder b, Value x) {
        return switch (this) {
            case GELU_TANH -> Activations.geluTanh(b, x);
            case GELU -> Activations.gelu(b, x);
            case RELU -> Activations.relu(b, x);
            case SILU -> Activations.silu(b, x);
        };
    }
}
