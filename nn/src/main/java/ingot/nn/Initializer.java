package ingot.nn;

import ingot.ir.ScalarMath;
import ingot.ir.Tensor;
import java.nio.charset.StandardCharsets;

/// The first values of a parameter: a pure function of (seed, parameter name, position).
public sealed interface Initializer {
    record Normal(double deviation) implements Initializer {}

    /// Uniform in [−bound, bound).
    record Uniform(double bound) implements Initializer {}

    record Constant(double value) implements Initializer {}

    /// Writes the values of parameter `name` into `tensor`.
    default void fill(Tensor tensor, long seed, String name) {
        fill(tensor, seed, name, 0);
    }

    /// Writes the values at positions `start`, `start` + 1, … of parameter `name`: a part of it, when `tensor` is a
    /// part.
    ///
    /// The bits are those of the contract's generator with the two halves of a hash of the name as step and stream, and
    /// two rows of bits per element.
    default void fill(Tensor tensor, long seed, String name, long start) {
        long hash = hash(name);
        int[] key = ScalarMath.randomKey((int) seed, (int) (seed >>> 32), (int) hash, (int) (hash >>> 32));
        long elements = tensor.shape().elements();
        switch (this) {
            // Box and Muller: √(−2 ln u)·cos 2πv with u in (0, 1], v in [0, 1)
            case Normal normal -> {
                float deviation = (float) normal.deviation();
                for (long i = 0; i < elements; i++) {
                    float u = (top24(key, start + i, 0) + 1) * 0x1p-24f;
                    float angle = top24(key, start + i, 1) * 0x1p-24f * (float) (2 * Math.PI);
                    float radius = (float) Math.sqrt(-2f * ScalarMath.log(u));
                    tensor.setFloat(i, radius * ScalarMath.cos(angle) * deviation);
                }
            }
            case Uniform uniform -> {
                float bound = (float) uniform.bound();
                for (long i = 0; i < elements; i++) {
                    tensor.setFloat(i, (top24(key, start + i, 0) * 0x1p-23f - 1) * bound);
                }
            }
            case Constant constant -> {
                for (long i = 0; i < elements; i++) {
                    tensor.setFloat(i, (float) constant.value());
                }
            }
        }
    }

    private static int top24(int[] key, long position, int draw) {
        return ScalarMath.randomBits(key, 2 * (int) (position >>> 32) + draw, (int) position) >>> 8;
    }

    /// FNV-1a, 64 bits.
    private static long hash(String name) {
        long hash = 0xcbf29ce484222325L;
        for (byte b : name.getBytes(StandardCharsets.UTF_8)) {
            hash = (hash ^ (b & 0xFF)) * 0x100000001b3L;
        }
        return hash;
    }
}
