package ingot.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import ingot.compiler.Kernel;
import ingot.compiler.Layout;
import ingot.cpu.CpuBackend;
import ingot.cpu.Peaks;
import ingot.cpu.TilePool;
import ingot.ir.IngotException;
import ingot.ir.Type;
import ingot.runtime.Profile;
import ingot.store.RamStore;
import ingot.train.Trainer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class ProfileTest {
    private static final Peaks PEAKS = new Peaks(10, 20, 10);

    @TempDir
    private Path folder;

    private static Kernel.Matmul product(int m, int n, int k) {
        return new Kernel.Matmul(
                Layout.rowMajor(Type.f32(m, k)),
                Layout.rowMajor(Type.f32(k, n)),
                null,
                Layout.rowMajor(Type.f32(m, n)),
                1,
                Kernel.Matmul.Old.REPLACED);
    }

    @Test
    void theLimitIsTheLongerOfArithmeticAndTraffic() {
        Roofline large = Roofline.of(product(1000, 1000, 1000));
        assertThat(large.flops()).isEqualTo(2e9);
        assertThat(large.bytes()).isEqualTo(12e6);
        assertThat(large.least(PEAKS)).isCloseTo(0.1, within(1e-9)); // 2 GFLOP at 20 GFLOP/s
        Roofline thin = Roofline.of(product(1, 1000, 1000));
        assertThat(thin.least(PEAKS)).isCloseTo(4.008e6 / 10e9, within(1e-9)); // 4 MB at 10 GB/s
    }

    @Test
    void workIsCountedInTheRunThatItBelongsTo() {
        WorkTimes work = new WorkTimes(2);
        work.worked(0, 10, 20);
        work.worked(0, 25, 30);
        work.worked(1, 12, 18);
        work.worked(1, 40, 44); // in no run
        work.worked(1, 52, 70); // longer than its run
        Kernel kernel = product(1, 1, 1);
        List<Profile.Span> runs = List.of(
                new Profile.Span(kernel, 10, 22), new Profile.Span(kernel, 24, 32), new Profile.Span(kernel, 50, 60));
        assertThat(work.within(runs)).containsExactly(16, 5, 8);
    }

    /// Sums of rows are those of the profile, and the file has every run once, inside of the track of its thread.
    @Test
    void rowsAndTraceTellTheSameSteps() {
        Profile profile = new Profile();
        WorkTimes work = new WorkTimes(2);
        try (TilePool pool = new TilePool(2);
                RamStore store = new RamStore();
                Trainer trainer =
                        new Trainer(GptSize.TINY.task(), GptSize.TINY.recipe(0), new CpuBackend(pool), store)) {
            trainer.next();
            trainer.profile(profile);
            pool.observe(work);
            trainer.next();
            trainer.next();
            pool.observe(null);
            int seen = work.workers().getFirst().size();
            trainer.next();
            assertThat(work.workers().getFirst()).hasSize(seen);
        }
        List<ProfileBenchmark.Row> rows = ProfileBenchmark.Row.of(profile, work, PEAKS, 2, 2);
        double sum = profile.entries().stream()
                .mapToDouble(Profile.Entry::nanoseconds)
                .sum();
        assertThat(rows.stream().mapToDouble(ProfileBenchmark.Row::milliseconds).sum())
                .isCloseTo(sum / 2e6, within(1e-6 * sum));
        assertThat(rows).allSatisfy(row -> assertThat(row.idle()).isBetween(0.0, 1.0));
        assertThat(rows).isSortedAccordingTo((a, b) -> Double.compare(b.lost(), a.lost()));

        Path file = folder.resolve("trace.json");
        List<Profile.Span> runs = profile.spans();
        ChromeTrace.write(
                file,
                runs,
                runs.stream()
                        .map(run -> ProfileBenchmark.describe(run.kernel()))
                        .toList(),
                work);
        Map<Integer, Double> ends = new HashMap<>();
        int kernels = 0;
        for (JsonNode event : JsonMapper.builder().build().readTree(file).path("traceEvents")) {
            if (event.path("ph").asString().equals("X")) {
                int thread = event.path("tid").asInt();
                double start = event.path("ts").asDouble();
                assertThat(start).isGreaterThanOrEqualTo(ends.getOrDefault(thread, 0.0) - 1e-3);
                ends.put(thread, start + event.path("dur").asDouble());
                kernels += thread == 0 ? 1 : 0;
            }
        }
        assertThat(kernels).isEqualTo(runs.size());
        assertThat(ends).containsKeys(0, 1);
    }

    @Test
    void aTraceThatCannotBeWrittenIsRefusedBefore() throws IOException {
        assertThatThrownBy(() -> ChromeTrace.create(folder.resolve("none").resolve("trace.json")))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("name a file in a folder that exists with --trace");
        Path file = folder.resolve("trace.json");
        ChromeTrace.create(file);
        assertThat(Files.size(file)).isZero();
    }
}
