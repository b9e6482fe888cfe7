package ingot.formats;

import ingot.ir.IngotException;
import ingot.nn.Activation;
import java.util.Set;

/// What many config.json have in common.
final class Sizes {
    private Sizes() {}

    /// The number of layers: not more than there are tensors, so that no graph is built for an absurd one.
    static int layers(ModelConfig c, String key, Set<String> tensors) {
        int layers = c.whole(key, 0, 1 << 24);
        if (layers > tensors.size()) {
            throw new IngotException(
                    c.file() + ": " + key + " is " + layers + ", but there are only " + tensors.size() + " tensors");
        }
        return layers;
    }

    static Activation activation(ModelConfig c, String key, String fallback) {
        return switch (c.text(key, fallback)) {
            case "gelu_new", "gelu_pytorch_tanh", "gelu_fast" -> Activation.GELU_TANH;
            case "gelu" -> Activation.GELU;
            case "relu" -> Activation.RELU;
            case "silu", "swish" -> Activation.SILU;
            default -> throw c.unsupported(key, "gelu, gelu_new, gelu_pytorch_tanh, gelu_fast, relu, silu, swish");
        };
    }
}
