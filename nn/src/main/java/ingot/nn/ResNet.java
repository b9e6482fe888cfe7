package ingot.nn;

import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// A residual network of basic blocks (He et al. 2016): two 3 × 3 convolutions and a way around them.
///
/// Parameters have the names of torchvision's ResNets.
///
/// @param stem channels of the first convolution, 3 × 3
/// @param stride of the first convolution
/// @param pool a max pooling 3 × 3 with stride 2 follows the first convolution
/// @param momentum how much of a batch's statistics goes into the running ones
/// @param deviation standard deviation of the first weights
public record ResNet(
        int imageSize,
        int channels,
        int stem,
        int stride,
        boolean pool,
        List<Block> blocks,
        int labels,
        double epsilon,
        double momentum,
        double deviation)
        implements ImageClassifier {
    /// One block: its name (`layer1.0`), its channels, and the stride of its first convolution.
    public record Block(String name, int channels, int stride) {}

    public ResNet {
        blocks = List.copyOf(blocks);
        boolean fits = imageSize > 0 && channels > 0 && stem > 0 && stride > 0 && labels > 0;
        if (!fits || blocks.stream().anyMatch(block -> block.channels() < 1 || block.stride() < 1)) {
            throw new IngotException(
                    "resnet: sizes must be positive, got image " + imageSize + " of " + channels + " channels, stem "
                            + stem + " with stride " + stride + ", labels " + labels + ", blocks " + blocks);
        }
        if (!(epsilon > 0) || !(momentum >= 0 && momentum <= 1)) {
            throw new IngotException(
                    "resnet: epsilon must be positive and momentum in [0, 1], got " + epsilon + " and " + momentum);
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

    /// A network for small images: a stem with stride 2, then three groups of `blocks` blocks with `stem`, 2 · `stem`
    /// and
    /// 4 · `stem` channels, each group half as high and wide as the one before.
    public static ResNet small(int imageSize, int channels, int stem, int blocks, int labels) {
        List<Block> all = new ArrayList<>();
        for (int group = 0; group < 3; group++) {
            for (int i = 0; i < blocks; i++) {
                int stride = group > 0 && i == 0 ? 2 : 1;
                all.add(new Block("layer" + (group + 1) + "." + i, stem << group, stride));
            }
        }
        return new ResNet(imageSize, channels, stem, 2, false, all, labels, 1e-5, 0.1, 0.01);
    }

    @Override
    public ResNet withLabels(int other) {
        return new ResNet(imageSize, channels, stem, stride, pool, blocks, other, epsilon, momentum, deviation);
    }

    @Override
    public Value logits(GraphBuilder b, Value pixels, @Nullable Randomness random, Predicate<String> tracked) {
        Norm norm = (w, name, x) -> w.batchNorm(name, x, epsilon, momentum, tracked);
        Weights w = new Weights(b, "");
        Value first = norm.apply(w, "bn1", w.convolution("conv1", pixels, stem, 3, stride, 1));
        Value x = Activations.relu(b, first);
        x = pool ? Layers.maxPool2d(b, x, 3, 2, 1) : x;
        for (Block block : blocks) {
            x = block(w.at(block.name()), x, block, norm);
        }
        Value pooled =
                b.multiply(b.sum(x, 2, 3), 1.0 / (x.shape().dim(2) * x.shape().dim(3))); // [batch, channels]
        return w.linear("fc", pooled, labels, true);
    }

    private interface Norm {
        Value apply(Weights w, String name, Value x);
    }

    private static Value block(Weights w, Value x, Block block, Norm norm) {
        GraphBuilder b = w.b();
        Value first = w.convolution("conv1", x, block.channels(), 3, block.stride(), 1);
        Value inner = Activations.relu(b, norm.apply(w, "bn1", first));
        Value y = norm.apply(w, "bn2", w.convolution("conv2", inner, block.channels(), 3, 1, 1));
        boolean same = block.stride() == 1 && x.shape().dim(1) == block.channels();
        Value around = same
                ? x
                : norm.apply(
                        w, "downsample.1", w.convolution("downsample.0", x, block.channels(), 1, block.stride(), 1));
        return Activations.relu(b, b.add(y, around));
    }
}
