package ingot.nn;

import java.util.List;
import java.util.stream.Stream;

/// A model: what it learns. What it computes is said by its kind: [LanguageModel], [TextEncoder], [ImageClassifier].
public interface Network {
    /// The weights with their first values, in the order in which a graph of the model meets them.
    List<Parameter> parameters();

    /// What is stored with the model and read by its graphs, but learned by no gradient of the loss: the running
    /// statistics of norms over a batch.
    default List<Parameter> statistics() {
        return List.of();
    }

    /// All that is stored: parameters, then statistics.
    default List<Parameter> weights() {
        return Stream.concat(parameters().stream(), statistics().stream()).toList();
    }
}
