package ingot.train;

import ingot.nn.CrossEntropy;
import java.util.Arrays;

/// What the outputs of a head say about examples, added up one by one.
sealed interface Measured {
    void add(int index, float[] logits);

    Evaluation result();

    /// −log of the probability that softmax gives the class `right` of the logits from `start` on.
    static double loss(float[] logits, int start, int labels, int right) {
        double most = Double.NEGATIVE_INFINITY;
        for (int i = 0; i < labels; i++) {
            most = Math.max(most, logits[start + i]);
        }
        double sum = 0;
        for (int i = 0; i < labels; i++) {
            sum += Math.exp(logits[start + i] - most);
        }
        return Math.log(sum) + most - logits[start + right];
    }

    /// The first of the greatest.
    static int best(float[] logits, int start, int labels) {
        int best = 0;
        for (int i = 1; i < labels; i++) {
            best = logits[start + i] > logits[start + best] ? i : best;
        }
        return best;
    }

    /// The probabilities of one row of logits.
    static double[] probabilities(float[] logits, int start, int labels) {
        double[] all = new double[labels];
        for (int i = 0; i < labels; i++) {
            all[i] = Math.exp(-loss(logits, start, labels, i));
        }
        return all;
    }

    /// One class each.
    final class OfClasses implements Measured {
        private final Labels labels;
        private final int[] right;
        private final int[] predicted;
        private double loss;

        OfClasses(Labels labels, Targets.Classes targets) {
            this.labels = labels;
            right = targets.of();
            predicted = new int[right.length];
        }

        @Override
        public void add(int index, float[] logits) {
            loss += Measured.loss(logits, 0, labels.size(), right[index]);
            predicted[index] = Measured.best(logits, 0, labels.size());
        }

        @Override
        public Evaluation result() {
            return new Evaluation.Classes(loss / right.length, Confusion.of(labels.names(), right, predicted));
        }
    }

    /// A class per token.
    final class OfTags implements Measured {
        private final Labels labels;
        private final int[][] right;
        private final long[][] counts;
        private double loss;
        private long tokens;

        OfTags(Labels labels, Targets.Tags targets) {
            this.labels = labels;
            right = targets.of();
            counts = new long[labels.size()][labels.size()];
        }

        @Override
        public void add(int index, float[] logits) {
            int size = labels.size();
            int length = Math.min(right[index].length, logits.length / size);
            for (int t = 0; t < length; t++) {
                int tag = right[index][t];
                if (tag != CrossEntropy.IGNORED) {
                    loss += Measured.loss(logits, t * size, size, tag);
                    counts[tag][Measured.best(logits, t * size, size)]++;
                    tokens++;
                }
            }
        }

        @Override
        public Evaluation result() {
            return new Evaluation.Classes(loss / Math.max(1, tokens), new Confusion(labels.names(), counts));
        }
    }

    /// A number each.
    final class OfNumbers implements Measured {
        private final double[] right;
        private final double[] predicted;

        OfNumbers(Targets.Numbers targets) {
            right = new double[targets.of().length];
            Arrays.setAll(right, i -> targets.of()[i]);
            predicted = new double[right.length];
        }

        @Override
        public void add(int index, float[] logits) {
            predicted[index] = logits[0];
        }

        @Override
        public Evaluation result() {
            double square = 0;
            double absolute = 0;
            for (int i = 0; i < right.length; i++) {
                square += (predicted[i] - right[i]) * (predicted[i] - right[i]);
                absolute += Math.abs(predicted[i] - right[i]);
            }
            return new Evaluation.Numbers(
                    square / right.length,
                    absolute / right.length,
                    Correlation.pearson(predicted, right),
                    Correlation.spearman(predicted, right),
                    right.length);
        }
    }
}
