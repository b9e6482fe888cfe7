package ingot.nn;

import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Value;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// MobileNetV2 (Sandler et al. 2018): inverted residuals, which widen, filter each channel by itself, and narrow.
///
/// Parameters have the names of torchvision's `mobilenet_v2`.
///
/// @param widthFactor times the channels of the original
/// @param momentum how much of a batch's statistics goes into the running ones
/// @param deviation standard deviation of the first weights
public record MobileNet(
        double widthFactor,
        int imageSize,
        int channels,
        int labels,
        double epsilon,
        double momentum,
        double dropout,
        double deviation)
        implements ImageClassifier {
    private static final int DIVISOR = 8;
    private static final int FIRST = 32;
    private static final int LAST = 1280;

    /// Blocks of the original: how many times wider inside, channels, how often, stride of the first.
    private record Stage(int expansion, int channels, int blocks, int stride) {}

    private static final List<Stage> STAGES = List.of(
            new Stage(1, 16, 1, 1),
            new Stage(6, 24, 2, 2),
            new Stage(6, 32, 3, 2),
            new Stage(6, 64, 4, 2),
            new Stage(6, 96, 3, 1),
            new Stage(6, 160, 3, 2),
            new Stage(6, 320, 1, 1));

    public MobileNet {
        boolean fits = widthFactor > 0 && widthFactor <= 16 && imageSize > 0 && channels > 0 && labels > 0;
        boolean rates = momentum >= 0 && momentum <= 1 && dropout >= 0 && dropout < 1;
        if (!fits || !(epsilon > 0) || !rates) {
            throw new IngotException("mobilenet: expected a width factor in (0, 16], positive sizes and epsilon, a"
                    + " momentum in [0, 1] and a dropout in [0, 1), got " + widthFactor + ", image " + imageSize
                    + " of " + channels + " channels, labels " + labels + ", epsilon " + epsilon + ", momentum "
                    + momentum + ", dropout " + dropout);
        }
    }

    @Override
    public List<Parameter> parameters() {
        return Weights.convolutional(logitsGraph(1), deviation);
    }

    @Override
    public List<Parameter> statistics() {
        return Weights.statistics(logitsGraph(1));
    }

    @Override
    public MobileNet withLabels(int other) {
        return new MobileNet(widthFactor, imageSize, channels, other, epsilon, momentum, dropout, deviation);
    }

    @Override
    public boolean drops() {
        return dropout > 0;
    }

    @Override
    public Value logits(GraphBuilder b, Value pixels, @Nullable Randomness random, Predicate<String> tracked) {
        Layer layer = new Layer(epsilon, momentum, tracked);
        Weights features = new Weights(b, "features.");
        Value x = layer.convolved(features, "0", pixels, scaled(FIRST), 3, 2, 1);
        int index = 1;
        for (Stage stage : STAGES) {
            for (int i = 0; i < stage.blocks(); i++) {
                int stride = i == 0 ? stage.stride() : 1;
                x = layer.block(features.at(index++ + ".conv"), x, stage.expansion(), scaled(stage.channels()), stride);
            }
        }
        int last = widthFactor > 1 ? scaled(LAST) : LAST;
        x = layer.convolved(features, Integer.toString(index), x, last, 1, 1, 1);
        Value pooled =
                b.multiply(b.sum(x, 2, 3), 1.0 / (x.shape().dim(2) * x.shape().dim(3))); // [batch, channels]
        Value dropped =
                Activations.dropout(b, pooled, dropout, random, pooled.shape().dim(0));
        return new Weights(b, "").linear("classifier.1", dropped, labels, true);
    }

    /// What all layers of a pass have in common.
    private record Layer(double epsilon, double momentum, Predicate<String> tracked) {
        Value block(Weights w, Value x, int expansion, int out, int stride) {
            int in = x.shape().dim(1);
            int at = 0;
            Value y = x;
            if (expansion > 1) {
                y = convolved(w, Integer.toString(at++), y, in * expansion, 1, 1, 1);
            }
            y = convolved(w, Integer.toString(at++), y, in * expansion, 3, stride, in * expansion);
            Value narrow = w.convolution(Integer.toString(at++), y, out, 1, 1, 1);
            Value result = w.batchNorm(Integer.toString(at), narrow, epsilon, momentum, tracked);
            return stride == 1 && in == out ? w.b().add(x, result) : result;
        }

        /// Convolution, norm, relu6.
        Value convolved(Weights w, String name, Value x, int out, int size, int stride, int groups) {
            Weights at = w.at(name);
            Value y = at.convolution("0", x, out, size, stride, groups);
            return Activations.relu6(w.b(), at.batchNorm("1", y, epsilon, momentum, tracked));
        }
    }

    /// The nearest multiple of 8 that is not more than a tenth smaller.
    private int scaled(int original) {
        double wanted = original * widthFactor;
        int rounded = Math.max(DIVISOR, (int) (wanted + DIVISOR / 2.0) / DIVISOR * DIVISOR);
        return rounded < 0.9 * wanted ? rounded + DIVISOR : rounded;
    }
}
