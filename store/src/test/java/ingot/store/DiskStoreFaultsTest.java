package ingot.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.IngotException;
import ingot.store.FaultyStorage.Operation;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.random.RandomGenerator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Crashes, lost and torn writes, errors, bit flips: the final bytes are always those of the undisturbed run, or the
/// store refuses and names what is damaged.
class DiskStoreFaultsTest {
    private static final String ROW_NAME = "(?s).*(wte chunk [012]|bias chunk 0|head chunk [01]) .*";

    @TempDir
    Path folder;

    private final List<String> warnings = new ArrayList<>();

    private ToyTraining training(FaultyStorage device) {
        return new ToyTraining(folder, device, warnings::add);
    }

    private List<byte[]> undisturbed(FaultyStorage device, TreeMap<Integer, Long> committed) {
        ToyTraining training = training(device);
        try (DiskStore store = training.create()) {
            committed.put(device.log().size(), 0L);
            return training.run(store, step -> committed.put(device.log().size(), step));
        }
    }

    private List<byte[]> goOn(byte[] image) {
        return goOn(new FaultyStorage(image));
    }

    private List<byte[]> goOn(FaultyStorage device) {
        ToyTraining training = training(device);
        try (DiskStore store = training.open()) {
            return training.run(store, _ -> {});
        }
    }

    private static boolean same(List<byte[]> a, List<byte[]> b) {
        return a.size() == b.size()
                && java.util.stream.IntStream.range(0, a.size()).allMatch(i -> Arrays.equals(a.get(i), b.get(i)));
    }

    /// The device after every single write and flush, with every choice of what survived of the unflushed writes: none,
    /// all, each alone, all but each, random sectors, random blocks of 4 KiB.
    @Test
    void everyCrashEndsInTheSameBytes() {
        FaultyStorage device = new FaultyStorage();
        device.faults.flushesAreSlow = true; // so that writes come in between
        TreeMap<Integer, Long> committed = new TreeMap<>();
        List<byte[]> expected = undisturbed(device, committed);
        List<Operation> log = device.log();
        byte[] medium = new byte[(int) device.size()];
        List<Operation.Write> unflushed = new ArrayList<>();
        Set<List<Long>> tried = new HashSet<>();
        int created = committed.firstKey();
        int points = 0;
        int images = 0;
        RandomGenerator random = FaultyStorage.random(5);
        for (int end = 0; end <= log.size(); end++) {
            if (end > 0) {
                switch (log.get(end - 1)) {
                    case Operation.Write write -> unflushed.add(write);
                    case Operation.Flush() -> {
                        BitSet all = new BitSet();
                        all.set(0, FaultyStorage.sectors(unflushed));
                        medium = FaultyStorage.survive(medium, unflushed, all);
                        unflushed.clear();
                    }
                }
            }
            if (end < created) {
                continue;
            }
            points++;
            for (BitSet survivors : choices(unflushed, random)) {
                byte[] image = FaultyStorage.survive(medium, unflushed, survivors);
                if (!tried.add(List.of(hash(image), committed.floorEntry(end).getValue()))) {
                    continue;
                }
                images++;
                String what = "crash after operation " + end + " of " + log.size() + ", sectors " + survivors
                        + " of the unflushed ones survive";
                ToyTraining training = training(new FaultyStorage(image));
                try (DiskStore store = training.open()) {
                    assertThat(Long.parseLong(store.note()))
                            .as(what + ": at most the step in flight is done again")
                            .isGreaterThanOrEqualTo(committed.floorEntry(end).getValue());
                    assertThat(same(training.run(store, _ -> {}), expected))
                            .as(what)
                            .isTrue();
                }
            }
        }
        assertThat(images)
                .as("%d different images of the medium at %d crash points", images, points)
                .isGreaterThan(5 * points);
    }

    private static long hash(byte[] image) {
        java.util.zip.CRC32C a = new java.util.zip.CRC32C();
        a.update(image);
        java.util.zip.CRC32 b = new java.util.zip.CRC32();
        b.update(image);
        return a.getValue() << 32 | b.getValue();
    }

    private static List<BitSet> choices(List<Operation.Write> unflushed, RandomGenerator random) {
        int sectors = FaultyStorage.sectors(unflushed);
        List<BitSet> choices = new ArrayList<>();
        choices.add(new BitSet());
        BitSet all = new BitSet();
        all.set(0, sectors);
        choices.add(all);
        int at = 0;
        for (Operation.Write write : unflushed) {
            int end = at + Math.ceilDiv(write.data().length, FaultyStorage.SECTOR);
            BitSet only = new BitSet();
            only.set(at, end);
            choices.add(only);
            BitSet without = (BitSet) all.clone();
            without.clear(at, end);
            choices.add(without);
            at = end;
        }
        for (int unit : new int[] {1, 1, 1, 8, 8, 8}) {
            BitSet some = new BitSet();
            for (int s = 0; s < sectors; s += unit) {
                some.set(s, s + unit, random.nextBoolean());
            }
            choices.add(some);
        }
        return choices;
    }

    /// A crash while the store is made leaves nothing, or a whole store.
    @Test
    void everyCrashOfTheCreationCanBeRepeated() {
        FaultyStorage whole = new FaultyStorage();
        training(whole).create().close();
        for (int end = 0; end <= whole.writesAndFlushes(); end++) {
            FaultyStorage device = new FaultyStorage();
            device.faults.powerOff = end;
            if (end < whole.writesAndFlushes()) {
                assertThatThrownBy(() -> training(device).create().close()).isInstanceOf(IngotException.class);
            } else {
                training(device).create().close();
            }
            RandomGenerator random = FaultyStorage.random(end);
            for (int i = 0; i < 10; i++) {
                BitSet survivors = new BitSet();
                for (int s = 0; s < device.unflushedSectors(); s++) {
                    survivors.set(s, random.nextBoolean());
                }
                FaultyStorage after = new FaultyStorage(device.afterPowerFailure(survivors));
                DiskStore store;
                if (DiskStore.exists(folder, after.opener())) {
                    try {
                        store = training(after).open();
                    } catch (IngotException e) {
                        // a torn header: the folder holds nothing of value
                        assertThat(e).hasMessageContaining("header");
                        continue;
                    }
                } else {
                    store = training(after).create();
                }
                assertThat(store.note()).isEqualTo("0");
                store.close();
            }
        }
    }

    /// A failed write or flush stops the store at once and for good; what was committed is safe.
    @Test
    void everyFailedWriteAndFlushStopsTheStore() {
        FaultyStorage whole = new FaultyStorage();
        List<byte[]> expected = undisturbed(whole, new TreeMap<>());
        FaultyStorage created = new FaultyStorage();
        training(created).create().close();
        int writes = (int)
                whole.log().stream().filter(Operation.Write.class::isInstance).count();
        int flushes = whole.log().size() - writes;
        Geometry geometry =
                StoreFile.header(ToyTraining.LAYOUT, ToyTraining.IDENTITY, 0).geometry();
        int failures = 0;
        for (int i = 0; i < writes + flushes; i++) {
            FaultyStorage device = new FaultyStorage(created.image());
            if (i < writes) {
                device.faults.write = i;
            } else {
                device.faults.flush = i - writes + 1; // the first is that of opening
            }
            RandomGenerator random = FaultyStorage.random(i);
            ToyTraining training = training(device);
            boolean failed = false;
            try (DiskStore store = training.open()) {
                try {
                    assertThat(same(training.run(store, _ -> {}), expected)).isTrue();
                } catch (IngotException e) {
                    failed = true;
                    assertThat(e).hasMessageContaining("Input/output error");
                    assertThatThrownBy(() -> store.commit("late"))
                            .isInstanceOf(IngotException.class)
                            .hasMessageContaining("stopped by an earlier failure");
                    assertThatThrownBy(() -> store.read(
                                    0, 0, 0, java.lang.foreign.Arena.ofAuto().allocate(8192, Blocks.SIZE)))
                            .hasMessageContaining("stopped by an earlier failure");
                }
            }
            if (failed) {
                failures++;
                assertThat(device.afterFailedFlush())
                        .as("flushes and superblocks after a failed flush")
                        .noneMatch(operation -> !(operation instanceof Operation.Write write)
                                || write.position() < geometry.indexPosition(0));
                BitSet survivors = new BitSet();
                for (int s = 0; s < device.unflushedSectors(); s++) {
                    survivors.set(s, random.nextBoolean());
                }
                assertThat(same(goOn(device.afterPowerFailure(survivors)), expected))
                        .isTrue();
            }
        }
        assertThat(failures).isGreaterThan((writes + flushes) / 2);
    }

    /// The process dies between a superblock and its flush, but the machine lives on: the commit is visible and not
    /// safe. The next process goes on from it, and then the power fails.
    @Test
    void aKilledProcessAndThenAPowerFailure() {
        FaultyStorage whole = new FaultyStorage();
        TreeMap<Integer, Long> committed = new TreeMap<>();
        List<byte[]> expected = undisturbed(whole, committed);
        Geometry geometry =
                StoreFile.header(ToyTraining.LAYOUT, ToyTraining.IDENTITY, 0).geometry();
        byte[] medium = new byte[(int) whole.size()];
        List<Operation.Write> unflushed = new ArrayList<>();
        int crashes = 0;
        for (int end = 0; end < whole.log().size(); end++) {
            switch (whole.log().get(end)) {
                case Operation.Flush() -> {
                    medium = new FaultyStorage(medium, unflushed).image();
                    unflushed.clear();
                }
                case Operation.Write write -> {
                    unflushed.add(write);
                    boolean superblock = write.position() < geometry.indexPosition(0);
                    for (int later = 1; superblock && end >= committed.firstKey() && later < 16; later++) {
                        FaultyStorage device = new FaultyStorage(medium, unflushed);
                        device.faults.powerOff = later;
                        try {
                            goOn(device);
                            break; // it needs fewer writes than that
                        } catch (IngotException e) {
                            assertThat(e).hasStackTraceContaining("no power");
                        }
                        int old = FaultyStorage.sectors(unflushed);
                        BitSet survivors = new BitSet(); // only the writes of the second process, if there are old ones
                        survivors.set(Math.min(old, device.unflushedSectors()), device.unflushedSectors());
                        assertThat(same(goOn(device.afterPowerFailure(survivors)), expected))
                                .as("killed after operation " + end + ", power off after " + later)
                                .isTrue();
                        crashes++;
                    }
                }
            }
        }
        assertThat(crashes).as("crashes").isGreaterThan(50);
    }

    @Test
    void shortTransfersAreContinued() {
        FaultyStorage whole = new FaultyStorage();
        List<byte[]> expected = undisturbed(whole, new TreeMap<>());
        FaultyStorage device = new FaultyStorage();
        device.faults.transfersAreShort = true;
        assertThat(same(undisturbed(device, new TreeMap<>()), expected)).isTrue();
        assertThat(device.reads()).isGreaterThan(whole.reads());
    }

    @Test
    void aFailedReadNamesItsRow() {
        FaultyStorage device = new FaultyStorage();
        ToyTraining training = training(device);
        try (DiskStore store = training.create()) {
            training.run(store, _ -> {});
            device.faults.read = device.reads();
            var buffer = java.lang.foreign.Arena.ofAuto().allocate(8192, Blocks.SIZE);
            assertThatThrownBy(() -> store.read(2, 1, 2, buffer).await())
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("cannot read head chunk 1 v at byte ")
                    .hasMessageContaining("Input/output error");
            store.read(2, 1, 2, buffer).await();
        }
    }

    /// The image of a store in the middle of its training.
    private byte[] halfway() {
        FaultyStorage device = new FaultyStorage();
        ToyTraining training = training(device);
        try (DiskStore store = training.create()) {
            byte[][] image = new byte[1][];
            training.run(store, step -> image[0] = step == 2 ? device.image() : image[0]);
            return image[0];
        }
    }

    /// One flipped bit in every sector of the file.
    @Test
    void everyFlippedBitIsHarmlessOrNamed() {
        List<byte[]> expected = undisturbed(new FaultyStorage(), new TreeMap<>());
        byte[] image = halfway();
        RandomGenerator random = FaultyStorage.random(9);
        int refused = 0;
        Geometry geometry =
                StoreFile.header(ToyTraining.LAYOUT, ToyTraining.IDENTITY, 0).geometry();
        for (int sector = 0; sector < image.length; sector += FaultyStorage.SECTOR) {
            long inSlot = (sector - geometry.superblockPosition(0)) % Geometry.SUPERBLOCK_SLOT;
            if (sector < geometry.indexPosition(0) && inSlot >= 2 * Blocks.SIZE && inSlot % Blocks.SIZE != 0) {
                continue; // where a superblock has room for a longer note
            }
            byte[] flipped = image.clone();
            flipped[sector + random.nextInt(FaultyStorage.SECTOR)] ^= (byte) (1 << random.nextInt(8));
            refused += equalOrNamed(flipped, expected, "sector " + sector / FaultyStorage.SECTOR) ? 0 : 1;
        }
        assertThat(refused).as("refusals").isBetween(50, image.length / FaultyStorage.SECTOR / 2);
    }

    /// Every two extents of the same size changed places.
    @Test
    void everySwapOfExtentsIsHarmlessOrNamed() {
        List<byte[]> expected = undisturbed(new FaultyStorage(), new TreeMap<>());
        byte[] image = halfway();
        Geometry geometry =
                StoreFile.header(ToyTraining.LAYOUT, ToyTraining.IDENTITY, 0).geometry();
        int refused = 0;
        for (Geometry.SizeClass c : geometry.classes()) {
            for (int i = 0; i < c.count(); i++) {
                for (int j = i + 1; j < c.count(); j++) {
                    byte[] swapped = image.clone();
                    int a = (int) c.offset() + i * c.extentBytes();
                    int b = (int) c.offset() + j * c.extentBytes();
                    System.arraycopy(image, a, swapped, b, c.extentBytes());
                    System.arraycopy(image, b, swapped, a, c.extentBytes());
                    refused += equalOrNamed(swapped, expected, "extents " + i + " and " + j) ? 0 : 1;
                }
            }
        }
        assertThat(refused).as("refusals").isGreaterThan(200);
    }

    private boolean equalOrNamed(byte[] image, List<byte[]> expected, String what) {
        try {
            assertThat(same(goOn(image), expected)).as(what).isTrue();
            return true;
        } catch (IngotException e) {
            assertThat(e.getMessage()).as(what).matches("(?s).*header.*|" + ROW_NAME);
            return false;
        }
    }
}
