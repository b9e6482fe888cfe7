package ingot.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.IngotException;
import ingot.ir.Type;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StoreInspectionTest {
    @TempDir
    Path folder;

    private final Geometry geometry =
            StoreFile.header(ToyTraining.LAYOUT, ToyTraining.IDENTITY, 0).geometry();
    private byte[] image;

    /// A store after step 2: every row at generation 1, with the gradient of update 2.
    @BeforeEach
    void train() {
        FaultyStorage device = new FaultyStorage();
        ToyTraining training = new ToyTraining(folder, device, _ -> {});
        try (DiskStore store = training.create()) {
            training.run(store, step -> image = step == 2 ? device.image() : image);
        }
    }

    private static Storage.Opener device(byte[] image) {
        return new FaultyStorage(image).opener();
    }

    private byte[] flipped(long... positions) {
        byte[] bytes = image.clone();
        for (long position : positions) {
            bytes[(int) position] ^= 16;
        }
        return bytes;
    }

    /// Where a part of a row lies.
    private long position(int tensor, int chunk, int part) throws java.io.IOException {
        try (StoreFile file = StoreFile.open(folder, device(image))) {
            return file.roots().getFirst().table().block(geometry.row(tensor, chunk), part) * Blocks.SIZE;
        }
    }

    @Test
    void reportsWhatIsThere() {
        StoreReport report = StoreInspection.inspect(folder, device(image));
        assertThat(report.version()).isEqualTo(1);
        assertThat(report.identity()).isEqualTo("toy");
        assertThat(report.layout()).isEqualTo(ToyTraining.LAYOUT);
        assertThat(report.fileBytes()).isEqualTo(image.length);
        assertThat(report.note()).isEqualTo("2");
        assertThat(report.durable()).isTrue();
        assertThat(report.superblocks()).extracting(StoreReport.Slot::number).containsExactly(0, 1);
        assertThat(report.superblocks()).allMatch(slot -> slot.damage().isEmpty());
        assertThat(report.superblocks())
                .extracting(StoreReport.Slot::sequence)
                .containsExactlyInAnyOrder(report.sequence(), report.sequence() - 1);
        assertThat(report.tensors())
                .containsExactly(
                        new StoreReport.TensorRows("wte", Type.f32(5000), 3, 0, 1, 1, 3, 12, 80 << 10),
                        new StoreReport.TensorRows("bias", Type.f32(10), 1, 0, 1, 1, 1, 4, 16 << 10),
                        new StoreReport.TensorRows("head", Type.f32(3, 1000), 2, 0, 1, 1, 2, 8, 48 << 10));
        assertThat(report.extents())
                .containsExactly(new StoreReport.Room(4096, 20, 12), new StoreReport.Room(8192, 20, 12));
        assertThat(report.extents().getFirst().free()).isEqualTo(8);
    }

    @Test
    void verifiesASoundStore() {
        List<Long> progress = new ArrayList<>();
        assertThat(StoreInspection.verify(folder, device(image), (done, total) -> progress.add(total - done)))
                .isEmpty();
        assertThat(progress).containsExactly(5L, 4L, 3L, 2L, 1L, 0L);
    }

    @Test
    void findsAllDamage() throws Exception {
        byte[] damaged = flipped(
                position(0, 1, 2) + 8191,
                position(2, 1, 3),
                geometry.superblockPosition(0) + 20,
                position(1, 0, 0) + 40); // bias has 40 bytes: the last is padding
        assertThat(StoreInspection.verify(folder, device(damaged), Progress.NONE))
                .satisfiesExactly(
                        superblock -> assertThat(superblock.message()).contains("superblock 0 is damaged"),
                        wte -> {
                            assertThat(wte.tensor()).isEqualTo("wte");
                            assertThat(wte.chunk()).isEqualTo(1);
                            assertThat(wte.part()).isEqualTo("v");
                            assertThat(wte.message()).contains("wte chunk 1 v (generation 1, byte ");
                        },
                        head -> assertThat(head.message()).contains("head chunk 1 gradient (generation 2, byte "));
    }

    @Test
    void scrubRewritesWhatHasASecondCopy() throws Exception {
        long newest = StoreInspection.inspect(folder, device(image)).sequence();
        for (int slot = 0; slot < 2; slot++) {
            for (long position :
                    new long[] {geometry.superblockPosition(slot) + 30, geometry.indexPosition(slot) + 90}) {
                FaultyStorage device = new FaultyStorage(flipped(position, position(0, 0, 0)));
                StoreReport.Scrub scrub = StoreInspection.scrub(folder, device.opener(), Progress.NONE);
                assertThat(scrub.repaired())
                        .singleElement()
                        .satisfies(d -> assertThat(d.message())
                                .contains(position < geometry.indexPosition(0) ? "superblock " : "page 0 of index "));
                boolean fellBack = slot == newest % 2;
                assertThat(scrub.remaining())
                        .hasSize(fellBack ? scrub.remaining().size() : 1);
                StoreReport after = StoreInspection.inspect(folder, device.opener());
                assertThat(after.superblocks()).allMatch(s -> s.damage().isEmpty());
                assertThat(after.sequence()).isEqualTo(fellBack ? newest : newest + 1);
                assertThat(StoreInspection.verify(folder, device.opener(), Progress.NONE))
                        .isEqualTo(scrub.remaining());
            }
        }
    }

    @Test
    void scrubCannotRepairTheLossOfBothSuperblocks() {
        FaultyStorage device =
                new FaultyStorage(flipped(geometry.superblockPosition(0), geometry.superblockPosition(1)));
        StoreReport.Scrub scrub = StoreInspection.scrub(folder, device.opener(), Progress.NONE);
        assertThat(scrub.repaired()).isEmpty();
        assertThat(scrub.remaining()).hasSize(2);
        StoreReport report = StoreInspection.inspect(folder, device.opener());
        assertThat(report.sequence()).isEqualTo(-1);
        assertThat(report.tensors()).isEmpty();
    }

    /// A crash in the middle of a commit leaves the older index half replaced: nothing is wrong with that.
    @Test
    void anInterruptedCommitIsNoDamage() {
        FaultyStorage device = new FaultyStorage(image);
        device.faults.powerOff = 4; // the flush of opening, two parts and a page
        ToyTraining training = new ToyTraining(folder, device, _ -> {});
        try (DiskStore store = training.open()) {
            var memory = java.lang.foreign.Arena.ofAuto().allocate(4096, Blocks.SIZE);
            store.gradient(1, 0, 2, memory).await();
            store.gradient(1, 0, 2, memory).await();
            assertThatThrownBy(() -> store.commit("3")).isInstanceOf(IngotException.class);
        }
        device.faults.powerOff = -1;
        StoreReport report = StoreInspection.inspect(folder, device.opener());
        assertThat(report.note()).isEqualTo("2");
        assertThat(report.superblocks().stream().flatMap(s -> s.damage().stream()))
                .singleElement()
                .asString()
                .contains("has begun to replace it");
        assertThat(StoreInspection.verify(folder, device.opener(), Progress.NONE))
                .isEmpty();
    }

    @Test
    void refusesAStoreInUse() {
        ToyTraining training = new ToyTraining(folder, new FaultyStorage(image), _ -> {});
        try (DiskStore store = training.open()) {
            assertThat(store.note()).isEqualTo("2");
            assertThatThrownBy(() -> StoreInspection.inspect(folder, device(image)))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("is in use by pid ");
        }
    }
}
