package ingot.nn;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Value;
import java.util.List;

/// Rotary positions (Su et al. 2021): channels i and i + width/2 of a head turn by position · base^(−2i/width).
///
/// The first `width` channels of a head turn, the others stay. The pairs are halves apart, as Hugging Face stores them.
public record Rope(int width, double base, Scaling scaling) {
    public Rope {
        if (width < 2 || width % 2 != 0 || !(base > 0)) {
            throw new IngotException(
                    "rope: expected an even number of channels and a positive base, got " + width + " and " + base);
        }
    }

    public static Rope of(int width, double base) {
        return new Rope(width, base, new None());
    }

    /// How the frequencies change so that a model reads texts longer than those it was trained on.
    public sealed interface Scaling {}

    public record None() implements Scaling {}

    /// All positions divided by `factor` (Chen et al. 2023).
    public record Linear(double factor) implements Scaling {
        public Linear {
            positive("linear", factor);
        }
    }

    /// Llama 3.1: waves longer than `context` / `low` are stretched by `factor`, those shorter than `context` / `high`
    /// stay, and between the two the frequency goes over linearly.
    public record Llama3(double factor, double low, double high, int context) implements Scaling {
        public Llama3 {
            positive("llama3", factor, low, high, context);
            if (low >= high) {
                throw new IngotException(
                        "rope: llama3 expected low_freq_factor below high_freq_factor, got " + low + " and " + high);
            }
        }
    }

    /// YaRN (Peng et al. 2023): channels that turn more than `fast` times in `context` positions stay, those that turn
    /// less than `slow` times are stretched by `factor`; cosines and sines are multiplied by `magnitude`.
    public record Yarn(double factor, int context, double fast, double slow, double magnitude, boolean wholeChannels)
            implements Scaling {
        public Yarn {
            positive("yarn", factor, context, fast, slow, magnitude);
        }
    }

    /// What the channels of a head turn by, a row per position: cosines and sines [time, width / 2].
    record Angles(Value cos, Value sin) {}

    /// Angles of `positions` I32 [time].
    Angles angles(GraphBuilder b, Value positions) {
        int time = positions.shape().dim(0);
        double[] frequencies = frequencies();
        Shape shape = Shape.of(time, frequencies.length);
        Tensor perChannel = Tensor.zeros(new ingot.ir.Type(DType.F32, Shape.of(frequencies.length)));
        for (int i = 0; i < frequencies.length; i++) {
            perChannel.setFloat(i, (float) frequencies[i]);
        }
        Value at = b.broadcast(b.convert(positions, DType.F32), shape, List.of(0));
        Value angle = b.multiply(at, b.broadcast(b.constant(perChannel), shape)); // [time, width / 2]
        Value cos = b.unary(UnaryKind.COS, angle);
        Value sin = b.unary(UnaryKind.SIN, angle);
        double magnitude = scaling instanceof Yarn yarn ? yarn.magnitude() : 1;
        return magnitude == 1
                ? new Angles(cos, sin)
                : new Angles(b.multiply(cos, magnitude), b.multiply(sin, magnitude));
    }

    /// Turns x [batch, time, heads, head width]: (x₁, x₂) → (x₁ cos − x₂ sin, x₂ cos + x₁ sin).
    static Value rotate(GraphBuilder b, Value x, Angles angles) {
        int half = angles.cos().shape().dim(1);
        int width = x.shape().dim(3);
        List<Value> parts = width == 2 * half
                ? Layers.split(b, x, 2, 3)
                : List.of(b.slice(x, 3, 0, half), b.slice(x, 3, half, 2 * half), b.slice(x, 3, 2 * half, width));
        Value first = parts.get(0);
        Value second = parts.get(1);
        Value cos = b.broadcast(angles.cos(), first.shape(), List.of(1, 3));
        Value sin = b.broadcast(angles.sin(), first.shape(), List.of(1, 3));
        Value turned = b.subtract(b.multiply(first, cos), b.multiply(second, sin));
        Value other = b.add(b.multiply(second, cos), b.multiply(first, sin));
        return b.concatenate(width == 2 * half ? List.of(turned, other) : List.of(turned, other, parts.get(2)), 3);
    }

    /// Radians per position of each pair.
    double[] frequencies() {
        double[] frequencies = new double[width / 2];
        for (int i = 0; i < frequencies.length; i++) {
            frequencies[i] = scaled(StrictMath.pow(base, -2.0 * i / width), i);
        }
        return frequencies;
    }

    private double scaled(double frequency, int pair) {
        return switch (scaling) {
            case None _ -> frequency;
            case Linear(double factor) -> frequency / factor;
            case Llama3(double factor, double low, double high, int context) -> {
                double turns = context * frequency / (2 * Math.PI);
                double kept = Math.clamp((turns - low) / (high - low), 0, 1);
                yield (1 - kept) * frequency / factor + kept * frequency;
            }
            case Yarn yarn -> {
                double first = pair(yarn.fast(), yarn.context());
                double last = pair(yarn.slow(), yarn.context());
                if (yarn.wholeChannels()) {
                    first = Math.floor(first);
                    last = Math.ceil(last);
                }
                first = Math.max(first, 0);
                last = Math.min(last, width - 1);
                double stretched = Math.clamp((pair - first) / Math.max(last - first, 1e-3), 0, 1);
                yield frequency / yarn.factor() * stretched + frequency * (1 - stretched);
            }
        };
    }

    /// The pair that turns `turns` times in `context` positions.
    private double pair(double turns, int context) {
        return width * StrictMath.log(context / (turns * 2 * Math.PI)) / (2 * StrictMath.log(base));
    }

    private static void positive(String what, double... values) {
        for (double value : values) {
            if (!(value > 0 && value < Double.POSITIVE_INFINITY)) {
                throw new IngotException("rope: " + what + " expected positive numbers, got " + value);
            }
        }
    }
}
