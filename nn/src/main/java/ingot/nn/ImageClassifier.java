package ingot.nn;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.Set;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// A model of images: one class each.
public interface ImageClassifier extends Network {
    /// Height and width of an image.
    int imageSize();

    int channels();

    /// Number of classes; 0 without a head.
    int labels();

    /// The same network with a head for other classes.
    ImageClassifier withLabels(int labels);

    /// True if its statistics can follow the batches; else they are those of a model that exists, and stay.
    default boolean tracks() {
        return true;
    }

    /// True if its training passes draw random bits.
    default boolean drops() {
        return false;
    }

    /// Logits [batch, labels] of pixels F32 [batch, channels, height, width].
    ///
    /// @param random null: no dropout
    /// @param tracked names of the statistics that follow the batch; a norm with such ones normalises by the batch
    Value logits(GraphBuilder builder, Value pixels, @Nullable Randomness random, Predicate<String> tracked);

    /// Logits as they are asked for after training: no dropout, and the statistics that are stored.
    default Value logits(GraphBuilder builder, Value pixels) {
        return logits(builder, pixels, null, name -> false);
    }

    /// Input `pixels`; output `logits`.
    default Graph logitsGraph(int batch) {
        GraphBuilder builder = new GraphBuilder("logits");
        Value pixels = builder.input("pixels", Type.f32(batch, channels(), imageSize(), imageSize()));
        builder.output("logits", logits(builder, pixels));
        return builder.build();
    }

    /// Inputs `pixels`, `targets` I32 [batch], `scale` and, with `dropout`, `key`; output `loss`, the sum of the cross
    /// entropies times `scale`.
    ///
    /// Norms over the batch normalise by its own statistics, which the running ones follow, unless these are among the
    /// weights that are `frozen`. They couple the rows of a batch: it must be computed as a whole.
    default Graph lossGraph(int batch, boolean dropout, Set<String> frozen) {
        if (labels() == 0) {
            throw new IngotException("image classifier: a model without a head has no loss; give it one first");
        }
        GraphBuilder builder = new GraphBuilder("loss");
        Value pixels = builder.input("pixels", Type.f32(batch, channels(), imageSize(), imageSize()));
        Value targets = builder.input("targets", Type.i32(batch));
        Value scale = builder.input("scale", new Type(DType.F32, Shape.SCALAR));
        Value logits =
                logits(builder, pixels, dropout ? Randomness.input(builder) : null, name -> !frozen.contains(name));
        Value losses = CrossEntropy.crossEntropy(builder, logits, targets);
        builder.output("loss", builder.sum(builder.multiply(losses, scale), 0));
        return builder.build();
    }

    /// The same with nothing frozen.
    default Graph lossGraph(int batch, boolean dropout) {
        return lossGraph(batch, dropout, Set.of());
    }
}
