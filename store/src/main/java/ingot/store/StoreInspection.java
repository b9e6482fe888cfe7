package ingot.store;

import ingot.ir.IngotException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;

/// Looks at a store without taking part in training; the store must not be in use.
public final class StoreInspection {
    private static final int THREADS = 4;

    private StoreInspection() {}

    /// Header, superblocks, index.
    public static StoreReport inspect(Path folder) {
        return inspect(folder, Storage.Opener.files(_ -> {}));
    }

    static StoreReport inspect(Path folder, Storage.Opener opener) {
        try (StoreFile file = StoreFile.open(folder, opener)) {
            return report(file, file.roots());
        } catch (IOException e) {
            throw unreadable(folder, e);
        }
    }

    /// Reads everything that the newest commit refers to and compares the checksums; all damage, in the order of the
    /// tensors. `progress` counts rows, on threads of its own, one at a time.
    public static List<StoreReport.Damage> verify(Path folder, Progress progress) {
        return verify(folder, Storage.Opener.files(_ -> {}), progress);
    }

    static List<StoreReport.Damage> verify(Path folder, Storage.Opener opener, Progress progress) {
        try (StoreFile file = StoreFile.open(folder, opener)) {
            List<Root> roots = file.roots();
            List<StoreReport.Damage> damage = new ArrayList<>(ofRoots(roots));
            damage.addAll(ofExtents(file, roots.getFirst(), progress));
            return damage;
        } catch (IOException e) {
            throw unreadable(folder, e);
        }
    }

    /// Verifies, and repairs what has a second copy: a damaged superblock or index is written anew from the good one.
    public static StoreReport.Scrub scrub(Path folder, Progress progress) {
        return scrub(folder, Storage.Opener.files(_ -> {}), progress);
    }

    static StoreReport.Scrub scrub(Path folder, Storage.Opener opener, Progress progress) {
        try (StoreFile file = StoreFile.open(folder, opener)) {
            List<Root> roots = file.roots();
            Root newest = roots.getFirst();
            List<StoreReport.Damage> ofRoots = ofRoots(roots);
            List<StoreReport.Damage> ofExtents = ofExtents(file, newest, progress);
            if (!newest.usable()) {
                return new StoreReport.Scrub(List.of(), ofRoots);
            }
            if (!roots.getLast().usable()) {
                DiskStore.rewrite(file, newest);
            }
            return new StoreReport.Scrub(ofRoots, ofExtents);
        } catch (IOException e) {
            throw unreadable(folder, e);
        }
    }

    private static IngotException unreadable(Path folder, IOException e) {
        return new IngotException("store: cannot read the store in " + folder + ": " + StoreLock.reason(e), e);
    }

    private static StoreReport report(StoreFile file, List<Root> roots) {
        Root newest = roots.getFirst();
        Header header = file.header();
        Geometry geometry = file.geometry();
        int[] used = new int[geometry.classes().size()];
        List<StoreReport.TensorRows> tensors = new ArrayList<>();
        for (int t = 0; newest.usable() && t < header.layout().tensors().size(); t++) {
            tensors.add(rows(geometry, newest.table(), t, used));
        }
        List<StoreReport.Room> extents = new ArrayList<>();
        for (int c = 0; newest.usable() && c < used.length; c++) {
            Geometry.SizeClass sizeClass = geometry.classes().get(c);
            extents.add(new StoreReport.Room(sizeClass.extentBytes(), sizeClass.count(), used[c]));
        }
        return new StoreReport(
                file.path(),
                Header.VERSION,
                header.store(),
                header.created(),
                header.identity(),
                geometry.fileBytes(),
                header.layout(),
                roots.stream()
                        .sorted(java.util.Comparator.comparingInt(Root::slot))
                        .map(StoreInspection::slot)
                        .toList(),
                newest.usable() ? newest.sequence() : -1,
                newest.usable() ? newest.whole().note() : "",
                !newest.usable() || !newest.unchecked(),
                tensors,
                extents);
    }

    private static StoreReport.Slot slot(Root root) {
        Superblock superblock = root.superblock();
        return new StoreReport.Slot(
                root.slot(),
                root.sequence(),
                superblock == null
                        ? ""
                        : Instant.ofEpochMilli(superblock.time()).toString(),
                root.damage());
    }

    private static StoreReport.TensorRows rows(Geometry geometry, RowTable table, int tensor, int[] used) {
        StoredTensor stored = geometry.layout().tensors().get(tensor);
        int chunks = geometry.layout().chunks(tensor);
        int untouched = 0;
        int gradients = 0;
        int extents = 0;
        long bytes = 0;
        long oldest = Long.MAX_VALUE;
        long newest = 0;
        for (int chunk = 0; chunk < chunks; chunk++) {
            int row = geometry.row(tensor, chunk);
            long generation = table.generation(row);
            if (generation == 0) {
                untouched++;
            } else {
                oldest = Math.min(oldest, generation);
                newest = Math.max(newest, generation);
            }
            gradients += table.gradientGeneration(row) == RowTable.NONE ? 0 : 1;
            for (int part = 0; part < table.parts(); part++) {
                if (table.block(row, part) != RowTable.NOWHERE) {
                    extents++;
                    used[geometry.sizeClass(row)]++;
                    bytes += geometry.classes().get(geometry.sizeClass(row)).extentBytes();
                }
            }
        }
        return new StoreReport.TensorRows(
                stored.name(),
                stored.type(),
                chunks,
                untouched,
                newest == 0 ? 0 : oldest,
                newest,
                gradients,
                extents,
                bytes);
    }

    /// Damage to superblocks and indexes. That the index of the older commit is half replaced is none.
    private static List<StoreReport.Damage> ofRoots(List<Root> roots) {
        List<StoreReport.Damage> damage = new ArrayList<>();
        for (Root root : roots) {
            boolean replaced = root.overtaken()
                    && roots.getFirst().usable()
                    && roots.getFirst().sequence() > root.sequence();
            if (!replaced) {
                root.damage().forEach(text -> damage.add(new StoreReport.Damage("", -1, "", text)));
            }
        }
        return damage;
    }

    private static List<StoreReport.Damage> ofExtents(StoreFile file, Root root, Progress progress) {
        if (!root.usable()) {
            return List.of();
        }
        int rows = root.table().rows();
        AtomicInteger next = new AtomicInteger();
        AtomicInteger done = new AtomicInteger();
        SortedMap<Integer, List<StoreReport.Damage>> damage = new TreeMap<>(); // by row
        List<Throwable> failures = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < Math.min(THREADS, rows); i++) {
            threads.add(IoThreads.start("ingot-verify-" + i, () -> {
                try (Arena arena = Arena.ofConfined()) {
                    MemorySegment buffer = arena.allocate(largestExtent(file.geometry()), Blocks.SIZE);
                    for (int row = next.getAndIncrement(); row < rows; row = next.getAndIncrement()) {
                        List<StoreReport.Damage> found = ofRow(file, root, row, buffer);
                        synchronized (damage) {
                            damage.put(row, found);
                            progress.at(done.incrementAndGet(), rows);
                        }
                    }
                } catch (RuntimeException | Error e) {
                    next.set(rows);
                    synchronized (failures) {
                        failures.add(e);
                    }
                }
            }));
        }
        threads.forEach(IoThreads::join);
        if (!failures.isEmpty()) {
            throw new IllegalStateException("verification of " + file.path() + " failed", failures.getFirst());
        }
        return damage.values().stream().flatMap(List::stream).toList();
    }

    private static long largestExtent(Geometry geometry) {
        return geometry.classes().stream()
                .mapToLong(Geometry.SizeClass::extentBytes)
                .max()
                .orElse(Blocks.SIZE);
    }

    private static List<StoreReport.Damage> ofRow(StoreFile file, Root root, int row, MemorySegment buffer) {
        Geometry geometry = file.geometry();
        RowTable table = root.table();
        List<StoreReport.Damage> damage = new ArrayList<>();
        for (int part = 0; part < table.parts(); part++) {
            String wrong = table.block(row, part) == RowTable.NOWHERE
                    ? ""
                    : check(file, table, row, part, root.unchecked(), buffer);
            if (!wrong.isEmpty()) {
                String name = geometry.layout().part(part);
                damage.add(new StoreReport.Damage(
                        geometry.layout().tensors().get(geometry.tensor(row)).name(),
                        geometry.chunk(row),
                        name,
                        geometry.name(row) + " " + name + " (generation " + table.generationOf(row, part) + ", byte "
                                + table.block(row, part) * Blocks.SIZE + ") " + wrong));
            }
        }
        return damage;
    }

    private static String check(
            StoreFile file, RowTable table, int row, int part, boolean unchecked, MemorySegment buffer) {
        Geometry geometry = file.geometry();
        int payload = geometry.payloadBytes(row);
        MemorySegment blocks = buffer.asSlice(0, Storage.roundUp(payload));
        try {
            Blocks.read(file.storage(), table.block(row, part) * Blocks.SIZE, blocks);
        } catch (IOException e) {
            return "cannot be read: " + StoreLock.reason(e);
        }
        int found = Checksum.of(
                file.header().store(),
                geometry.tensor(row),
                geometry.chunk(row),
                part,
                table.generationOf(row, part),
                blocks.asSlice(0, payload));
        return unchecked || found == table.crc(row, part)
                ? ""
                : "is damaged: checksum " + Integer.toHexString(found) + ", expected "
                        + Integer.toHexString(table.crc(row, part));
    }
}
