package ingot.train;

import java.util.LinkedHashMap;
import java.util.SequencedMap;

/// What a model does on data that it was not trained on.
public sealed interface Evaluation {
    /// What training makes small, on this data.
    double loss();

    /// The numbers under the names that they have in metrics.jsonl.
    SequencedMap<String, Double> values();

    /// A language model on text: mean loss in nats per token, bits per byte of text, and the perplexity per token.
    record Text(double loss, double bitsPerByte, double perplexity, long tokens) implements Evaluation {
        @Override
        public SequencedMap<String, Double> values() {
            SequencedMap<String, Double> values = new LinkedHashMap<>();
            values.put("held-out-loss", loss);
            values.put("bits-per-byte", bitsPerByte);
            values.put("perplexity", perplexity);
            return values;
        }
    }

    /// A language model on answers: mean loss in nats per token of the answers.
    record Answers(double loss, long tokens) implements Evaluation {
        public double perplexity() {
            return Math.exp(loss);
        }

        @Override
        public SequencedMap<String, Double> values() {
            SequencedMap<String, Double> values = new LinkedHashMap<>();
            values.put("held-out-loss", loss);
            values.put("perplexity", perplexity());
            return values;
        }
    }

    /// A classifier: mean loss and who was taken for whom.
    record Classes(double loss, Confusion confusion) implements Evaluation {
        @Override
        public SequencedMap<String, Double> values() {
            SequencedMap<String, Double> values = new LinkedHashMap<>();
            values.put("held-out-loss", loss);
            values.put("accuracy", confusion.accuracy());
            values.put("f1", confusion.f1());
            values.put("matthews", confusion.matthews());
            return values;
        }
    }

    /// Numbers: mean squared error, and how the predictions go with what was expected.
    record Numbers(double loss, double absoluteError, double pearson, double spearman, int examples)
            implements Evaluation {
        @Override
        public SequencedMap<String, Double> values() {
            SequencedMap<String, Double> values = new LinkedHashMap<>();
            values.put("held-out-loss", loss);
            values.put("absolute-error", absoluteError);
            values.put("pearson", pearson);
            values.put("spearman", spearman);
            return values;
        }
    }

    /// Vectors of texts: mean loss, and how often the nearest of the other side is the right one.
    record Neighbours(double loss, double recall, int pairs) implements Evaluation {
        @Override
        public SequencedMap<String, Double> values() {
            SequencedMap<String, Double> values = new LinkedHashMap<>();
            values.put("held-out-loss", loss);
            values.put("recall-at-1", recall);
            return values;
        }
    }
}
