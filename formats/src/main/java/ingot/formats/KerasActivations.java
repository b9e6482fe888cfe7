package ingot.formats;

import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op.CompareKind;
import ingot.ir.Value;
import ingot.nn.Activations;
import ingot.nn.Softmax;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import tools.jackson.databind.JsonNode;

/// The activations of Keras by their names.
final class KerasActivations {
    /// The constants of Klambauer et al. 2017.
    private static final double SELU_SCALE = 1.0507009873554805;

    private static final double SELU_ALPHA = 1.6732632423543772;

    private KerasActivations() {}

    /// The name under a key; `hard_sigmoid` is another function since Keras 3, and gets a name of its own.
    static String name(KerasLayer layer, String key, int version) {
        JsonNode value = layer.config().path(key);
        if (!layer.has(key)) {
            return "linear";
        }
        if (value.isObject()) {
            // a reference to a function of Keras or to code of the author, which is not executed
            String module = value.path("module").asString("");
            JsonNode named = value.path("config");
            if (!module.startsWith("keras") || !named.isString()) {
                throw new IngotException(key + " is " + KerasLayer.brief(value)
                        + ": a function of the author, which is never executed; use one of Keras' activations");
            }
            value = named;
        }
        String name = value.asString("");
        return name.equals("hard_sigmoid") && version >= 3 ? "hard_sigmoid_3" : name;
    }

    static Value apply(GraphBuilder b, String name, Value x) {
        return switch (name) {
            case "linear" -> x;
            case "relu" -> Activations.relu(b, x);
            case "relu6" -> Activations.relu6(b, x);
            case "leaky_relu" -> leaky(b, x, 0.2);
            case "elu" -> OnnxMath.elu(b, x, 1);
            case "selu" -> b.multiply(OnnxMath.elu(b, x, SELU_ALPHA), selu(b, x));
            case "exponential" -> b.exp(x);
            case "gelu" -> Activations.gelu(b, x);
            case "gelu_new" -> Activations.geluTanh(b, x);
            case "sigmoid" -> Activations.sigmoid(b, x);
            case "hard_sigmoid" -> OnnxMath.hardSigmoid(b, x, 0.2, 0.5);
            case "hard_sigmoid_3" -> OnnxMath.hardSigmoid(b, x, 1.0 / 6, 0.5);
            case "hard_silu", "hard_swish" -> b.multiply(x, OnnxMath.hardSigmoid(b, x, 1.0 / 6, 0.5));
            case "silu", "swish" -> Activations.silu(b, x);
            case "mish" -> b.multiply(x, b.tanh(OnnxMath.softplus(b, x)));
            case "tanh" -> b.tanh(x);
            case "softplus" -> OnnxMath.softplus(b, x);
            case "softsign" -> OnnxMath.softsign(b, x);
            case "softmax" -> softmax(b, x, -1);
            case "log_softmax" -> Softmax.logSoftmax(b, x);
            default -> throw new IngotException("activation " + name + " is not known");
        };
    }

    /// λ·x where positive, else λ·α·(eˣ − 1): the λ, once.
    private static Value selu(GraphBuilder b, Value x) {
        return b.scalarLike(x, SELU_SCALE);
    }

    static Value leaky(GraphBuilder b, Value x, double slope) {
        return b.select(b.compare(CompareKind.LESS, x, b.scalarLike(x, 0)), b.multiply(x, slope), x);
    }

    static Value softmax(GraphBuilder b, Value x, int axis) {
        int at = GraphBuilder.axis(x, axis);
        int last = x.shape().rank() - 1;
        if (at == last) {
            return Softmax.softmax(b, x);
        }
        List<Integer> order = new ArrayList<>();
        for (int i = 0; i <= last; i++) {
            order.add(i);
        }
        Collections.swap(order, at, last); // its own inverse
        return b.transpose(Softmax.softmax(b, b.transpose(x, order)), order);
    }

    /// The layer ReLU: x·slope below the threshold (measured from it), x above, at most `max_value`.
    static Value relu(KerasCall c) {
        GraphBuilder b = c.b();
        double slope = c.layer().number("negative_slope", 0);
        double threshold = c.layer().number("threshold", 0);
        Value x = c.in();
        Value edge = b.scalarLike(x, threshold);
        Value low = b.multiply(b.subtract(x, edge), slope);
        Value y = b.select(b.compare(CompareKind.LESS, x, edge), low, x);
        if (slope == 0 && threshold == 0) {
            y = Activations.relu(b, x);
        }
        return c.layer().has("max_value") ? b.min(y, b.scalarLike(y, c.layer().number("max_value", 0))) : y;
    }

    /// PReLU has one slope per element, or per slice along the axes that share it.
    static Value parametric(KerasCall c) {
        int[] dims = c.in().shape().dims();
        int[] alpha = java.util.Arrays.copyOfRange(dims, 1, dims.length);
        if (c.layer().has("shared_axes")) {
            for (int axis : c.layer().integers("shared_axes")) {
                alpha[axis - 1] = 1;
            }
        }
        GraphBuilder b = c.b();
        Value x = c.in();
        Value slope = c.weight(0, "alpha", alpha);
        return b.select(b.compare(CompareKind.LESS, x, b.scalarLike(x, 0)), b.multiply(x, slope), x);
    }
}
