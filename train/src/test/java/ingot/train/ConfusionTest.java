package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import org.junit.jupiter.api.Test;

/// Numbers by hand, from the formulas as scikit-learn's documentation has them.
class ConfusionTest {
    @Test
    void twoClasses() {
        // 6 true negatives, 2 false positives, 1 false negative, 3 true positives
        Confusion confusion = new Confusion(List.of("ham", "spam"), new long[][] {{6, 2}, {1, 3}});
        assertThat(confusion.total()).isEqualTo(12);
        assertThat(confusion.accuracy()).isEqualTo(9.0 / 12);
        assertThat(confusion.precision(1)).isEqualTo(3.0 / 5);
        assertThat(confusion.recall(1)).isEqualTo(3.0 / 4);
        assertThat(confusion.f1()).isEqualTo(6.0 / 9);
        assertThat(confusion.macroF1()).isCloseTo((12.0 / 15 + 6.0 / 9) / 2, within(1e-15));
        // (tp·tn − fp·fn) / √((tp+fp)(tp+fn)(tn+fp)(tn+fn)) = 16 / √(5·4·8·7)
        assertThat(confusion.matthews()).isCloseTo(16 / Math.sqrt(1120), within(1e-15));
    }

    @Test
    void threeClassesAndEmptyOnes() {
        // sklearn.metrics.matthews_corrcoef([0,0,1,1,2,2], [0,1,1,1,2,0]): c = 4, s = 6, t = (2,2,2), p = (2,3,1)
        Confusion confusion = Confusion.of(
                List.of("a", "b", "c"), new int[] {0, 0, 1, 1, 2, 2, -100}, new int[] {0, 1, 1, 1, 2, 0, 1});
        assertThat(confusion.total()).isEqualTo(6);
        assertThat(confusion.matthews()).isCloseTo((24 - 12.0) / Math.sqrt((36 - 14.0) * (36 - 12.0)), within(1e-15));
        assertThat(confusion.f1()).isCloseTo((2.0 / 4 + 4.0 / 5 + 2.0 / 3) / 3, within(1e-15));
        Confusion one = new Confusion(List.of("a", "b"), new long[][] {{5, 0}, {0, 0}});
        assertThat(one.f1()).isZero();
        assertThat(one.matthews()).isZero();
        assertThat(one.accuracy()).isOne();
    }

    @Test
    void ranksShareTheirMean() {
        assertThat(Correlation.ranks(new double[] {3, 1, 3, 2})).containsExactly(3.5, 1, 3.5, 2);
        double[] x = {1, 2, 3, 4, 5};
        assertThat(Correlation.spearman(x, new double[] {1, 4, 9, 16, 25})).isCloseTo(1, within(1e-15));
        // Σd² = 4 of five ranks: 1 − 6·4 / (5·24)
        assertThat(Correlation.spearman(x, new double[] {2, 1, 4, 3, 5})).isCloseTo(0.8, within(1e-15));
        assertThat(Correlation.pearson(x, new double[] {2, 4, 6, 8, 9}))
                .isCloseTo(18 / Math.sqrt(10 * 32.8), within(1e-15));
        assertThat(Correlation.pearson(x, new double[] {7, 7, 7, 7, 7})).isZero();
    }

    @Test
    void nearestNeighbours() {
        Evaluation.Neighbours found =
                EmbeddingLesson.measure(new float[][] {{1, 0}, {0, 1}}, new float[][] {{1, 0}, {0.8f, 0.6f}});
        assertThat(found.recall()).isOne();
        double first = Math.log(1 + Math.exp(20 * 0.8f - 20));
        double second = Math.log(1 + Math.exp(-20 * 0.6f));
        assertThat(found.loss()).isCloseTo((first + second) / 2, within(1e-6));
    }
}
