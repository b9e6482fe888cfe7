package ingot.formats;

import static ingot.formats.OnnxOperator.one;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Op.CompareKind;
import ingot.ir.Shape;
import ingot.ir.Value;
import ingot.nn.Softmax;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/// Losses over scores [batch, classes, …] and class numbers [batch, …].
final class OnnxLosses {
    private OnnxLosses() {}

    static void addTo(Map<String, OnnxOperator> t) {
        t.put("NegativeLogLikelihoodLoss", one(c -> likelihood(c, c.in(0))));
        t.put("SoftmaxCrossEntropyLoss", c -> {
            GraphBuilder b = c.b();
            List<Integer> order = OnnxReductions.toEnd(c.in(0).shape().rank(), 1);
            Value logs = b.transpose(Softmax.logSoftmax(b, b.transpose(c.in(0), order)), OnnxReductions.inverse(order));
            return List.of(likelihood(c, logs), logs);
        });
    }

    /// −weight[class] · logs[class], averaged by the weights unless the node says otherwise.
    private static Value likelihood(OnnxCall c, Value logs) {
        GraphBuilder b = c.b();
        Value targets = b.convert(c.in(1), DType.I32);
        int classes = logs.shape().dim(1);
        Shape one = logs.shape().with(1, 1);
        Value chosen = b.reshape(b.add(new Op.TakeAlong(logs, b.reshape(targets, one), 1)), targets.shape());
        Value weight = c.has(2) ? b.gather(c.in(2), targets, 0) : b.fullLike(chosen, 1);
        if (c.hasAttribute("ignore_index")) {
            Value ignored =
                    b.compare(CompareKind.EQUAL, targets, b.constant(Math.toIntExact(c.integer("ignore_index", 0))));
            weight = b.select(ignored, b.scalarLike(weight, 0), weight);
        } else if (classes == 0) {
            throw c.unsupported("a loss without classes");
        }
        Value losses = b.negate(b.multiply(chosen, weight));
        int[] all = IntStream.range(0, targets.shape().rank()).toArray();
        return switch (c.text("reduction", "mean")) {
            case "none" -> losses;
            case "sum" -> b.sum(losses, all);
            case "mean" -> b.divide(b.sum(losses, all), b.sum(weight, all));
            case String other -> throw c.unsupported("the reduction " + other);
        };
    }
}
