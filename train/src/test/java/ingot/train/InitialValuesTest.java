package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.nn.Initializer;
import ingot.nn.Parameter;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class InitialValuesTest {
    private static final long SEED = 0x1234_5678_9ABCL;
    private static final Type TYPE = Type.f32(1);
    private static final List<Parameter> PARAMETERS = List.of(
            new Parameter("h.0.attn.c_attn.weight", TYPE, new Initializer.Normal(0.02), true),
            new Parameter("other normal", TYPE, new Initializer.Normal(1.3), true),
            new Parameter("linear.weight", TYPE, new Initializer.Uniform(0.1), true),
            new Parameter("bias", TYPE, new Initializer.Constant(0), false),
            new Parameter("gain", TYPE, new Initializer.Constant(1), false),
            new Parameter("minus", TYPE, new Initializer.Constant(-0.0), false));
    private static final InitialValues VALUES = new InitialValues(PARAMETERS, SEED, Backends.tested(), null);

    @AfterAll
    static void close() {
        VALUES.close();
    }

    /// 65,536 values are made by one run; the high half of the position changes in the third last row.
    @ParameterizedTest
    @CsvSource({
        "0, 1",
        "0, 4095",
        "0, 65536",
        "17, 70001",
        "1000003, 200000",
        "4294960001, 80003",
        "4294967296, 66000",
        "30000000007, 5000"
    })
    void bitsAreThoseOfTheDefinition(long start, int elements) {
        for (Parameter parameter : PARAMETERS) {
            MemorySegment memory = MemorySegment.ofArray(new float[elements]);
            VALUES.fill(parameter.name(), start, memory);
            Tensor expected = Tensor.zeros(Type.f32(elements));
            parameter.initializer().fill(expected, SEED, parameter.name(), start);
            assertThat(memory.mismatch(expected.data())).as(parameter.name()).isEqualTo(-1);
        }
    }

    @Test
    void nothingAroundIsWritten() {
        for (Parameter parameter : PARAMETERS) {
            MemorySegment memory = MemorySegment.ofArray(new float[70_000]);
            memory.fill((byte) 0x55);
            VALUES.fill(parameter.name(), 3, memory.asSlice(4, 4 * 69_000));
            for (int i : new int[] {0, 69_001, 69_999}) {
                assertThat(memory.getAtIndex(ValueLayout.JAVA_INT_UNALIGNED, i)).isEqualTo(0x5555_5555);
            }
        }
    }

    @Test
    void callersTakeTurns() {
        int elements = 300_000;
        List<MemorySegment> found = PARAMETERS.stream()
                .map(_ -> MemorySegment.ofArray(new float[elements]))
                .toList();
        IntStream.range(0, PARAMETERS.size())
                .mapToObj(i -> CompletableFuture.runAsync(
                        () -> VALUES.fill(PARAMETERS.get(i).name(), 0, found.get(i))))
                .toList()
                .forEach(CompletableFuture::join);
        for (int i = 0; i < PARAMETERS.size(); i++) {
            Tensor expected = Tensor.zeros(Type.f32(elements));
            PARAMETERS
                    .get(i)
                    .initializer()
                    .fill(expected, SEED, PARAMETERS.get(i).name());
            assertThat(found.get(i).mismatch(expected.data())).isEqualTo(-1);
        }
    }

    @Test
    void unknownParametersAreRefused() {
        assertThatThrownBy(() -> VALUES.fill("w", 0, MemorySegment.ofArray(new float[1])))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("no parameter w, there are [h.0.attn.c_attn.weight");
    }
}
