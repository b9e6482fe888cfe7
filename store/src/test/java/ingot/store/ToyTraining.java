package ingot.store;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.ir.Type;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;

/// The protocol of training, on toy tensors: step s first applies the gradients of step s - 1 to the rows that still
/// wait for them, then writes gradients that depend on the weights, then commits. A crash is followed by the same
/// steps.
final class ToyTraining {
    static final StoreLayout LAYOUT = new StoreLayout(
            List.of(
                    new StoredTensor("wte", Type.f32(5000)),
                    new StoredTensor("bias", Type.f32(10)),
                    new StoredTensor("head", Type.f32(3, 1000))),
            List.of("m", "v"),
            2048);
    static final int STEPS = 3;
    static final String IDENTITY = "toy";

    private static final int PIECE = 700; // elements that are read, updated and written at a time

    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT;

    private final Path folder;
    private final FaultyStorage device;
    private final Consumer<String> warnings;
    private final MemorySegment[][][] rows = new MemorySegment[3][3][4]; // [tensor, chunk, part]

    ToyTraining(Path folder, FaultyStorage device, Consumer<String> warnings) {
        this.folder = folder;
        this.device = device;
        this.warnings = warnings;
        Arena arena = Arena.ofAuto();
        forEachRow((t, c) -> Arrays.setAll(rows[t][c], _ -> arena.allocate(8192, Blocks.SIZE)));
    }

    private DiskStore.Options options() {
        return DiskStore.Options.of(ToyTraining::initial, warnings)
                .withStorage(device.opener())
                .withThreads(1)
                .withSlack(0);
    }

    private static void initial(String tensor, long start, MemorySegment into) {
        for (long i = 0; i < into.byteSize() / 4; i++) {
            into.setAtIndex(FLOAT, i, (tensor.hashCode() % 1000 + start + i) / 1000f);
        }
    }

    DiskStore create() {
        return DiskStore.create(folder, LAYOUT, IDENTITY, "0", options());
    }

    DiskStore open() {
        return DiskStore.open(folder, LAYOUT, IDENTITY, options());
    }

    /// Runs from wherever the store is to the end; `committed` learns each step that is safe. The final bytes.
    List<byte[]> run(DiskStore store, Consumer<Long> committed) {
        long done = Long.parseLong(store.note());
        checkRows(store, done);
        for (long step = done + 1; step <= STEPS; step++) {
            update(store, step - 1);
            long s = step;
            forEachRow((t, c) -> gradient(store, t, c, s));
            store.commit(Long.toString(step));
            committed.accept(step);
        }
        update(store, STEPS);
        store.commit(Long.toString(STEPS));
        List<byte[]> bytes = new ArrayList<>();
        forEachRow((t, c) -> {
            assertThat(store.generation(t, c)).isEqualTo(STEPS);
            for (int part = 0; part < 3; part++) {
                store.read(t, c, part, rows[t][c][part]).await();
                bytes.add(
                        rows[t][c][part].asSlice(0, 4L * LAYOUT.elements(t, c)).toArray(ValueLayout.JAVA_BYTE));
            }
        });
        return bytes;
    }

    /// What training relies on when it goes on after step `done`.
    private static void checkRows(DiskStore store, long done) {
        forEachRow((t, c) -> {
            long generation = store.generation(t, c);
            if (generation != done) {
                assertThat(generation).as(LAYOUT.row(t, c)).isEqualTo(done - 1);
                assertThat(store.gradientGeneration(t, c)).as(LAYOUT.row(t, c)).isEqualTo(done);
            }
        });
    }

    /// Brings the rows that wait for it to a generation. More writes are on their way than there are free extents.
    private void update(DiskStore store, long generation) {
        List<Transfer> updates = new ArrayList<>();
        forEachRow((t, c) -> {
            if (store.generation(t, c) == generation) {
                return;
            }
            MemorySegment[] row = rows[t][c];
            List<Arrival> reads = new ArrayList<>();
            for (int part = 0; part < 3; part++) {
                reads.add(store.arrival(t, c, part, row[part]));
            }
            reads.add(store.gradientArrival(t, c, generation, row[3]));
            reads.reversed().forEach(Transfer::await);
            Departure sums = store.departure(t, c, generation);
            for (int at = 0; at < LAYOUT.elements(t, c); at += PIECE) {
                int end = Math.min(at + PIECE, LAYOUT.elements(t, c));
                for (int part = 0; part < 4; part++) {
                    reads.get(part).pass(row[part].asSlice(4L * at, 4L * (end - at)));
                }
                adam(row, at, end);
                for (int part = 0; part < 3; part++) {
                    sums.pass(part, row[part].asSlice(4L * at, 4L * (end - at)));
                }
            }
            reads.forEach(Arrival::check);
            updates.add(store.update(t, c, generation, List.of(row[0], row[1], row[2]), sums));
        });
        updates.reversed().forEach(Transfer::await);
    }

    private static void adam(MemorySegment[] row, int from, int end) {
        for (int i = from; i < end; i++) {
            float g = row[3].getAtIndex(FLOAT, i);
            float m = 0.9f * row[1].getAtIndex(FLOAT, i) + 0.1f * g;
            float v = 0.99f * row[2].getAtIndex(FLOAT, i) + 0.01f * g * g;
            row[1].setAtIndex(FLOAT, i, m);
            row[2].setAtIndex(FLOAT, i, v);
            row[0].setAtIndex(FLOAT, i, row[0].getAtIndex(FLOAT, i) - 0.01f * m / (v + 0.1f));
        }
    }

    /// Depends on this row and on another tensor, as gradients do.
    private void gradient(DiskStore store, int tensor, int chunk, long step) {
        MemorySegment[] row = rows[tensor][chunk];
        Transfer mine = store.read(tensor, chunk, 0, row[0]);
        store.read((tensor + 1) % 3, 0, 0, row[1]).await();
        mine.await();
        float other = row[1].get(FLOAT, 36);
        for (long i = 0; i < LAYOUT.elements(tensor, chunk); i++) {
            row[3].setAtIndex(FLOAT, i, other * step - 0.5f * row[0].getAtIndex(FLOAT, i));
        }
        store.gradient(tensor, chunk, step, row[3]).await();
    }

    private interface RowAction {
        void at(int tensor, int chunk);
    }

    private static void forEachRow(RowAction action) {
        for (int t = 0; t < LAYOUT.tensors().size(); t++) {
            for (int c = 0; c < LAYOUT.chunks(t); c++) {
                action.at(t, c);
            }
        }
    }
}
