package ingot.compiler;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.compiler.BufferPlan.Life;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class BufferPlanTest {
    @Test
    void buffersThatNeverMeetShareMemory() {
        BufferPlan plan = BufferPlan.of(List.of(new Life(1000, 0, 1), new Life(1000, 2, 3), new Life(1000, 4, 4)));
        assertThat(plan.peak()).isEqualTo(1024);
        assertThat(plan.lowerBound()).isEqualTo(1000);
        assertThat(plan.faults()).isEmpty();
    }

    @Test
    void buffersThatMeetDoNot() {
        // Both live at step 1: the first is read while the second is written.
        BufferPlan plan = BufferPlan.of(List.of(new Life(64, 0, 1), new Life(64, 1, 2)));
        assertThat(plan.peak()).isEqualTo(128);
        assertThat(plan.faults()).isEmpty();
    }

    @Test
    void theTightestGapIsTaken() {
        // Two gaps appear at step 5, of 1280 and of 960 bytes; the late buffer of 640 fits both.
        List<Life> lives = List.of(
                new Life(6400, 0, 9),
                new Life(1280, 0, 4),
                new Life(1200, 0, 9),
                new Life(900, 0, 4),
                new Life(800, 0, 9),
                new Life(640, 5, 9));
        BufferPlan plan = BufferPlan.of(lives);
        assertThat(plan.faults()).isEmpty();
        assertThat(plan.offset(5)).isEqualTo(plan.offset(3));
    }

    @Test
    void largeBuffersStartOnPages() {
        BufferPlan plan = BufferPlan.of(List.of(new Life(100_000, 0, 1), new Life(100_000, 0, 1), new Life(4, 0, 1)));
        assertThat(plan.offset(0) % 4096).isZero();
        assertThat(plan.offset(1) % 4096).isZero();
        assertThat(plan.faults()).isEmpty();
    }

    @Test
    void nothingAtAll() {
        assertThat(BufferPlan.of(List.of()).peak()).isZero();
        assertThat(BufferPlan.of(List.of(new Life(0, 0, 0))).faults()).isEmpty();
    }

    @Test
    void faultsAreFound() {
        BufferPlan plan = new BufferPlan(
                List.of(new Life(128, 0, 2), new Life(64, 2, 3), new Life(64, 3, 4)), new long[] {0, 64, 64}, 128, 128);
        assertThat(plan.faults()).hasSize(2); // 0 with 1 at step 2, and 1 with 2 at step 3
    }

    @Test
    void randomPlansAreValidAndClose() {
        Random random = new Random(7);
        for (int round = 0; round < 40; round++) {
            List<Life> lives = new ArrayList<>();
            for (int i = 0; i < 300; i++) {
                int first = random.nextInt(400);
                int span = random.nextInt(10) == 0 ? random.nextInt(400) : random.nextInt(6);
                lives.add(new Life(1 + random.nextInt(200_000), first, first + span));
            }
            BufferPlan plan = BufferPlan.of(lives);
            assertThat(plan.faults()).isEmpty();
            assertThat(plan.peak()).isGreaterThanOrEqualTo(plan.lowerBound());
            assertThat((double) plan.peak()).isLessThan(1.3 * plan.lowerBound());
        }
    }

    /// Forward activations that live until their backward, and temporaries: 25,000 steps.
    @Test
    void aLongProgram() {
        int half = 12_500;
        List<Life> lives = new ArrayList<>();
        for (int step = 0; step < half; step++) {
            lives.add(new Life(4096 + 64L * (step % 5), step, step % 8 == 0 ? 2 * half - step : step + 2));
            lives.add(new Life(8192, 2 * half - step - 1, 2 * half - step + 1));
        }
        BufferPlan plan = BufferPlan.of(lives);
        assertThat((double) plan.peak()).isLessThan(1.1 * plan.lowerBound());
    }
}
