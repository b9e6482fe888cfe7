package ingot.nn;

import ingot.ir.DType;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/// Small deterministic tensors for tests.
final class Sample {
    private Sample() {}

    static Tensor floats(long seed, int... dims) {
        Tensor tensor = Tensor.zeros(new Type(DType.F32, Shape.of(dims)));
        SplittableRandom random = new SplittableRandom(seed);
        for (long i = 0; i < tensor.shape().elements(); i++) {
            tensor.setFloat(i, (float) random.nextDouble(-1.5, 1.5));
        }
        return tensor;
    }

    static Tensor ints(long seed, int bound, int... dims) {
        Tensor tensor = Tensor.zeros(new Type(DType.I32, Shape.of(dims)));
        SplittableRandom random = new SplittableRandom(seed);
        for (long i = 0; i < tensor.shape().elements(); i++) {
            tensor.setLong(i, random.nextInt(bound));
        }
        return tensor;
    }

    static Map<String, Tensor> weights(List<Parameter> parameters, long seed) {
        Map<String, Tensor> weights = new HashMap<>();
        for (Parameter parameter : parameters) {
            Tensor tensor = Tensor.zeros(parameter.type());
            new Initializer.Normal(0.3).fill(tensor, seed, parameter.name());
            weights.put(parameter.name(), tensor);
        }
        return weights;
    }
}
