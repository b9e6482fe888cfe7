package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import ingot.ir.IngotException;
import org.junit.jupiter.api.Test;

class SamplingTest {
    private static final float[] LOGITS = {0f, 3f, -2f, 3f, 1f};

    private static double[] frequencies(Sampling sampling, float[] logits) {
        double[] share = new double[logits.length];
        int draws = 20_000;
        for (int i = 0; i < draws; i++) {
            share[sampling.choose(logits, i)] += 1.0 / draws;
        }
        return share;
    }

    @Test
    void temperatureZeroTakesTheFirstOfEquals() {
        assertThat(Sampling.greedy(1).choose(LOGITS, 7)).isEqualTo(1);
        assertThat(new Sampling(1, 1, 1, 1, 1).choose(LOGITS, 7)).isEqualTo(1);
    }

    @Test
    void drawsLikeSoftmax() {
        for (double temperature : new double[] {0.5, 1, 2}) {
            double[] share = frequencies(new Sampling(temperature, 0, 1, 5, 1), LOGITS);
            double sum = 0;
            for (float logit : LOGITS) {
                sum += Math.exp(logit / temperature);
            }
            for (int i = 0; i < LOGITS.length; i++) {
                assertThat(share[i]).isCloseTo(Math.exp(LOGITS[i] / temperature) / sum, within(0.015));
            }
        }
    }

    @Test
    void topKKeepsTheLikeliest() {
        double[] share = frequencies(new Sampling(3, 3, 1, 5, 1), LOGITS);
        assertThat(share[0] + share[2]).isZero();
        assertThat(share[4]).isPositive();
    }

    /// The two likeliest have 0.91 of the probability together, the first alone 0.455.
    @Test
    void topPKeepsTheSmallestSetThatReachesP() {
        double[] two = frequencies(new Sampling(1, 0, 0.8, 5, 1), LOGITS);
        assertThat(two[1] + two[3]).isCloseTo(1, within(1e-9));
        double[] one = frequencies(new Sampling(1, 0, 0.4, 5, 1), LOGITS);
        assertThat(one[1]).isCloseTo(1, within(1e-9));
        double[] all = frequencies(new Sampling(1, 0, 0.9999, 5, 1), LOGITS);
        assertThat(all[2]).isPositive();
    }

    @Test
    void aPureFunctionOfSeedAndIndex() {
        Sampling one = new Sampling(2, 0, 1, 1, 1);
        Sampling two = new Sampling(2, 0, 1, 2, 1);
        int different = 0;
        for (int i = 0; i < 100; i++) {
            assertThat(one.choose(LOGITS, i)).isEqualTo(one.choose(LOGITS.clone(), i));
            different += one.choose(LOGITS, i) == two.choose(LOGITS, i) ? 0 : 1;
        }
        assertThat(different).isGreaterThan(30);
    }

    @Test
    void impossibleSettingsAreRefused() {
        assertThatThrownBy(() -> new Sampling(-1, 0, 1, 1, 1))
                .isInstanceOf(IngotException.class)
                .hasMessage("generate: temperature expected at least 0, got -1.0");
        assertThatThrownBy(() -> new Sampling(1, -1, 1, 1, 1)).hasMessageContaining("top-k");
        assertThatThrownBy(() -> new Sampling(1, 0, 0, 1, 1)).hasMessageContaining("top-p");
        assertThatThrownBy(() -> new Sampling(1, 0, 1.1, 1, 1)).hasMessageContaining("top-p");
        assertThatThrownBy(() -> new Sampling(1, 0, 1, 1, -1)).hasMessageContaining("max-tokens");
        assertThatThrownBy(() -> Sampling.greedy(1).choose(new float[] {1, Float.NaN}, 0))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("the logit of token 1 is NaN");
    }
}
