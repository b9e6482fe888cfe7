package ingot.formats;

import ingot.ir.IngotException;
import ingot.ir.Type;
import ingot.store.ShardIndex;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.function.Function;
import tools.jackson.databind.node.ObjectNode;

/// The weights of a folder: one file, or several with an index that says which tensor is in which.
final class WeightFiles implements WeightSource {
    static final String SAFETENSORS = "model.safetensors";
    static final String SAFETENSORS_INDEX = "model.safetensors.index.json";
    static final String PICKLED = "pytorch_model.bin";
    static final String PICKLED_INDEX = "pytorch_model.bin.index.json";

    private final List<WeightSource> files;
    private final Map<String, WeightSource> owners = new LinkedHashMap<>();
    private final SequencedMap<String, Type> types = new LinkedHashMap<>();

    private WeightFiles(List<WeightSource> files) {
        this.files = files;
    }

    /// Opens what there is, in this order: safetensors before PyTorch's own, one file before several.
    static WeightSource open(Path folder) {
        Path single = folder.resolve(SAFETENSORS);
        if (Files.exists(single)) {
            return new SafetensorsWeights(single);
        }
        Path index = folder.resolve(SAFETENSORS_INDEX);
        if (Files.exists(index)) {
            return sharded(index, SafetensorsWeights::new);
        }
        Path pickled = folder.resolve(PICKLED);
        if (Files.exists(pickled)) {
            return StateDict.open(pickled);
        }
        Path pickledIndex = folder.resolve(PICKLED_INDEX);
        if (Files.exists(pickledIndex)) {
            return sharded(pickledIndex, StateDict::open);
        }
        throw new IngotException(folder + ": no weights in it; expected model.safetensors,"
                + " model.safetensors.index.json with its shards, pytorch_model.bin or pytorch_model.bin.index.json");
    }

    /// The shards of an index, all of which are there.
    static List<Path> shardFiles(Path index) {
        return present(index).keySet().stream().map(index::resolveSibling).toList();
    }

    private static SequencedMap<String, List<String>> present(Path index) {
        SequencedMap<String, List<String>> names = shards(index);
        List<String> missing = names.keySet().stream()
                .filter(shard -> !Files.isRegularFile(index.resolveSibling(shard)))
                .toList();
        if (!missing.isEmpty()) {
            throw new IngotException(index + ": " + missing.size() + " of " + names.size() + " shards are missing: "
                    + Listing.of(missing) + "; download the model again, or copy them into the folder");
        }
        return names;
    }

    private static WeightFiles sharded(Path index, Function<Path, WeightSource> open) {
        SequencedMap<String, List<String>> names = present(index);
        WeightFiles all = new WeightFiles(new ArrayList<>());
        try {
            names.forEach((shard, tensors) -> {
                WeightSource file = open.apply(index.resolveSibling(shard));
                all.files.add(file);
                all.add(file, tensors, index, shard);
            });
            return all;
        } catch (RuntimeException e) {
            all.close();
            throw e;
        }
    }

    private void add(WeightSource file, List<String> tensors, Path index, String shard) {
        Map<String, Type> found = file.types();
        List<String> absent =
                tensors.stream().filter(name -> !found.containsKey(name)).toList();
        if (!absent.isEmpty()) {
            throw new IngotException(index + ": " + shard + " should have " + Listing.of(absent)
                    + ", but has not; the shards and the index do not belong together");
        }
        for (String name : tensors) {
            types.put(name, found.get(name));
            owners.put(name, file);
        }
    }

    /// Names by shard, as the index says.
    private static SequencedMap<String, List<String>> shards(Path index) {
        ObjectNode json = ModelConfig.object(index);
        if (!(json.path("weight_map") instanceof ObjectNode map)) {
            throw new IngotException(index + ": weight_map expected an object from tensors to files, got "
                    + (json.has("weight_map") ? json.path("weight_map").getNodeType() : "nothing"));
        }
        return ShardIndex.shards(index, map);
    }

    @Override
    public SequencedMap<String, Type> types() {
        return new LinkedHashMap<>(types);
    }

    @Override
    public SequencedMap<String, Type> stored() {
        SequencedMap<String, Type> stored = new LinkedHashMap<>();
        owners.forEach((name, owner) -> stored.put(name, owner.stored().getOrDefault(name, types.get(name))));
        return stored;
    }

    @Override
    public void read(String name, MemorySegment target) {
        WeightSource owner = owners.get(name);
        if (owner == null) {
            throw new IngotException("weights: no tensor " + name + " among " + owners.size());
        }
        owner.read(name, target);
    }

    @Override
    public void close() {
        files.forEach(WeightSource::close);
    }
}
