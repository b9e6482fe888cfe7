package ingot.formats;

import ingot.nn.Randomness;
import java.util.Map;
import java.util.function.Predicate;

/// What a Keras model leaves open, decided: rows per batch, and the sizes that its configuration has as null.
///
/// @param sizes by `INPUT.AXIS`, axis 0 being the batch: `tokens.1`
/// @param training dropout draws (input `key`, see [Randomness]) and the statistics named by `tracked` follow the batch
public record KerasBinding(int batch, Map<String, Integer> sizes, boolean training, Predicate<String> tracked) {
    public KerasBinding {
        sizes = Map.copyOf(sizes);
        if (batch < 1) {
            throw new IllegalArgumentException("batch is " + batch + ", expected at least 1");
        }
    }

    public static KerasBinding batch(int batch) {
        return new KerasBinding(batch, Map.of(), false, name -> false);
    }

    public KerasBinding sizes(Map<String, Integer> others) {
        return new KerasBinding(batch, others, training, tracked);
    }

    /// A training pass: with dropout and, in batch norms that are not frozen, the statistics of the batch.
    public KerasBinding forTraining() {
        return new KerasBinding(batch, sizes, true, name -> true);
    }
}
