package ingot.train;

import java.util.Comparator;
import java.util.stream.IntStream;

/// How two rows of numbers go together.
final class Correlation {
    private Correlation() {}

    /// Pearson's: covariance over both deviations; 0 where one of the rows is constant.
    static double pearson(double[] x, double[] y) {
        double meanX = mean(x);
        double meanY = mean(y);
        double both = 0;
        double squareX = 0;
        double squareY = 0;
        for (int i = 0; i < x.length; i++) {
            both += (x[i] - meanX) * (y[i] - meanY);
            squareX += (x[i] - meanX) * (x[i] - meanX);
            squareY += (y[i] - meanY) * (y[i] - meanY);
        }
        return squareX == 0 || squareY == 0 ? 0 : both / Math.sqrt(squareX * squareY);
    }

    /// Spearman's: Pearson's of the ranks, where equal numbers share the mean of their ranks.
    static double spearman(double[] x, double[] y) {
        return pearson(ranks(x), ranks(y));
    }

    static double[] ranks(double[] x) {
        int[] order = IntStream.range(0, x.length)
                .boxed()
                .sorted(Comparator.comparingDouble(i -> x[i]))
                .mapToInt(Integer::intValue)
                .toArray();
        double[] ranks = new double[x.length];
        for (int from = 0; from < order.length; ) {
            int to = from;
            while (to < order.length && x[order[to]] == x[order[from]]) {
                to++;
            }
            for (int i = from; i < to; i++) {
                ranks[order[i]] = (from + 1 + to) / 2.0;
            }
            from = to;
        }
        return ranks;
    }

    private static double mean(double[] x) {
        double sum = 0;
        for (double value : x) {
            sum += value;
        }
        return sum / x.length;
    }
}
