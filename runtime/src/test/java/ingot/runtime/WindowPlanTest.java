package ingot.runtime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.compiler.Program;
import ingot.ir.IngotException;
import ingot.runtime.Visit.Touch;
import ingot.runtime.WindowPlan.Stay;
import ingot.store.WeightStore.Key;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Plans for a model of five stages, whose last is visited once and whose first shares a weight with it.
class WindowPlanTest {
    private static final long PAGE = 4096;
    private static final int STAGES = 5;
    private static final List<String> MOMENTS = List.of("m", "v");

    private final List<Visit> visits = visits();

    /// Forward 0 … 4 (the last one backward too), backward 3 … 0.
    private static List<Visit> visits() {
        List<Visit> visits = new ArrayList<>();
        for (int i = 0; i < 2 * STAGES - 1; i++) {
            boolean forward = i < STAGES;
            int stage = forward ? i : 2 * (STAGES - 1) - i;
            List<Touch> touches = new ArrayList<>();
            if (forward || stage > 0) {
                touches.add(touch(Key.weight("w" + stage), stage + 1));
            }
            if (stage == STAGES - 1) {
                touches.add(touch(Key.weight("w0"), 1)); // tied
            }
            if (i >= STAGES - 1) {
                touches.add(touch(Key.gradient("w" + stage), stage + 1));
            }
            Program.Stage described =
                    new Program.Stage(stage, "stage " + stage, "code", List.of("w" + stage), List.of("w" + stage));
            visits.add(new Visit(i, described, forward, touches));
        }
        return visits;
    }

    private static Touch touch(Key key, int pages) {
        return new Touch(key, pages * PAGE - 100, key.part().equals(Key.GRADIENT));
    }

    @Test
    void noTwoStaysShareMemoryAtTheSameTime() {
        long whole = WindowPlan.of(visits, MOMENTS, 1L << 30).bytes();
        for (long bytes = WindowPlan.minimum(visits); bytes <= whole; bytes += PAGE) {
            WindowPlan plan = WindowPlan.of(visits, MOMENTS, bytes);
            assertThat(plan.bytes()).isLessThanOrEqualTo(bytes);
            for (Stay a : plan.stays()) {
                assertThat(a.offset()).isGreaterThanOrEqualTo(plan.pinnedBytes());
                assertThat(a.offset() + a.bytes()).isLessThanOrEqualTo(plan.bytes());
                for (Stay b : plan.stays()) {
                    if (!a.equals(b) && a.start() <= b.end() && b.start() <= a.end()) {
                        assertThat(a.shares(b)).describedAs("%s and %s", a, b).isFalse();
                    }
                }
            }
        }
    }

    @Test
    void everyTouchIsInAStayOrPinned() {
        for (long bytes : new long[] {WindowPlan.minimum(visits), 40 * PAGE, 1L << 30}) {
            WindowPlan plan = WindowPlan.of(visits, MOMENTS, bytes);
            for (Visit visit : visits) {
                for (Touch touch : visit.touches()) {
                    assertThat(plan.pinned().containsKey(touch.key())
                                    || plan.stays().stream()
                                            .anyMatch(stay -> stay.key().equals(touch.key())
                                                    && stay.first() <= visit.index()
                                                    && visit.index() <= stay.last()))
                            .describedAs("%s at visit %d", touch.key(), visit.index())
                            .isTrue();
                }
            }
        }
    }

    @Test
    void moreMemoryPinsMoreWeightsFirst() {
        for (long bytes = WindowPlan.overlapping(visits); bytes <= 80 * PAGE; bytes += PAGE) {
            WindowPlan plan = WindowPlan.of(visits, MOMENTS, bytes);
            assertThat(WindowPlan.of(visits, MOMENTS, 2 * bytes).pinnedBytes())
                    .isGreaterThanOrEqualTo(plan.pinnedBytes());
            boolean moments = plan.pinned().keySet().stream().anyMatch(key -> MOMENTS.contains(key.part()));
            if (moments) {
                assertThat(plan.pinned())
                        .containsKeys(
                                Key.weight("w0"),
                                Key.weight("w1"),
                                Key.weight("w2"),
                                Key.weight("w3"),
                                Key.weight("w4"));
            }
        }
        assertThat(WindowPlan.of(visits, MOMENTS, 1L << 30).stays()).isEmpty();
    }

    /// Without overlap: the last stage has its weight, its gradient and the tied weight.
    @Test
    void theMinimumIsTheLargestVisit() {
        assertThat(WindowPlan.minimum(visits)).isEqualTo((5 + 5 + 1) * PAGE);
        assertThat(WindowPlan.of(visits, MOMENTS, WindowPlan.minimum(visits)).overlap())
                .isFalse();
        assertThat(WindowPlan.of(visits, MOMENTS, WindowPlan.overlapping(visits))
                        .overlap())
                .isTrue();
        assertThatThrownBy(() -> WindowPlan.of(visits, MOMENTS, WindowPlan.minimum(visits) - 1))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("need a window of " + WindowPlan.minimum(visits) + " bytes");
    }
}
