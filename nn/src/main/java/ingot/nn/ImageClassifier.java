package ingot.nn;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import org.jspecify.annotations.Nullable;

/// A model of images: one class each.
public interface ImageClassifier extends Network {
    /// Height and width of an image.
    int imageSize();

    int channels();

    /// Number of classes; 0 without a head.
    int labels();

    /// Logits [batch, labels] of pixels F32 [batch, channels, height, width]; `random` null: no dropout.
    Value logits(GraphBuilder builder, Value pixels, @Nullable Randomness random);

    /// Input `pixels`; output `logits`.
    default Graph logitsGraph(int batch) {
        GraphBuilder builder = new GraphBuilder("logits");
        Value pixels = builder.input("pixels", Type.f32(batch, channels(), imageSize(), imageSize()));
        builder.output("logits", logits(builder, pixels, null));
        return builder.build();
    }

    /// Inputs `pixels`, `targets` I32 [batch], `scale` and, with `dropout`, `key`; output `loss`, the sum of the cross
    /// entropies times `scale`.
    default Graph lossGraph(int batch, boolean dropout) {
        if (labels() == 0) {
            throw new IngotException("image classifier: a model without a head has no loss; give it one first");
        }
        GraphBuilder builder = new GraphBuilder("loss");
        Value pixels = builder.input("pixels", Type.f32(batch, channels(), imageSize(), imageSize()));
        Value targets = builder.input("targets", Type.i32(batch));
        Value scale = builder.input("scale", new Type(DType.F32, Shape.SCALAR));
        Value logits = logits(builder, pixels, dropout ? Randomness.input(builder) : null);
        Value losses = CrossEntropy.crossEntropy(builder, logits, targets);
        builder.output("loss", builder.sum(builder.multiply(losses, scale), 0));
        return builder.build();
    }
}
