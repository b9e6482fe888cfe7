package ingot.data;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class NearestTest {
    private static final List<String> NAMES = List.of("warmup", "learning-rate", "batch");

    @Test
    void nearestIsAlwaysSomething() {
        assertThat(Nearest.to("learning-rat", NAMES)).contains("learning-rate");
        assertThat(Nearest.to("zzzzzzzz", NAMES)).isPresent();
        assertThat(Nearest.to("x", List.of())).isEmpty();
    }

    @Test
    void closeIsWithinHalfOfTheWord() {
        assertThat(Nearest.close("bacth", NAMES)).contains("batch");
        assertThat(Nearest.close("warm", NAMES)).contains("warmup");
        assertThat(Nearest.close("zzzzz", NAMES)).isEmpty();
        assertThat(Nearest.close("ab", List.of("xyz"))).isEmpty();
    }

    @Test
    void distanceCountsEdits() {
        assertThat(Nearest.distance("kitten", "sitting")).isEqualTo(3);
        assertThat(Nearest.distance("", "abc")).isEqualTo(3);
    }
}
