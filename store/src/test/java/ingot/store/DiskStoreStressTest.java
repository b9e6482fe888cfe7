package ingot.store;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.ir.Type;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.random.RandomGenerator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Many transfers at once, with hardly any free extents, slow flushes and power failures in between.
class DiskStoreStressTest {
    private static final StoreLayout LAYOUT = new StoreLayout(
            List.of(new StoredTensor("w", Type.f32(9, 2000)), new StoredTensor("b", Type.f32(700))),
            List.of("m"),
            2048);
    private static final int ROWS = 10; // w has 9 chunks
    private static final int OPERATIONS = 3000;

    @TempDir
    Path folder;

    private final Arena arena = Arena.ofAuto();
    private final RandomGenerator random = FaultyStorage.random(11);

    private record Read(int row, int part, long oldest, long newest, MemorySegment into, Transfer transfer) {}

    private static int tensor(int row) {
        return row < 9 ? 0 : 1;
    }

    private static int chunk(int row) {
        return row < 9 ? row : 0;
    }

    private static int elements(int row) {
        return LAYOUT.elements(tensor(row), chunk(row));
    }

    /// What a part of a row holds at a generation, in every element.
    private static float value(int row, int part, long generation) {
        return generation == 0 ? 0 : row * 10_000 + part * 1000 + generation;
    }

    private MemorySegment buffer() {
        return arena.allocate(8192, Blocks.SIZE);
    }

    private MemorySegment filled(int row, int part, long generation) {
        MemorySegment buffer = buffer();
        for (int i = 0; i < elements(row); i++) {
            buffer.setAtIndex(ValueLayout.JAVA_FLOAT, i, value(row, part, generation));
        }
        return buffer;
    }

    private static DiskStore.Options options(FaultyStorage device) {
        return DiskStore.Options.of((_, _, into) -> into.fill((byte) 0), _ -> {})
                .withStorage(device.opener())
                .withSlack(0);
    }

    @Test
    void rowsStayWhole() {
        FaultyStorage device = new FaultyStorage();
        device.faults.flushesAreSlow = true;
        device.faults.readsAreSlow = true;
        device.faults.transfersAreShort = true;
        long[] newest = new long[ROWS]; // begun
        long[] asked = new long[ROWS]; // when the commit under way was asked for
        long[] safe = new long[ROWS]; // in the newest commit that was asked for and is done
        List<Read> reads = new ArrayList<>();
        int failures = 0;
        try (DiskStore store = DiskStore.create(folder.resolve("a"), LAYOUT, "", "", options(device))) {
            Transfer commit = store.beginCommit("first");
            for (int i = 0; i < OPERATIONS; i++) {
                int row = random.nextInt(ROWS);
                if (random.nextInt(3) > 0) {
                    read(store, row, random.nextInt(2), reads);
                } else if (random.nextBoolean()) {
                    var gradient =
                            store.gradient(tensor(row), chunk(row), newest[row] + 1, filled(row, 2, newest[row] + 1));
                    assertThat(gradient).isNotNull();
                } else {
                    long generation = ++newest[row];
                    var update = store.update(
                            tensor(row),
                            chunk(row),
                            generation,
                            List.of(filled(row, 0, generation), filled(row, 1, generation)));
                    assertThat(update).isNotNull();
                }
                if (commit.done()) {
                    commit.await();
                    System.arraycopy(asked, 0, safe, 0, ROWS);
                    System.arraycopy(newest, 0, asked, 0, ROWS);
                    commit = store.beginCommit("operation " + i);
                }
                if (i % 100 == 99) {
                    reads.forEach(DiskStoreStressTest::check);
                    reads.clear();
                    BitSet survivors = new BitSet();
                    for (int s = 0; s < 2000; s++) {
                        survivors.set(s, random.nextBoolean());
                    }
                    checkAfter(device.afterPowerFailure(survivors), safe, newest);
                    failures++;
                }
            }
            store.commit("last");
            assertThat(store.sequence()).isGreaterThan(OPERATIONS / 100);
        }
        checkAfter(device.image(), newest, newest);
        assertThat(failures).isEqualTo(OPERATIONS / 100);
    }

    private void read(DiskStore store, int row, int part, List<Read> reads) {
        MemorySegment into = buffer();
        long oldest = store.generation(tensor(row), chunk(row));
        Transfer transfer = store.read(tensor(row), chunk(row), part, into);
        reads.add(new Read(row, part, oldest, store.generation(tensor(row), chunk(row)), into, transfer));
    }

    private static void check(Read read) {
        read.transfer.await();
        float[] found = read.into.asSlice(0, 4L * elements(read.row)).toArray(ValueLayout.JAVA_FLOAT);
        assertThat(found[0])
                .as("row " + read.row + " part " + read.part)
                .isBetween(value(read.row, read.part, read.oldest), value(read.row, read.part, read.newest));
        float[] same = new float[found.length];
        Arrays.fill(same, found[0]);
        assertThat(found).isEqualTo(same);
    }

    private void checkAfter(byte[] image, long[] oldest, long[] newest) {
        try (DiskStore store = DiskStore.open(folder, LAYOUT, "", options(new FaultyStorage(image)))) {
            List<Read> reads = new ArrayList<>();
            for (int row = 0; row < ROWS; row++) {
                assertThat(store.generation(tensor(row), chunk(row))).isBetween(oldest[row], newest[row]);
                read(store, row, 0, reads);
                read(store, row, 1, reads);
                long gradient = store.gradientGeneration(tensor(row), chunk(row));
                if (gradient != 0) {
                    assertThat(gradient).isEqualTo(store.generation(tensor(row), chunk(row)) + 1);
                    MemorySegment into = buffer();
                    reads.add(new Read(
                            row,
                            2,
                            gradient,
                            gradient,
                            into,
                            store.readGradient(tensor(row), chunk(row), gradient, into)));
                }
            }
            reads.forEach(DiskStoreStressTest::check);
        }
    }
}
