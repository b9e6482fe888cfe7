package ingot.testkit;

import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import java.util.SplittableRandom;

/// Tensors filled from a seed: the same seed gives the same bits everywhere.
public final class RandomTensors {
    private static final float[] SPECIAL = {
        0f,
        -0f,
        1f,
        -1f,
        Float.NaN,
        Float.POSITIVE_INFINITY,
        Float.NEGATIVE_INFINITY, //
        Float.MIN_VALUE,
        -Float.MIN_VALUE,
        Float.MIN_NORMAL,
        -0x1.8p-130f,
        Float.MAX_VALUE,
        -Float.MAX_VALUE,
        0x1p24f
    };

    private RandomTensors() {}

    /// Floats from (−2, 2) with full mantissas; integers from −5 to 5 (U8: 0 to 10); fair BOOL.
    public static Tensor of(Type type, long seed) {
        return of(type, new SplittableRandom(seed));
    }

    public static Tensor of(Type type, SplittableRandom random) {
        Tensor tensor = Tensor.zeros(type);
        for (long i = 0; i < type.shape().elements(); i++) {
            switch (type.dtype()) {
                case F32, BF16, F16 -> tensor.setFloat(i, (float) random.nextDouble(-2, 2));
                case I32, I64, I8 -> tensor.setLong(i, random.nextInt(-5, 6));
                case U8 -> tensor.setLong(i, random.nextInt(11));
                case BOOL -> tensor.setLong(i, random.nextInt(2));
            }
        }
        return tensor;
    }

    /// Like `of`, but one element in eight is a NaN, an infinity, a zero of either sign, a denormal or an extreme;
    /// integers are any bits.
    public static Tensor special(Type type, SplittableRandom random) {
        Tensor tensor = of(type, random);
        for (long i = 0; i < type.shape().elements(); i++) {
            if (type.dtype().isFloating() && random.nextInt(8) == 0) {
                tensor.setFloat(i, SPECIAL[random.nextInt(SPECIAL.length)]);
            } else if (type.dtype().isInteger() && random.nextInt(4) == 0) {
                tensor.setLong(i, random.nextLong());
            }
        }
        return tensor;
    }

    /// Indices from [0, size).
    public static Tensor indices(Shape shape, int size, SplittableRandom random) {
        int[] values = random.ints(shape.elements(), 0, Math.max(size, 1)).toArray();
        return Tensor.of(shape, values);
    }
}
