package ingot.testkit;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.Shape;
import ingot.ir.Tensor;
import java.util.Map;
import org.junit.jupiter.api.Test;

class BitsTest {
    private final Tensor expected = Tensor.of(Shape.of(2, 2), 1f, Float.NaN, 0f, 3f);

    @Test
    void anyNaNEqualsAnyNaN() {
        Bits.assertSameBits(expected, Tensor.of(Shape.of(2, 2), 1f, Float.intBitsToFloat(0xFF800001), 0f, 3f), "sum");
    }

    @Test
    void namesTheFirstDifference() {
        Tensor actual = Tensor.of(Shape.of(2, 2), 1f, Float.NaN, -0f, 3.0000002f);
        assertThatThrownBy(() -> Bits.assertSameBits(expected, actual, "sum"))
                .hasMessage("sum : f32[2, 2]: 2 of 4 elements differ, first at [1, 0]: "
                        + "expected 0.0 (0x00000000), got -0.0 (0x80000000)");
        assertThatThrownBy(() -> Bits.assertSameBits(expected, Tensor.of(Shape.of(4), 1, 2, 3, 4), "sum"))
                .hasMessage("sum: expected f32[2, 2], got i32[4]");
        assertThatThrownBy(() -> Bits.assertSameBits(Map.of("y", expected), Map.of("z", expected), "step"))
                .hasMessage("step: expected [y], got [z]");
    }
}
