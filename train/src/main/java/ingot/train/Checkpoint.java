package ingot.train;

import ingot.ir.IngotException;
import ingot.ir.Type;
import ingot.store.Durable;
import ingot.store.Progress;
import ingot.store.Safetensors;
import ingot.store.WeightStore;
import ingot.store.WeightStore.Key;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/// The state of a run after a step: weights, moments, and what identifies the run.
///
/// A checkpoint is a folder `step-N` with `state.safetensors` (arrays named `tensor:part`) and `state.json`. It is
/// written beside its final name and renamed when complete, so that a crash at any moment leaves the one before.
final class Checkpoint {
    private static final JsonMapper JSON = JsonMapper.builder().build();
    private static final int KEPT = 2;

    private Checkpoint() {}

    /// What identifies a state.
    ///
    /// @param step the next step to be done
    /// @param identity the keys of the configuration that decide bits, with their values
    /// @param data fingerprints of the training text and the tokenizer
    /// @param digest SHA-256 of all arrays and of the losses so far
    /// @param losses running digest of the losses
    /// @param frozen checksums of the frozen weights, which are not in the checkpoint
    record State(
            long step,
            Map<String, String> identity,
            Map<String, String> data,
            String digest,
            String losses,
            Map<String, String> frozen) {
        /// The state that a store is in; `losses` led to it, nothing may be pending.
        static State of(
                long step,
                Map<String, String> identity,
                Map<String, String> data,
                String losses,
                WeightStore store,
                Set<String> frozen) {
            return new State(step, identity, data, Digest.of(store, losses), losses, checksums(store, frozen));
        }

        /// Refuses a digest that is not the one of this state.
        void checkDigest(String found) {
            if (!found.equals(digest)) {
                throw new IngotException("it does not have the digest it was written with");
            }
        }

        /// Refuses a frozen weight whose checksum is not the one it had.
        void checkFrozen(String name, String checksum) {
            if (!checksum.equals(frozen.get(name))) {
                throw new BaseChanged("checkpoint: the frozen weight " + name + " is not what it was when the run saved"
                        + " its state: its file has changed; put it back as it was, or start anew in another folder");
            }
        }

        String toJson() {
            ObjectNode json = JSON.createObjectNode();
            json.put("step", step);
            ObjectNode keys = json.putObject("identity");
            identity.forEach(keys::put);
            ObjectNode fingerprints = json.putObject("data");
            data.forEach(fingerprints::put);
            json.put("digest", digest);
            json.put("losses", losses);
            if (!frozen.isEmpty()) {
                ObjectNode checksums = json.putObject("frozen");
                frozen.forEach(checksums::put);
            }
            return JSON.writerWithDefaultPrettyPrinter().writeValueAsString(json);
        }

        static State of(JsonNode json) {
            return new State(
                    json.required("step").asLong(),
                    texts(json.required("identity")),
                    texts(json.required("data")),
                    json.required("digest").asString(),
                    json.required("losses").asString(),
                    texts(json.path("frozen")));
        }

        private static Map<String, String> texts(JsonNode json) {
            Map<String, String> texts = new LinkedHashMap<>();
            json.properties().forEach(e -> texts.put(e.getKey(), e.getValue().asString()));
            return texts;
        }
    }

    /// CRC-32C of weights, by name.
    private static Map<String, String> checksums(WeightStore store, Set<String> names) {
        Map<String, String> checksums = new TreeMap<>();
        for (String name : names) {
            CRC32C crc = new CRC32C();
            store.read(Key.weight(name), memory -> {
                for (long at = 0; at < memory.byteSize(); at += 1 << 20) {
                    crc.update(memory.asSlice(at, Math.min(1 << 20, memory.byteSize() - at))
                            .asByteBuffer());
                }
            });
            checksums.put(name, Long.toHexString(crc.getValue()));
        }
        return checksums;
    }

    /// Saves the store, which has nothing pending, but for the weights that are frozen.
    static void save(Path folder, State state, WeightStore store) {
        save(folder, state, store, Progress.NONE);
    }

    /// The same with the bytes that are written.
    static void save(Path folder, State state, WeightStore store, Progress progress) {
        SequencedMap<String, Key> keys = new LinkedHashMap<>();
        SequencedMap<String, Type> types = new LinkedHashMap<>();
        for (Key key : kept(store, state.frozen().keySet())) {
            keys.put(key.toString(), key);
            types.put(key.toString(), store.type(key));
        }
        long total = types.values().stream().mapToLong(Type::bytes).sum();
        AtomicLong written = new AtomicLong();
        Path partial = folder.resolve("partial");
        try {
            delete(partial);
            Files.createDirectories(partial);
            Safetensors.write(
                    partial.resolve("state.safetensors"),
                    Map.of("step", Long.toString(state.step())),
                    types,
                    (name, reader) -> {
                        Key key = Objects.requireNonNull(keys.get(name), name);
                        store.read(key, piece -> {
                            reader.accept(piece);
                            progress.at(written.addAndGet(piece.byteSize()), total);
                        });
                    });
            Durable.write(partial.resolve("state.json"), state.toJson());
            Path done = folder.resolve("step-" + state.step());
            delete(done);
            Files.move(partial, done, StandardCopyOption.ATOMIC_MOVE);
            Durable.flush(folder);
            List<Path> all = list(folder);
            for (Path old : all.subList(KEPT < all.size() ? KEPT : all.size(), all.size())) {
                delete(old);
            }
        } catch (IOException | UncheckedIOException | IngotException e) {
            throw new IngotException(
                    "checkpoint: cannot write step " + state.step() + " to " + folder + ": " + e.getMessage()
                            + "; the checkpoint before it, if any, is untouched. Free some space or choose another run"
                            + " folder",
                    e);
        }
    }

    /// Loads the newest usable checkpoint into the store, or null if there is none. Unusable ones are reported and
    /// passed over. Frozen weights are in the store already; they must be what they were.
    static @Nullable State load(Path folder, WeightStore store, Consumer<String> warn) {
        Found found = find(
                folder,
                (state, arrays) -> {
                    checksums(store, state.frozen().keySet()).forEach(state::checkFrozen);
                    fill(arrays, store, state.frozen().keySet());
                    state.checkDigest(Digest.of(store, state.losses()));
                },
                warn);
        return found == null ? null : found.state();
    }

    /// A checkpoint that can be used.
    ///
    /// @param arrays the file with its arrays
    record Found(State state, Path arrays) {}

    /// Throws an `IngotException` if a checkpoint cannot be used.
    interface Check {
        void check(State state, Safetensors arrays);
    }

    /// A frozen weight is not what it was: no older checkpoint is better.
    private static final class BaseChanged extends IngotException {
        private static final long serialVersionUID = 1;

        BaseChanged(String message) {
            super(message);
        }
    }

    /// The newest checkpoint that passes a check, or null if there is none at all.
    static @Nullable Found find(Path folder, Check check, Consumer<String> warn) {
        List<String> broken = new ArrayList<>();
        for (Path candidate : list(folder)) {
            Path file = candidate.resolve("state.safetensors");
            try {
                State state = read(candidate);
                try (Safetensors arrays = Safetensors.open(file)) {
                    check.check(state, arrays);
                }
                broken.forEach(text -> warn.accept("checkpoint: " + text + "; an older one is used"));
                return new Found(state, file);
            } catch (BaseChanged e) {
                throw e;
            } catch (IngotException e) {
                broken.add(candidate + ": " + e.getMessage());
            }
        }
        if (!broken.isEmpty()) {
            throw new IngotException("checkpoint: no usable checkpoint in " + folder + ": " + String.join("; ", broken)
                    + ". Delete the folder to start anew");
        }
        return null;
    }

    /// The description of the newest checkpoint that has a readable one, or null.
    static @Nullable State newest(Path folder) {
        for (Path candidate : list(folder)) {
            try {
                return read(candidate);
            } catch (IngotException e) {
                // `load` reports it, if an older one can be used instead
            }
        }
        return null;
    }

    private static State read(Path candidate) {
        Path file = candidate.resolve("state.json");
        try {
            return State.of(JSON.readTree(Files.readString(file)));
        } catch (IOException | JacksonException e) {
            throw new IngotException("cannot read " + file + ": " + e.getMessage(), e);
        }
    }

    private static void fill(Safetensors arrays, WeightStore store, Set<String> frozen) {
        for (Key key : kept(store, frozen)) {
            checkType(arrays, key, store.type(key));
            try {
                arrays.readInto(key.toString(), store.pin(key));
            } finally {
                store.release(key, true);
            }
        }
    }

    /// Refuses an array that is missing or of another type.
    static void checkType(Safetensors arrays, Key key, Type expected) {
        Type found = arrays.tensors().get(key.toString());
        if (!expected.equals(found)) {
            throw new IngotException("it holds " + key + " as " + found + ", expected " + expected);
        }
    }

    /// Gradients are not kept: nothing is pending in a checkpoint. Nor are frozen weights: their files have them.
    private static List<Key> kept(WeightStore store, Set<String> frozen) {
        return store.keys().stream()
                .filter(key -> !key.part().equals(Key.GRADIENT) && !frozen.contains(key.tensor()))
                .toList();
    }

    /// Complete checkpoints, newest first.
    private static List<Path> list(Path folder) {
        if (!Files.isDirectory(folder)) {
            return List.of();
        }
        try (Stream<Path> entries = Files.list(folder)) {
            return entries.filter(path -> path.getFileName().toString().matches("step-\\d+"))
                    .sorted(Comparator.comparingLong(Checkpoint::number).reversed())
                    .toList();
        } catch (IOException e) {
            throw new IngotException("checkpoint: cannot list " + folder + ": " + e.getMessage(), e);
        }
    }

    private static long number(Path checkpoint) {
        return Long.parseLong(checkpoint.getFileName().toString().substring("step-".length()));
    }

    private static void delete(Path folder) throws IOException {
        if (!Files.exists(folder)) {
            return;
        }
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path path : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }
}
