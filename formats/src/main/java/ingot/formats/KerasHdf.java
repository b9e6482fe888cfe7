package ingot.formats;

import ingot.ir.DType;
import ingot.ir.IngotException;
import ingot.ir.Shape;
import ingot.ir.Type;
import io.jhdf.HdfFile;
import io.jhdf.api.Attribute;
import io.jhdf.api.Dataset;
import io.jhdf.api.Group;
import io.jhdf.api.Node;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// The tensors of an HDF5 file, in the layout of `.keras` (groups as the model nests) or of `.h5` (groups with lists of
/// names).
final class KerasHdf implements KerasTensors {
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;
    /// Deflate makes nothing smaller than this.
    private static final long MOST_PACKED = 1100;
    private static final int DEEPEST = 64;

    private final Path shown; // the file the user knows
    private final @Nullable Path temporary;
    private final HdfFile file;
    private final SequencedMap<String, Dataset> datasets = new LinkedHashMap<>();
    private final SequencedMap<String, Type> types = new LinkedHashMap<>();
    private final SequencedMap<String, List<String>> layers = new LinkedHashMap<>(); // of `.h5`

    private KerasHdf(Path shown, Path path, boolean temporary) {
        this.shown = shown;
        this.temporary = temporary ? path : null;
        try {
            file = new HdfFile(path);
        } catch (RuntimeException | OutOfMemoryError e) {
            discard();
            throw damaged(e);
        }
    }

    /// The weights of a `.keras` file, which have been copied to `path` and are deleted when this is closed.
    static KerasHdf nested(Path shown, Path path) {
        KerasHdf hdf = new KerasHdf(shown, path, true);
        return hdf.opened(() -> {
            hdf.walk("", hdf.file, 0);
            return hdf;
        });
    }

    /// A file that Keras 2 wrote.
    static KerasHdf listed(Path path) {
        KerasHdf hdf = new KerasHdf(path, path, false);
        return hdf.opened(() -> {
            Group weights = hdf.file.getChildren().get("model_weights") instanceof Group inner ? inner : hdf.file;
            for (String layer : hdf.texts(weights, "layer_names")) {
                if (!(weights.getChild(layer) instanceof Group group)) {
                    throw new IngotException("keras: " + path + " has no group for the layer " + layer);
                }
                List<String> names = new ArrayList<>();
                for (String name : hdf.texts(group, "weight_names")) {
                    if (!(group.getByPath(name) instanceof Dataset dataset)) {
                        throw new IngotException("keras: " + path + " has no tensor " + name + " of layer " + layer);
                    }
                    String full = layer + "/" + name;
                    hdf.add(full, dataset);
                    names.add(full);
                }
                hdf.layers.put(layer, names);
            }
            return hdf;
        });
    }

    private KerasHdf opened(Supplier<KerasHdf> body) {
        try {
            return body.get();
        } catch (IngotException e) {
            close();
            throw e;
        } catch (RuntimeException | OutOfMemoryError e) {
            close();
            throw damaged(e);
        }
    }

    /// The library takes memory for whatever size a damaged file declares: what is more than there is, is damage too.
    private IngotException damaged(Throwable e) {
        return new IngotException(
                "keras: " + shown + " cannot be read as HDF5: " + e.getMessage() + "; the file is truncated or damaged",
                e);
    }

    private void walk(String path, Group group, int depth) {
        if (depth > DEEPEST) {
            throw new IngotException("keras: " + shown + " nests groups deeper than " + DEEPEST);
        }
        for (Map.Entry<String, Node> entry : group.getChildren().entrySet()) {
            String name = path.isEmpty() ? entry.getKey() : path + "/" + entry.getKey();
            switch (entry.getValue()) {
                case Group inner -> walk(name, inner, depth + 1);
                case Dataset dataset -> add(name, dataset);
                default -> throw new IngotException("keras: " + shown + ": " + name + " is neither group nor tensor");
            }
        }
    }

    private void add(String name, Dataset dataset) {
        int[] dims = dataset.isScalar() ? new int[0] : dataset.getDimensions();
        Type type = new Type(DType.F32, Shape.of(dims));
        try {
            long most = Math.multiplyExact(Files.size(temporary == null ? shown : temporary), MOST_PACKED);
            if (dataset.getSizeInBytes() > most) {
                throw new IngotException("keras: " + shown + ": " + name + " would have " + dataset.getSizeInBytes()
                        + " bytes, more than the file can hold");
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        datasets.put(name, dataset);
        types.put(name, type);
    }

    /// A text at the root of the file, such as `model_config`; null if there is none.
    @Nullable
    String text(String name) {
        try {
            Attribute attribute = file.getAttribute(name);
            return attribute == null ? null : text(attribute.getData());
        } catch (RuntimeException | OutOfMemoryError e) {
            throw damaged(e);
        }
    }

    private static @Nullable String text(Object data) {
        return switch (data) {
            case String text -> text;
            case String[] texts when texts.length == 1 -> texts[0];
            default -> null;
        };
    }

    /// A list of names; long ones are cut in several: `weight_names0`, `weight_names1`.
    private List<String> texts(Group group, String name) {
        List<String> all = new ArrayList<>();
        Attribute whole = group.getAttribute(name);
        if (whole != null) {
            all.addAll(list(whole));
            return all;
        }
        for (int i = 0; ; i++) {
            Attribute part = group.getAttribute(name + i);
            if (part == null) {
                break;
            }
            all.addAll(list(part));
        }
        if (all.isEmpty() && name.equals("layer_names")) {
            throw new IngotException("keras: " + shown + " has no layer_names: no file of Keras");
        }
        return all;
    }

    private static List<String> list(Attribute attribute) {
        return attribute.isEmpty()
                ? List.of()
                : switch (attribute.getData()) {
                    case String text -> List.of(text);
                    case String[] texts -> List.of(texts);
                    default -> List.of();
                };
    }

    @Override
    public SequencedMap<String, Type> types() {
        return types;
    }

    @Override
    public Map<String, String> match(Collection<KerasSlot> slots) {
        return layers.isEmpty() ? matchPaths(slots) : matchLists(slots);
    }

    /// By the class of the layer, or by its name, whichever the file has.
    private Map<String, String> matchPaths(Collection<KerasSlot> slots) {
        Map<String, String> byClass = paths(slots, KerasSlot::byClass);
        Map<String, String> byName = paths(slots, KerasSlot::byName);
        return byClass.size() >= byName.size() ? byClass : byName;
    }

    private Map<String, String> paths(Collection<KerasSlot> slots, Function<KerasSlot, String> path) {
        Map<String, String> found = new LinkedHashMap<>();
        for (KerasSlot slot : slots) {
            String plain = path.apply(slot);
            String early = plain.replaceAll("(^|/)layers/", "$1_layer_checkpoint_dependencies/"); // TensorFlow 2.12
            String hidden = plain.replaceAll("/(\\w+_dense)/", "/_$1/");
            for (String each : List.of(plain, early, hidden)) {
                if (datasets.containsKey(each)) {
                    found.putIfAbsent(slot.name(), each);
                }
            }
        }
        return found;
    }

    /// The tensors of a layer come in the order of its weights, those that are not trained last.
    private Map<String, String> matchLists(Collection<KerasSlot> slots) {
        Map<String, List<KerasSlot>> byLayer = new LinkedHashMap<>();
        for (boolean trainable : new boolean[] {true, false}) {
            for (KerasSlot slot : slots) {
                if (slot.trainable() == trainable) {
                    byLayer.computeIfAbsent(slot.layer(), l -> new ArrayList<>())
                            .add(slot);
                }
            }
        }
        Map<String, String> found = new LinkedHashMap<>();
        byLayer.forEach((layer, wanted) -> {
            List<String> names = layers.getOrDefault(layer, List.of());
            if (names.size() != wanted.size()) {
                throw new IngotException("keras: " + shown + " has " + names.size() + " tensors for the layer " + layer
                        + ", its configuration asks for " + wanted.size() + ": "
                        + Listing.of(wanted.stream().map(KerasSlot::name).toList()));
            }
            for (int i = 0; i < names.size(); i++) {
                found.put(wanted.get(i).name(), names.get(i));
            }
        });
        return found;
    }

    @Override
    public void read(String name, MemorySegment target) {
        Dataset dataset = datasets.get(name);
        if (dataset == null) {
            throw new IngotException("keras: " + shown + " has no tensor " + name);
        }
        Object data;
        try {
            data = dataset.isScalar() ? dataset.getData() : dataset.getDataFlat();
        } catch (RuntimeException | OutOfMemoryError e) {
            throw new IngotException(
                    "keras: " + shown + ": " + name + " cannot be read: " + e.getMessage()
                            + "; the file is truncated or damaged",
                    e);
        }
        switch (data) {
            case float[] all -> MemorySegment.copy(all, 0, target, FLOAT, 0, all.length);
            case double[] all -> {
                for (int i = 0; i < all.length; i++) {
                    target.set(FLOAT, 4L * i, (float) all[i]);
                }
            }
            case Number number -> target.set(FLOAT, 0, number.floatValue());
            default ->
                throw new IngotException("keras: " + shown + ": " + name + " is of the type "
                        + dataset.getJavaType().getSimpleName() + ", expected floating numbers");
        }
    }

    @Override
    public void close() {
        file.close();
        discard();
    }

    private void discard() {
        if (temporary != null) {
            try {
                Files.deleteIfExists(temporary);
            } catch (IOException e) {
                temporary.toFile().deleteOnExit();
            }
        }
    }
}
