package ingot.store;

import ingot.ir.IngotException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import tools.jackson.databind.JsonNode;

/// Which tensors lie in which of the files beside an index: the `weight_map` of a Hugging Face folder with shards.
public final class ShardIndex {
    private ShardIndex() {}

    /// Names of tensors by the name of their file; refuses files that are not beside the index.
    public static SequencedMap<String, List<String>> shards(Path index, JsonNode weightMap) {
        SequencedMap<String, List<String>> shards = new LinkedHashMap<>();
        for (Map.Entry<String, JsonNode> entry : weightMap.properties()) {
            String shard = entry.getValue().asString("");
            boolean plain = !shard.isEmpty() && !shard.contains("/") && !shard.contains("\\") && !shard.startsWith(".");
            if (!entry.getValue().isString() || !plain || shard.indexOf('\0') >= 0) {
                throw new IngotException(index + ": weight_map." + entry.getKey()
                        + " expected the name of a file beside the index, got " + entry.getValue());
            }
            shards.computeIfAbsent(shard, _ -> new ArrayList<>()).add(entry.getKey());
        }
        return shards;
    }
}
