package ingot.cli;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.compiler.Program;
import ingot.compiler.Step;
import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.train.RunConfig;
import ingot.train.TrainingRun;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class KernelTimesTest {
    /// Products that are timed as they are, and some that are far too large for that.
    @ParameterizedTest
    @ValueSource(ints = {64, 8192})
    void everyKernelHasATime(int width) {
        RunConfig config = RunConfig.parse("""
            model: {layers: 2, width: %d, heads: 4, context: 64}
            data: {corpus: nowhere}
            tokenizer: {vocabulary: 512}
            train: {batch: 4, recompute: true}
            """.formatted(width), List.of());
        Program program = TrainingRun.program(config, TrainingRun.model(config, 512));
        double flops = program.steps().stream()
                .mapToDouble(step -> step instanceof Step.Run run ? Explain.flops(run.kernel()) : 0)
                .sum();
        try (TilePool pool = new TilePool(2);
                KernelTimes.Probe probe = new KernelTimes.Probe(program, new CpuBackend(pool), pool)) {
            KernelTimes times = probe.measure();
            assertThat(times.flops()).isEqualTo(flops);
            assertThat(times.forward()).isPositive();
            assertThat(times.backward()).isPositive();
            assertThat(times.timed()).isBetween(0.0, 1.0);
            assertThat(times.scaling()).isBetween(1.0, 2.0);
            assertThat(flops / (times.forward() + times.backward())).isBetween(1e8, 1e13);
        }
    }
}
