package ingot.train;

import ingot.compiler.Backend;
import ingot.ir.IngotException;
import ingot.store.DiskStore;
import ingot.store.Durable;
import ingot.store.Initial;
import ingot.store.Progress;
import ingot.store.Safetensors;
import ingot.store.Storage;
import ingot.store.StoreLayout;
import ingot.store.StoredTensor;
import ingot.store.Transfer;
import ingot.store.WeightStore.Key;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import java.util.zip.CRC32C;

/// The state of a run on its way from a checkpoint to a store on disk.
///
/// The store is made beside its name and renamed when it is complete; only then the checkpoints go. So at any moment
/// there is one whole state, or two that are the same: the one with more steps counts.
final class StateMove {
    /// Chunks on their way at the same time.
    private static final int IN_FLIGHT = 4;

    private final StoreLayout layout;
    private final Initial initial;
    private final Streamed settings;
    private final Progress progress;

    private StateMove(StoreLayout layout, Initial initial, Streamed settings, Progress progress) {
        this.layout = layout;
        this.initial = initial;
        this.settings = settings;
        this.progress = progress;
    }

    /// Makes the store of `settings` from the newest whole checkpoint, and removes the checkpoints.
    static void toDisk(
            Path checkpoints,
            StoreLayout layout,
            Task task,
            Recipe recipe,
            Backend backend,
            Streamed settings,
            Progress progress) {
        try (InitialValues initial = InitialValues.of(task, recipe, backend)) {
            StateMove move = new StateMove(layout, initial, settings, progress);
            Checkpoint.Found found = Checkpoint.find(checkpoints, move::check, settings.warn());
            if (found == null) {
                return;
            }
            Path folder = settings.folder();
            Path partial = beside(folder, ".partial");
            try {
                remove(partial);
                try (Safetensors arrays = Safetensors.open(found.arrays())) {
                    move.write(found.state(), arrays, partial);
                }
                remove(folder); // at most a creation that did not come to its end
                Files.move(partial, folder, StandardCopyOption.ATOMIC_MOVE);
                flushParent(folder);
            } catch (IOException e) {
                throw new IngotException(
                        "store: cannot make " + folder + ": " + e.getMessage() + "; the checkpoints in " + checkpoints
                                + " are untouched",
                        e);
            } finally {
                clean(folder);
            }
        }
        discard(checkpoints);
    }

    private static void flushParent(Path folder) throws IOException {
        Path parent = folder.toAbsolutePath().getParent();
        if (parent != null) {
            Durable.flush(parent);
        }
    }

    /// Removes a folder for good: under another name first, so that half of it is never taken for all.
    static void discard(Path folder) {
        try {
            Path old = beside(folder, ".old");
            remove(old);
            if (Files.exists(folder)) {
                Files.move(folder, old, StandardCopyOption.ATOMIC_MOVE);
                remove(old);
            }
        } catch (IOException e) {
            throw new IngotException("run: cannot remove " + folder + ", whose state has moved: " + e.getMessage(), e);
        }
    }

    /// Removes what an interrupted move of this folder left behind.
    static void clean(Path folder) {
        try {
            remove(beside(folder, ".old"));
            remove(beside(folder, ".partial"));
        } catch (IOException e) {
            throw new IngotException("run: cannot remove what is left beside " + folder + ": " + e.getMessage(), e);
        }
    }

    private static Path beside(Path folder, String suffix) {
        return folder.resolveSibling(folder.getFileName() + suffix);
    }

    private static void remove(Path folder) throws IOException {
        if (!Files.exists(folder)) {
            return;
        }
        try (Stream<Path> paths = Files.walk(folder)) {
            for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }

    /// Compares everything that the run will go on from with what was saved.
    private void check(Checkpoint.State state, Safetensors arrays) {
        Digest.Running digest = new Digest.Running();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment buffer = arena.allocate(4L * layout.chunkElements(), Storage.BLOCK);
            for (int t = 0; t < layout.tensors().size(); t++) {
                StoredTensor tensor = layout.tensors().get(t);
                CRC32C crc = new CRC32C();
                for (int part = 0; part < (tensor.frozen() ? 1 : layout.stateParts()); part++) {
                    Key key = new Key(tensor.name(), layout.part(part));
                    if (!tensor.frozen()) {
                        Checkpoint.checkType(arrays, key, tensor.type());
                    }
                    digest.begin(key);
                    for (int chunk = 0; chunk < layout.chunks(t); chunk++) {
                        MemorySegment values = buffer.asSlice(0, 4L * layout.elements(t, chunk));
                        if (tensor.frozen()) {
                            initial.fill(tensor.name(), layout.start(chunk), values);
                            crc.update(values.asByteBuffer());
                        } else {
                            arrays.readInto(key.toString(), 4L * layout.start(chunk), values);
                        }
                        digest.add(values);
                    }
                }
                if (tensor.frozen()) {
                    state.checkFrozen(tensor.name(), Long.toHexString(crc.getValue()));
                }
            }
        }
        state.checkDigest(digest.end(state.losses()));
    }

    private void write(Checkpoint.State state, Safetensors arrays, Path folder) {
        DiskStore.Options options =
                DiskStore.Options.of(initial, settings.warn()).withStorage(settings.storage());
        String note = new StreamedState.Note(state.step(), 0, 1, state.losses()).json();
        try (Arena arena = Arena.ofShared();
                DiskStore store = DiskStore.create(folder, layout, settings.identity(), note, options)) {
            List<List<MemorySegment>> buffers = new ArrayList<>();
            List<List<Transfer>> writes = new ArrayList<>();
            for (int i = 0; i < IN_FLIGHT; i++) {
                List<MemorySegment> parts = new ArrayList<>();
                for (int part = 0; part < layout.stateParts(); part++) {
                    parts.add(arena.allocate(4L * layout.chunkElements(), Storage.BLOCK));
                }
                buffers.add(parts);
                writes.add(new ArrayList<>());
            }
            long total = layout.elements(false);
            long done = 0;
            int next = 0;
            // without an update all values are first values
            for (int t = 0; state.step() > 0 && t < layout.tensors().size(); t++) {
                for (int chunk = 0; chunk < (layout.frozen(t) ? 0 : layout.chunks(t)); chunk++) {
                    List<MemorySegment> parts = buffers.get(next);
                    writes.get(next).forEach(Transfer::await);
                    writes.get(next).clear();
                    int elements = layout.elements(t, chunk);
                    for (int part = 0; part < parts.size(); part++) {
                        String key = new Key(layout.tensors().get(t).name(), layout.part(part)).toString();
                        arrays.readInto(
                                key, 4L * layout.start(chunk), parts.get(part).asSlice(0, 4L * elements));
                    }
                    writes.get(next).add(store.update(t, chunk, state.step(), parts));
                    next = (next + 1) % IN_FLIGHT;
                    done += elements;
                    progress.at(done, total);
                }
            }
            store.commit(note);
        }
    }
}
