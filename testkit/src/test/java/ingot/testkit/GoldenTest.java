package ingot.testkit;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.TextForm;
import org.junit.jupiter.api.Test;

class GoldenTest {
    @Test
    void comparesWithTheFile() {
        Golden.check("random-graph", TextForm.print(RandomGraphs.of(1, 6).graph()));
    }

    @Test
    void showsTheFirstDifferenceAndHowToUpdate() {
        if (!Boolean.getBoolean("golden.update")) {
            assertThatThrownBy(() -> Golden.check("random-graph", "graph other {"))
                    .isInstanceOf(AssertionError.class)
                    .hasMessageContaining("differs at line 1")
                    .hasMessageContaining("-Dgolden.update=true");
            assertThatThrownBy(() -> Golden.check("no-such-file", "x")).hasMessageContaining("is missing");
        }
    }
}
