package ingot.cpu;

import static org.assertj.core.api.Assertions.assertThat;

import jdk.incubator.vector.FloatVector;
import org.junit.jupiter.api.Test;

class VectorModuleTest {
    @Test
    void vectorModuleIsThere() {
        assertThat(VectorModuleTest.class.getModule().getName()).isEqualTo("ingot.cpu");
        assertThat(FloatVector.SPECIES_PREFERRED.length()).isPositive();
    }
}
