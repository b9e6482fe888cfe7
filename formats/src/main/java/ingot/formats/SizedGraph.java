package ingot.formats;

import ingot.ir.Graph;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;
import java.util.function.Function;

/// A model as a graph for any sizes of its inputs, such as `batch` and `sequence`.
///
/// @param most the largest value of each size, by its name
/// @param graph the graph for given sizes; it has the same weights for all
public record SizedGraph(SequencedMap<String, Integer> most, Function<Map<String, Integer>, Graph> graph) {
    public SizedGraph {
        most = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(most));
    }

    /// A graph whose sizes are all given.
    public static SizedGraph fixed(Graph graph) {
        return new SizedGraph(new LinkedHashMap<>(), sizes -> graph);
    }

    public Graph of(Map<String, Integer> sizes) {
        return graph.apply(sizes);
    }

    /// The same with some sizes decided.
    public SizedGraph with(Map<String, Integer> decided) {
        SequencedMap<String, Integer> open = new LinkedHashMap<>(most);
        open.keySet().removeAll(decided.keySet());
        return new SizedGraph(open, sizes -> {
            Map<String, Integer> all = new LinkedHashMap<>(sizes);
            all.putAll(decided);
            return graph.apply(all);
        });
    }
}
