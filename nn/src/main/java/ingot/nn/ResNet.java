package ingot.nn;

import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// A residual network of basic blocks (He et al. 2016): two 3 × 3 convolutions and a way around them.
///
/// Parameters have the names of torchvision's ResNets. `logits` normalises by the stored statistics; the loss by those
/// of the batch, as training from scratch needs it, so its gradient holds for whole batches only.
///
/// @param stem channels of the first convolution, 3 × 3 with stride 1, before a max pooling 3 × 3 with stride 2
/// @param momentum how much of a batch's statistics goes into the running ones
/// @param deviation standard deviation of the first weights
public record ResNet(
        int imageSize,
        int channels,
        int stem,
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
        boolean fits = imageSize > 0 && channels > 0 && stem > 0 && labels > 0;
        if (!fits || blocks.stream().anyMatch(block -> block.channels() < 1 || block.stride() < 1)) {
            throw new IngotException("resnet: sizes must be positive, got image " + imageSize + " of " + channels
                    + " channels, stem " + stem + ", labels " + labels + ", blocks " + blocks);
        }
        if (!(epsilon > 0) || !(momentum >= 0 && momentum <= 1)) {
            throw new IngotException(
                    "resnet: epsilon must be positive and momentum in [0, 1], got " + epsilon + " and " + momentum);
        }
    }

    /// How a norm gets its statistics.
    private interface Norm {
        Value apply(Weights w, String name, Value x);
    }

    @Override
    public List<Parameter> parameters() {
        return Weights.declared(logitsGraph(1), deviation, 1);
    }

    @Override
    public List<Parameter> statistics() {
        return Weights.statistics(logitsGraph(1));
    }

    @Override
    public Value logits(GraphBuilder b, Value pixels, @Nullable Randomness random) {
        return network(b, pixels, (w, name, x) -> w.batchNorm(name, x, epsilon));
    }

    /// What a pass with the batch's own statistics gives: logits, and the running statistics after it by name.
    public record Pass(Value logits, Map<String, Value> statistics) {}

    /// The running mean moves by `momentum` to the batch's, the running variance to the batch's unbiased one.
    public Pass trainingPass(GraphBuilder b, Value pixels) {
        Map<String, Value> after = new LinkedHashMap<>();
        Value logits = network(b, pixels, (w, name, x) -> {
            Norms.BatchNorm norm = ofBatch(w, name, x);
            double count = x.shape().elements() / (double) x.shape().dim(1);
            moved(w, after, name + ".running_mean", norm.mean(), 1);
            moved(w, after, name + ".running_var", norm.variance(), count / Math.max(1, count - 1));
            return norm.result();
        });
        return new Pass(logits, after);
    }

    private Norms.BatchNorm ofBatch(Weights w, String name, Value x) {
        int width = x.shape().dim(1);
        return Norms.batchNormTraining(w.b(), x, w.of(name + ".weight", width), w.of(name + ".bias", width), epsilon);
    }

    private void moved(Weights w, Map<String, Value> after, String name, Value batch, double factor) {
        GraphBuilder b = w.b();
        Value kept = b.multiply(w.of(name, batch.shape().dim(0)), 1 - momentum);
        after.put(w.prefix() + name, b.add(kept, b.multiply(batch, momentum * factor)));
    }

    /// Normalises by the statistics of the batch; the running ones are those of `trainingPass`.
    @Override
    public Graph lossGraph(int batch, boolean dropout) {
        GraphBuilder b = new GraphBuilder("loss");
        Value pixels = b.input("pixels", Type.f32(batch, channels, imageSize, imageSize));
        Value targets = b.input("targets", Type.i32(batch));
        Value scale = b.input("scale", Type.f32());
        Value logits = network(b, pixels, (w, name, x) -> ofBatch(w, name, x).result());
        Value losses = CrossEntropy.crossEntropy(b, logits, targets);
        b.output("loss", b.sum(b.multiply(losses, scale), 0));
        return b.build();
    }

    private Value network(GraphBuilder b, Value pixels, Norm norm) {
        Weights w = new Weights(b, "");
        Value first = norm.apply(w, "bn1", w.convolution("conv1", pixels, stem, 3, 1, 1));
        Value x = Layers.maxPool2d(b, Activations.relu(b, first), 3, 2, 1);
        for (Block block : blocks) {
            x = block(w.at(block.name()), x, block, norm);
        }
        Value pooled =
                b.multiply(b.sum(x, 2, 3), 1.0 / (x.shape().dim(2) * x.shape().dim(3))); // [batch, channels]
        return w.linear("fc", pooled, labels, true);
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
