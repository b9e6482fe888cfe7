package ingot.nn;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.MathExpansion;
import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.UnaryKind;
import ingot.ir.ScalarMath;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/// The first values of a parameter: a pure function of (seed, parameter name, position).
///
/// `fill` is the definition, one element at a time. The random kinds are also graphs of the same bits, so that a backend
/// can compute them; one graph serves all parameters of a kind. Inputs: `key` I32[4], see `key`; `first` I32, the low
/// half of the first position; `row` I32, twice its high half, which all positions have in common; `scale` F32, the
/// deviation or bound. Output: `values` F32[elements].
public sealed interface Initializer {
    record Normal(double deviation) implements Initializer {
        public static Graph graph(int elements) {
            GraphBuilder b = new GraphBuilder("normal");
            Value u = b.multiply(b.convert(b.add(top24(b, elements, 0), 1), DType.F32), 0x1p-24);
            Value v = b.multiply(b.convert(top24(b, elements, 1), DType.F32), 0x1p-24);
            Value radius = b.sqrt(b.multiply(b.log(u), -2));
            Value x = b.multiply(radius, b.unary(UnaryKind.COS, b.multiply(v, 2 * Math.PI)));
            b.output("values", b.multiply(x, b.input("scale", Type.f32())));
            return b.build();
        }
    }

    /// Uniform in [−bound, bound).
    record Uniform(double bound) implements Initializer {
        public static Graph graph(int elements) {
            GraphBuilder b = new GraphBuilder("uniform");
            Value x = b.add(b.multiply(b.convert(top24(b, elements, 0), DType.F32), 0x1p-23), -1);
            b.output("values", b.multiply(x, b.input("scale", Type.f32())));
            return b.build();
        }
    }

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
        int[] key = key(seed, name);
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

    /// The key of the random bits of parameter `name`.
    static int[] key(long seed, String name) {
        long hash = hash(name);
        return ScalarMath.randomKey((int) seed, (int) (seed >>> 32), (int) hash, (int) (hash >>> 32));
    }

    private static int top24(int[] key, long position, int draw) {
        return ScalarMath.randomBits(key, 2 * (int) (position >>> 32) + draw, (int) position) >>> 8;
    }

    private static Value top24(GraphBuilder b, int elements, int draw) {
        Value key = b.input("key", Type.i32(4));
        List<Value> words = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            words.add(b.reshape(b.slice(key, 0, i, i + 1), Shape.SCALAR));
        }
        Type type = Type.i32(elements);
        Value row = b.broadcast(b.add(b.input("row", Type.i32()), draw), type.shape());
        Value inner = b.add(b.iota(type, 0), b.input("first", Type.i32()));
        return b.binary(BinaryKind.SHIFT_RIGHT_UNSIGNED, MathExpansion.randomBits(b, words, row, inner), b.constant(8));
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
