package ingot.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.IngotException;
import java.util.ArrayList;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class BatchesTest {
    @ParameterizedTest
    @CsvSource({"10,3", "10,10", "10,1", "7,16", "1,4", "1000,64"})
    void everyEpochVisitsEverySequenceOnce(int count, int size) {
        var batches = new Batches(count, size, 5);
        var row = new ArrayList<Integer>();
        for (long step = 0; row.size() < 4 * count; step++) {
            for (int sequence : batches.batch(step)) row.add(sequence);
        }
        for (int epoch = 0; epoch < 4; epoch++) {
            assertThat(row.subList(epoch * count, (epoch + 1) * count))
                    .containsExactlyInAnyOrderElementsOf(
                            IntStream.range(0, count).boxed().toList());
        }
    }

    @Test
    void anyStepStandsAlone() {
        var inOrder = new Batches(97, 8, 1);
        var steps = IntStream.range(0, 60).mapToObj(inOrder::batch).toList();
        var backwards = new Batches(97, 8, 1);
        for (int step = 59; step >= 0; step--) assertThat(backwards.batch(step)).isEqualTo(steps.get(step));
        assertThat(new Batches(97, 8, 1).batch(31)).isEqualTo(steps.get(31));
    }

    @Test
    void theOrderDoesNotDependOnTheBatchSize() {
        var ones = new Batches(20, 1, 3);
        var fours = new Batches(20, 4, 3);
        for (int position = 0; position < 60; position++) {
            assertThat(fours.sequence(position / 4, position % 4)).isEqualTo(ones.sequence(position, 0));
        }
    }

    @Test
    void epochsAndSteps() {
        var batches = new Batches(100, 16, 0);
        assertThat(batches.steps(1)).isEqualTo(7);
        assertThat(batches.steps(3)).isEqualTo(19);
        assertThat(batches.epoch(25)).isEqualTo(4.0);
    }

    @Test
    void refusesNothingToDraw() {
        assertThatThrownBy(() -> new Batches(0, 4, 0))
                .isInstanceOf(IngotException.class)
                .hasMessage("batches: there are 0 sequences; expected at least 1");
        assertThatThrownBy(() -> new Batches(5, 0, 0))
                .isInstanceOf(IngotException.class)
                .hasMessage("batch size 0: expected at least 1");
    }
}
