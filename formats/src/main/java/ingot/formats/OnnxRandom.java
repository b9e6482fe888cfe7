package ingot.formats;

import static ingot.formats.OnnxOperator.one;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Shape;
import ingot.ir.Value;
import ingot.nn.Randomness;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/// Random numbers and dropout. Draws are functions of the graph's `key` input; seeds of the file are not used, since
/// what they give is nowhere defined.
final class OnnxRandom {
    private OnnxRandom() {}

    static void addTo(Map<String, OnnxOperator> t) {
        t.put("Dropout", OnnxRandom::dropout);
        t.put("RandomUniform", one(c -> scaledUniform(c, OnnxShapes.shape(c.ints("shape")))));
        t.put("RandomUniformLike", one(c -> scaledUniform(c, c.in(0).shape())));
        t.put("RandomNormal", one(c -> scaledNormal(c, OnnxShapes.shape(c.ints("shape")))));
        t.put("RandomNormalLike", one(c -> scaledNormal(c, c.in(0).shape())));
        t.put("Bernoulli", one(c -> {
            Value drawn = uniform(c, c.in(0).shape());
            return c.b().convert(
                            c.b().compare(CompareKind.LESS, drawn, c.b().convert(c.in(0), DType.F32)),
                            c.dtype("dtype", c.type(0)));
        }));
        t.put("Multinomial", one(OnnxRandom::multinomial));
    }

    /// Uniform in [0, 1): 24 random bits.
    private static Value uniform(OnnxCall c, Shape shape) {
        GraphBuilder b = c.b();
        Randomness random = c.randomness();
        Value bits = b.add(new Op.RandomBits(shape, random.nextStream(), random.key()));
        Value top = b.binary(BinaryKind.SHIFT_RIGHT_UNSIGNED, bits, b.constant(8));
        return b.multiply(b.convert(top, DType.F32), 0x1p-24);
    }

    private static Value scaledUniform(OnnxCall c, Shape shape) {
        double low = c.number("low", 0);
        double high = c.number("high", 1);
        return c.b().add(c.b().multiply(uniform(c, shape), high - low), low);
    }

    /// Box and Muller (1958): √(−2·log u)·cos 2πv.
    private static Value scaledNormal(OnnxCall c, Shape shape) {
        GraphBuilder b = c.b();
        Value u = b.add(uniform(c, shape), 0x1p-25); // above 0
        Value radius = b.sqrt(b.multiply(b.log(u), -2));
        Value normal = b.multiply(radius, b.unary(UnaryKind.COS, b.multiply(uniform(c, shape), 2 * Math.PI)));
        return b.add(b.multiply(normal, c.number("scale", 1)), c.number("mean", 0));
    }

    /// The class with the largest logit + Gumbel noise, for each sample (Gumbel 1954).
    private static Value multinomial(OnnxCall c) {
        GraphBuilder b = c.b();
        int samples = Math.toIntExact(c.integer("sample_size", 1));
        int batch = c.in(0).shape().dim(0);
        int classes = c.in(0).shape().dim(1);
        Shape shape = Shape.of(batch, samples, classes);
        Value u = b.add(uniform(c, shape), 0x1p-25);
        Value noise = b.negate(b.log(b.negate(b.log(u))));
        Value scores = b.add(b.broadcast(c.in(0), shape, List.of(0, 2)), noise);
        return b.convert(OnnxReductions.argument(b, scores, 2, true, false), c.dtype("dtype", OnnxType.INT32));
    }

    /// The identity in inference. A ratio that the node itself asks to use, or a binding for training, draws.
    private static List<Value> dropout(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        boolean asked = c.has(2) && c.known(2).getBoolean(0);
        double ratio = c.has(1) ? c.known(1).getFloat(0) : c.number("ratio", 0.5);
        List<Value> results = new ArrayList<>();
        if ((asked || c.isTraining()) && ratio > 0) {
            Value kept = b.compare(CompareKind.GREATER_EQUAL, uniform(c, x.shape()), b.constant((float) ratio));
            results.add(b.select(kept, b.multiply(x, 1 / (1 - ratio)), c.scalar(x, 0)));
            results.add(kept);
        } else {
            results.add(x);
            results.add(b.broadcast(b.constant(true), x.shape()));
        }
        return results;
    }
}
