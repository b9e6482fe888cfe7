package ingot.formats;

import ingot.ir.DType;
import ingot.ir.IngotException;
import ingot.ir.Shape;
import ingot.ir.Type;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/// The tensors of a TF.js model: groups of them lie one after the other in shards beside `model.json`, some as whole
/// numbers q with x = q·scale + min, or as halves.
final class TfJsTensors implements KerasTensors {
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

    /// Where a tensor lies: `offset` into the shards of its group.
    private record Entry(Type type, String kind, double scale, double min, List<Path> shards, long offset) {
        int width() {
            return TfJsTensors.width(kind);
        }
    }

    private final Path path;
    private final SequencedMap<String, Entry> entries = new LinkedHashMap<>();
    private final SequencedMap<String, Type> types = new LinkedHashMap<>();

    private TfJsTensors(Path path) {
        this.path = path;
    }

    static TfJsTensors open(Path path, JsonNode manifest) {
        TfJsTensors tensors = new TfJsTensors(path);
        if (!manifest.isArray()) {
            throw tensors.wrong("has no weightsManifest");
        }
        manifest.forEach(tensors::group);
        return tensors;
    }

    private IngotException wrong(String what) {
        return new IngotException("tfjs: " + path + " " + what);
    }

    private static int width(String kind) {
        return switch (kind) {
            case "float32", "int32" -> 4;
            case "float16", "uint16" -> 2;
            case "uint8", "bool" -> 1;
            default -> 0;
        };
    }

    private void group(JsonNode group) {
        List<Path> shards = new ArrayList<>();
        long size = 0;
        for (JsonNode each : group.path("paths")) {
            Path shard = shard(each.asString(""));
            try {
                size += Files.size(shard);
            } catch (IOException e) {
                throw new IngotException("tfjs: " + path + ": the shard " + shard + " is missing", e);
            }
            shards.add(shard);
        }
        long offset = 0;
        for (JsonNode each : group.path("weights")) {
            String name = each.path("name").asString("");
            Entry entry = entry(name, each, shards, offset);
            long bytes = Math.multiplyExact(entry.type().shape().elements(), entry.width());
            if (bytes > size - offset) {
                throw wrong("declares " + name + " " + entry.type() + " at byte " + offset
                        + " of its shards, which have " + size + "; a shard is truncated or of another model");
            }
            offset += bytes;
            if (entries.put(name, entry) != null) {
                throw wrong("has two tensors called " + name);
            }
            types.put(name, entry.type());
        }
        if (offset != size) {
            throw wrong("declares " + offset + " bytes of tensors in " + shards + ", which have " + size);
        }
    }

    /// A file in the folder of the model, and nowhere else.
    private Path shard(String name) {
        Path folder = Objects.requireNonNull(path.toAbsolutePath().getParent()).normalize();
        Path shard;
        try {
            shard = folder.resolve(name).normalize();
        } catch (java.nio.file.InvalidPathException e) {
            throw new IngotException("tfjs: " + path + " names the shard '" + name + "', which is no path", e);
        }
        if (name.isEmpty() || Path.of(name).isAbsolute() || !shard.startsWith(folder) || shard.equals(folder)) {
            throw wrong("names the shard '" + name + "', which lies outside of its folder");
        }
        return shard;
    }

    private Entry entry(String name, JsonNode node, List<Path> shards, long offset) {
        List<Integer> dims = new ArrayList<>();
        for (JsonNode dim : node.path("shape")) {
            if (!dim.isInt() || dim.asInt() < 0) {
                throw wrong("has the shape " + node.path("shape") + " at " + name);
            }
            dims.add(dim.asInt());
        }
        String dtype = node.path("dtype").asString("");
        if (!List.of("float32", "int32", "bool", "float16").contains(dtype)) {
            throw wrong("has " + name + " of the dtype " + dtype + "; float32, float16, int32 and bool are known");
        }
        JsonNode quantization = node.path("quantization");
        String kind = quantization.isObject() ? quantization.path("dtype").asString("") : dtype;
        boolean affine = quantization.isObject() && List.of("uint8", "uint16").contains(kind);
        if (quantization.isObject() && !affine && !kind.equals("float16")) {
            throw wrong("has " + name + " quantised as " + kind + "; uint8, uint16 and float16 are known");
        }
        double scale = quantization.path("scale").asDouble(Double.NaN);
        double min = quantization.path("min").asDouble(Double.NaN);
        if (affine && !(Double.isFinite(scale) && Double.isFinite(min))) {
            throw wrong("quantises " + name + " without scale and min");
        }
        Type type;
        try {
            type = new Type(DType.F32, Shape.of(dims.stream().mapToInt(i -> i).toArray()));
            Math.multiplyExact(type.shape().elements(), 8L);
        } catch (IllegalArgumentException | ArithmeticException e) {
            throw new IngotException("tfjs: " + path + ": " + name + " has the shape " + dims + ", too large", e);
        }
        return new Entry(type, kind, affine ? scale : 1, affine ? min : 0, shards, offset);
    }

    @Override
    public SequencedMap<String, Type> types() {
        return types;
    }

    /// A tensor is named by its layer and weight, with the names of what is around it or without.
    @Override
    public Map<String, String> match(Collection<KerasSlot> slots) {
        Map<String, String> found = new LinkedHashMap<>();
        for (KerasSlot slot : slots) {
            String name = find(slot);
            if (name != null) {
                found.put(slot.name(), name);
            }
        }
        return found;
    }

    private @Nullable String find(KerasSlot slot) {
        if (entries.containsKey(slot.name())) {
            return slot.name();
        }
        List<String> parts = Arrays.asList(slot.name().split("/"));
        for (int from = 1; from < parts.size() - 1; from++) {
            String shorter = String.join("/", parts.subList(from, parts.size()));
            if (entries.containsKey(shorter)) {
                return shorter;
            }
        }
        String weight = parts.getLast();
        String layer = parts.get(parts.size() - 2);
        List<String> candidates = entries.keySet().stream()
                .filter(name -> {
                    List<String> words = Arrays.asList(name.split("/"));
                    return words.size() > 1
                            && words.subList(0, words.size() - 1).contains(layer)
                            && (words.getLast().equals(weight)
                                    || (weight.equals("kernel")
                                            && words.getLast().equals("depthwise_kernel")));
                })
                .toList();
        return candidates.size() == 1 ? candidates.getFirst() : null;
    }

    @Override
    public void read(String name, MemorySegment target) {
        Entry entry = entries.get(name);
        if (entry == null) {
            throw wrong("has no tensor " + name);
        }
        int count = Math.toIntExact(entry.type().shape().elements());
        ByteBuffer bytes =
                ByteBuffer.allocate(Math.multiplyExact(count, entry.width())).order(ByteOrder.LITTLE_ENDIAN);
        fill(entry, bytes);
        bytes.flip();
        for (int i = 0; i < count; i++) {
            float value = switch (entry.kind()) {
                case "float32" -> bytes.getFloat();
                case "int32" -> bytes.getInt();
                case "float16" -> Float.float16ToFloat(bytes.getShort());
                // the product and the sum are rounded once, as numbers of JavaScript are
                case "uint16" -> (float) ((bytes.getShort() & 0xFFFF) * entry.scale() + entry.min());
                default -> (float) ((bytes.get() & 0xFF) * entry.scale() + entry.min());
            };
            target.set(FLOAT, 4L * i, value);
        }
    }

    /// Reads across the borders of shards.
    private void fill(Entry entry, ByteBuffer bytes) {
        long before = 0;
        try {
            for (Path shard : entry.shards()) {
                long size = Files.size(shard);
                long at = entry.offset() + bytes.position() - before;
                if (bytes.hasRemaining() && at < size) {
                    try (FileChannel channel = FileChannel.open(shard)) {
                        while (bytes.hasRemaining() && channel.read(bytes, at) > 0) {
                            at = entry.offset() + bytes.position() - before;
                        }
                    }
                }
                before += size;
            }
        } catch (IOException e) {
            throw new IngotException("tfjs: " + path + ": a shard cannot be read: " + e.getMessage(), e);
        }
        if (bytes.hasRemaining()) {
            throw wrong("has a shard that has become shorter");
        }
    }

    @Override
    public void close() {
        // shards are opened where they are read
    }
}
