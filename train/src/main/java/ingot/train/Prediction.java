package ingot.train;

import java.util.List;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/// What a model says about a text.
public sealed interface Prediction {
    /// One line of JSON; `name` says what was asked about.
    default String json(String name) {
        ObjectNode json = JsonMapper.shared().createObjectNode();
        json.put("name", name);
        write(json);
        return JsonMapper.shared().writeValueAsString(json);
    }

    private void write(ObjectNode json) {
        switch (this) {
            case OfClass one -> {
                json.put("label", one.label());
                ObjectNode all = json.putObject("probabilities");
                for (int i = 0; i < one.labels().size(); i++) {
                    all.put(one.labels().get(i), one.probabilities().get(i));
                }
            }
            case OfNumber one -> json.put("value", one.value());
            case OfWords words -> {
                var all = json.putArray("words");
                for (int i = 0; i < words.words().size(); i++) {
                    all.addObject()
                            .put("word", words.words().get(i))
                            .put("label", words.labels().get(i))
                            .put("probability", words.probabilities().get(i));
                }
            }
        }
    }

    /// A class with the probabilities of all.
    record OfClass(List<String> labels, List<Double> probabilities) implements Prediction {
        public OfClass {
            labels = List.copyOf(labels);
            probabilities = List.copyOf(probabilities);
        }

        /// The most probable.
        public String label() {
            return labels.get(best());
        }

        public double probability() {
            return probabilities.get(best());
        }

        private int best() {
            int best = 0;
            for (int i = 1; i < probabilities.size(); i++) {
                best = probabilities.get(i) > probabilities.get(best) ? i : best;
            }
            return best;
        }
    }

    record OfNumber(double value) implements Prediction {}

    /// A class for each word; words that had no room are left out.
    record OfWords(List<String> words, List<String> labels, List<Double> probabilities) implements Prediction {
        public OfWords {
            words = List.copyOf(words);
            labels = List.copyOf(labels);
            probabilities = List.copyOf(probabilities);
        }
    }
}
