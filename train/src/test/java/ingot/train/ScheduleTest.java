package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import ingot.ir.IngotException;
import org.junit.jupiter.api.Test;

class ScheduleTest {
    @Test
    void warmUpRisesInAStraightLine() {
        for (Schedule schedule : new Schedule[] {
            Schedule.constant(0.8, 4), Schedule.linear(0.8, 4, 20, 0.1), Schedule.cosine(0.8, 4, 20, 0.1)
        }) {
            assertThat(schedule.at(0)).isEqualTo(0.2);
            assertThat(schedule.at(1)).isEqualTo(0.4);
            assertThat(schedule.at(3)).isEqualTo(0.8);
            assertThat(schedule.at(4)).isEqualTo(0.8);
        }
    }

    @Test
    void constantStays() {
        assertThat(Schedule.constant(0.5, 0).at(1_000_000)).isEqualTo(0.5);
    }

    @Test
    void linearFallsToItsFloorAndStaysThere() {
        Schedule linear = Schedule.linear(1, 0, 10, 0.2);
        assertThat(linear.at(5)).isCloseTo(0.6, within(1e-12));
        assertThat(linear.at(10)).isCloseTo(0.2, within(1e-12));
        assertThat(linear.at(50)).isCloseTo(0.2, within(1e-12));
    }

    @Test
    void cosineFallsAlongHalfAWave() {
        Schedule cosine = Schedule.cosine(1, 0, 100, 0);
        assertThat(cosine.at(50)).isCloseTo(0.5, within(1e-12));
        assertThat(cosine.at(25)).isCloseTo(0.5 * (1 + Math.sqrt(0.5)), within(1e-12));
        assertThat(cosine.at(100)).isCloseTo(0, within(1e-12));
    }

    @Test
    void impossibleSettingsAreRefused() {
        assertThatThrownBy(() -> Schedule.cosine(1, 11, 10, 0))
                .isInstanceOf(IngotException.class)
                .hasMessage("warm-up: expected 0 to 10 steps, got 11");
        assertThatThrownBy(() -> Schedule.linear(1, 0, 10, 2)).isInstanceOf(IngotException.class);
        assertThatThrownBy(() -> Schedule.constant(-1, 0)).isInstanceOf(IngotException.class);
    }
}
