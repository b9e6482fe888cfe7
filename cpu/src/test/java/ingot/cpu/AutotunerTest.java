package ingot.cpu;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AutotunerTest {
    private static final MatmulShape SHAPE = MatmulShape.of(192, 256, 256);

    @TempDir
    Path folder;

    @Test
    void aChoiceIsKeptAndFoundAgain() throws Exception {
        var file = folder.resolve("deep/tilings");
        var tuner = Autotuner.of(file);
        var chosen = tuner.choose(SHAPE, 2);
        assertThat(tuner.choose(SHAPE, 2)).isEqualTo(chosen);
        assertThat(tuner.choices()).hasSize(1);
        assertThat(Files.readAllLines(file)).hasSize(2);
        assertThat(Autotuner.of(file).choose(SHAPE, 2)).isEqualTo(chosen);
    }

    @Test
    void offTakesTheDefaultAndKeepsNothing() {
        var tuner = Autotuner.off();
        assertThat(tuner.choose(SHAPE, 2)).isEqualTo(Tilings.of(SHAPE, 2));
        assertThat(tuner.choices()).isEmpty();
    }

    @Test
    void smallShapesAreNotWorthIt() {
        var tuner = Autotuner.of(folder.resolve("tilings"));
        tuner.choose(MatmulShape.of(8, 8, 8), 2);
        assertThat(tuner.choices()).isEmpty();
    }

    @Test
    void aCorruptFileIsIgnored() throws Exception {
        var file = folder.resolve("tilings");
        new TilingCache(file).write(java.util.Map.of("x", Tilings.of(SHAPE, 2)));
        assertThat(new TilingCache(file).read()).containsOnlyKeys("x");

        Files.writeString(file, Files.readString(file) + "b1 m4: 6x0x8 nonsense\n");
        assertThat(new TilingCache(file).read()).isEmpty();
        Files.write(file, new byte[] {(byte) 0xff, 0, 1, 2});
        assertThat(new TilingCache(file).read()).isEmpty();
        Files.writeString(file, "another machine\nx: 6x2x8 96 384 288 OWN SHARED\n");
        assertThat(new TilingCache(file).read()).isEmpty();
        Files.writeString(file, "");
        assertThat(new TilingCache(file).read()).isEmpty();
        assertThat(new TilingCache(folder).read()).isEmpty();
    }

    @Test
    void tilingsRoundTripAsText() {
        var tiling = new Tiling(6, 2, 8, 96, 384, 288, Tiling.Packing.NONE, Tiling.Packing.SHARED);
        assertThat(tiling.text()).isEqualTo("6x2x8 96 384 288 NONE SHARED");
        assertThat(Tiling.parse(tiling.text())).isEqualTo(tiling);
    }

    @Test
    void sampledShapesKeepTheLayoutAndStaySmall() {
        var shape = MatmulShape.of(4096, 1536, 4096).withSegments(16);
        var sample = Autotuner.sample(shape);
        assertThat(sample.a()).isEqualTo(shape.a());
        assertThat(sample.flops()).isLessThan(1e9);
        assertThat(sample.k() % sample.segments()).isZero();
    }

    @Test
    void peaksArePositive() {
        try (var pool = new TilePool(2)) {
            var peaks = Peaks.measure(pool);
            assertThat(peaks.fmaPerThread()).isPositive();
            assertThat(peaks.fma()).isPositive();
            assertThat(peaks.copy()).isPositive();
        }
    }
}
