package ingot.train;

import ingot.ir.IngotException;
import java.util.Arrays;
import java.util.List;

/// Who was taken for whom: `counts[right][predicted]`, and what follows from it.
///
/// A class that nobody belongs to and nobody was taken for has F1 0. With two classes the second one is the positive
/// one, whose F1 counts, as in scikit-learn's `average="binary"`; with more it is the mean over the classes.
public record Confusion(List<String> labels, long[][] counts) {
    public Confusion {
        labels = List.copyOf(labels);
        counts = Arrays.stream(counts).map(long[]::clone).toArray(long[][]::new);
        for (long[] row : counts) {
            if (counts.length != labels.size() || row.length != labels.size()) {
                throw new IngotException("confusion: expected " + labels.size() + " × " + labels.size() + " counts");
            }
        }
    }

    /// Counts pairs; a right class below 0 is left out.
    static Confusion of(List<String> labels, int[] right, int[] predicted) {
        long[][] counts = new long[labels.size()][labels.size()];
        for (int i = 0; i < right.length; i++) {
            if (right[i] >= 0) {
                counts[right[i]][predicted[i]]++;
            }
        }
        return new Confusion(labels, counts);
    }

    public long total() {
        return Arrays.stream(counts).flatMapToLong(Arrays::stream).sum();
    }

    /// How many of a class there are.
    public long support(int label) {
        return Arrays.stream(counts[label]).sum();
    }

    /// How many were taken for a class.
    public long predicted(int label) {
        return Arrays.stream(counts).mapToLong(row -> row[label]).sum();
    }

    public double accuracy() {
        long right = 0;
        for (int i = 0; i < counts.length; i++) {
            right += counts[i][i];
        }
        return ratio(right, total());
    }

    /// Of those taken for a class, the share that belongs to it.
    public double precision(int label) {
        return ratio(counts[label][label], predicted(label));
    }

    /// Of those that belong to a class, the share that was found.
    public double recall(int label) {
        return ratio(counts[label][label], support(label));
    }

    /// 2 · precision · recall / (precision + recall) = 2 · hits / (predicted + support).
    public double f1(int label) {
        return ratio(2 * counts[label][label], predicted(label) + support(label));
    }

    /// Of the second of two classes, else the mean over all.
    public double f1() {
        return counts.length == 2 ? f1(1) : macroF1();
    }

    public double macroF1() {
        double sum = 0;
        for (int i = 0; i < counts.length; i++) {
            sum += f1(i);
        }
        return sum / counts.length;
    }

    /// Matthews' coefficient for any number of classes (Gorodkin 2004): with c hits among s, t_k of class k and p_k
    /// taken for it, (c·s − Σ t_k·p_k) / √((s² − Σ p_k²)(s² − Σ t_k²)); 0 where that is 0 / 0.
    public double matthews() {
        double all = total();
        double hits = 0;
        double both = 0;
        double found = 0;
        double there = 0;
        for (int k = 0; k < counts.length; k++) {
            hits += counts[k][k];
            both += (double) support(k) * predicted(k);
            found += (double) predicted(k) * predicted(k);
            there += (double) support(k) * support(k);
        }
        double below = Math.sqrt((all * all - found) * (all * all - there));
        return below == 0 ? 0 : (hits * all - both) / below;
    }

    private static double ratio(long part, long whole) {
        return whole == 0 ? 0 : (double) part / whole;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Confusion(List<String> names, long[][] numbers)
                && names.equals(labels)
                && Arrays.deepEquals(numbers, counts);
    }

    @Override
    public int hashCode() {
        return 31 * labels.hashCode() + Arrays.deepHashCode(counts);
    }
}
