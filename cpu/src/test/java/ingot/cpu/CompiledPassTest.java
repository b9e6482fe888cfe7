package ingot.cpu;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.ir.DType;
import org.junit.jupiter.api.Test;

class CompiledPassTest {
    private static CompiledPass copy() {
        return new CompiledPass(Rows.copy(DType.F32, 4), new Warmup(8));
    }

    private static final VectorCode CODE = (_, _) -> {};

    @Test
    void vectorCodeThatTurnsSlowIsGivenUp() {
        CompiledPass pass = copy();
        pass.useVectors(CODE, 1);
        for (int i = 0; i < 20; i++) {
            pass.sample(1_000_000, 1000);
        }
        assertThat(pass.vector()).isSameAs(CODE);
        pass.sample(1_000_000, 1000);
        assertThat(pass.vector()).isNull();
    }

    @Test
    void slowCallsNowAndThenAreForgiven() {
        CompiledPass pass = copy();
        pass.useVectors(CODE, 1);
        for (int i = 0; i < 200; i++) {
            pass.sample(i % 20 == 0 ? 500 : 1_000_000, 1000);
        }
        assertThat(pass.vector()).isSameAs(CODE);
    }

    @Test
    void equalPassesShareTheirCode() {
        PassCache cache = new PassCache(1, true);
        BoundPass packed = cache.bind(Rows.copy(DType.F32, 4), new long[] {4, 4});
        BoundPass strided = cache.bind(Rows.copy(DType.F32, 64), new long[] {64, 4});
        assertThat(strided.compiled()).isSameAs(packed.compiled());
        BoundPass repeated = cache.bind(Rows.copy(DType.F32, 0), new long[] {0, 4});
        assertThat(repeated.compiled()).isNotSameAs(packed.compiled());
    }
}
