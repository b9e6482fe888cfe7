package ingot.formats;

import ingot.ir.GraphBuilder;
import ingot.ir.Shape;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/// The optimizers of `ai.onnx.preview.training`: inputs are rate, step, then all weights, all gradients, all moments.
final class OnnxOptimizers {
    private static final String DOMAIN = "ai.onnx.preview.training.";

    private OnnxOptimizers() {}

    static void addTo(Map<String, OnnxOperator> t) {
        t.put(DOMAIN + "Momentum", OnnxOptimizers::momentum);
        t.put(DOMAIN + "Adagrad", OnnxOptimizers::adagrad);
        t.put(DOMAIN + "Adam", OnnxOptimizers::adam);
    }

    /// The operands of one weight, in the order of the groups.
    private static List<List<Value>> perWeight(OnnxCall c, int groups) {
        int n = (c.inputs() - 2) / groups;
        List<List<Value>> all = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            List<Value> one = new ArrayList<>();
            for (int group = 0; group < groups; group++) {
                one.add(c.in(2 + group * n + i));
            }
            all.add(one);
        }
        return all;
    }

    /// Results per weight, as groups: first all first ones, then all second ones.
    private static List<Value> grouped(List<List<Value>> perWeight) {
        List<Value> results = new ArrayList<>();
        for (int group = 0; group < perWeight.getFirst().size(); group++) {
            for (List<Value> one : perWeight) {
                results.add(one.get(group));
            }
        }
        return results;
    }

    private static Value rate(OnnxCall c) {
        return c.b().reshape(c.in(0), Shape.SCALAR);
    }

    private static long step(OnnxCall c) {
        return c.known(1).getLong(0);
    }

    /// v ← α·v + β·g, where β is 1 in the first step; w ← w − rate·v, or w − rate·(g + α·v) of Nesterov.
    private static List<Value> momentum(OnnxCall c) {
        GraphBuilder b = c.b();
        double alpha = c.number("alpha", 0);
        double beta = step(c) > 0 ? c.number("beta", 0) : 1;
        boolean nesterov = c.text("mode", "standard").equals("nesterov");
        List<List<Value>> results = new ArrayList<>();
        for (List<Value> one : perWeight(c, 3)) {
            Value w = one.get(0);
            Value g = b.add(one.get(1), b.multiply(w, c.number("norm_coefficient", 0)));
            Value v = b.add(b.multiply(one.get(2), alpha), b.multiply(g, beta));
            Value direction = nesterov ? b.add(g, b.multiply(v, alpha)) : v;
            results.add(List.of(b.subtract(w, b.multiply(direction, rate(c))), v));
        }
        return grouped(results);
    }

    /// h ← h + g²; w ← w − rate·g / (√h + ε) (Duchi et al. 2011).
    private static List<Value> adagrad(OnnxCall c) {
        GraphBuilder b = c.b();
        Value rate = b.multiply(rate(c), 1 / (1 + step(c) * c.number("decay_factor", 0)));
        List<List<Value>> results = new ArrayList<>();
        for (List<Value> one : perWeight(c, 3)) {
            Value w = one.get(0);
            Value g = b.add(one.get(1), b.multiply(w, c.number("norm_coefficient", 0)));
            Value h = b.add(one.get(2), b.multiply(g, g));
            Value root = b.add(b.sqrt(h), c.number("epsilon", 1e-6f));
            results.add(List.of(b.subtract(w, b.multiply(b.divide(g, root), rate)), h));
        }
        return grouped(results);
    }

    /// Adam (Kingma and Ba 2015); the bias correction is in the rate.
    private static List<Value> adam(OnnxCall c) {
        GraphBuilder b = c.b();
        double alpha = c.number("alpha", 0.9f);
        double beta = c.number("beta", 0.999f);
        long step = step(c);
        double correction = step > 0 ? Math.sqrt(1 - Math.pow(beta, step)) / (1 - Math.pow(alpha, step)) : 1;
        Value rate = b.multiply(rate(c), correction);
        List<List<Value>> results = new ArrayList<>();
        for (List<Value> one : perWeight(c, 4)) {
            Value w = one.get(0);
            Value g = b.add(one.get(1), b.multiply(w, c.number("norm_coefficient", 0)));
            Value v = b.add(b.multiply(one.get(2), alpha), b.multiply(g, 1 - alpha));
            Value h = b.add(b.multiply(one.get(3), beta), b.multiply(b.multiply(g, g), 1 - beta));
            Value root = b.add(b.sqrt(h), c.number("epsilon", 1e-6f));
            Value next = b.subtract(w, b.multiply(b.divide(v, root), rate));
            results.add(List.of(b.multiply(next, 1 - c.number("norm_coefficient_post", 0)), v, h));
        }
        return grouped(results);
    }
}
