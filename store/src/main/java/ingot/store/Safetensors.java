package ingot.store;

import ingot.ir.DType;
import ingot.ir.IngotException;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/// A file of named tensors: little-endian u64 header length, JSON header, then the tensors' bytes, row-major.
///
/// Format: the safetensors README, https://github.com/huggingface/safetensors. The whole header is checked on opening:
/// a wrong file is
/// refused before any tensor is read. Not safe for use by several threads at once.
public final class Safetensors implements AutoCloseable {
    private static final JsonMapper JSON = JsonMapper.builder().build();
    private static final long MAX_HEADER = 100L << 20;
    private static final int CHUNK = 1 << 20;

    private final Path path;
    private final FileChannel channel;
    private final SequencedMap<String, Entry> entries;
    private final SequencedMap<String, String> metadata;
    private final String fingerprint;

    private record Entry(Type type, long offset) {}

    private Safetensors(
            Path path,
            FileChannel channel,
            SequencedMap<String, Entry> entries,
            SequencedMap<String, String> metadata,
            String fingerprint) {
        this.path = path;
        this.channel = channel;
        this.entries = entries;
        this.metadata = metadata;
        this.fingerprint = fingerprint;
    }

    public static Safetensors open(Path path) {
        if (!Files.isRegularFile(path)) {
            throw new IngotException("safetensors: no such file: " + path);
        }
        FileChannel channel = null;
        try {
            channel = FileChannel.open(path, StandardOpenOption.READ);
            Safetensors file = parse(path, channel);
            channel = null;
            return file;
        } catch (IOException e) {
            throw new IngotException("safetensors: cannot read " + path + ": " + reason(e), e);
        } finally {
            closeQuietly(channel);
        }
    }

    /// Types by name, in the order of their bytes in the file.
    public SequencedMap<String, Type> tensors() {
        SequencedMap<String, Type> types = new LinkedHashMap<>();
        entries.forEach((name, entry) -> types.put(name, entry.type()));
        return types;
    }

    /// The strings of `__metadata__`.
    public Map<String, String> metadata() {
        return metadata;
    }

    Path path() {
        return path;
    }

    /// The size of the file and a hash of its header, which says what lies where.
    public String fingerprint() {
        return fingerprint;
    }

    /// Where the bytes of a tensor begin in the file.
    long offset(String name) {
        return entry(name).offset();
    }

    public Tensor read(String name) {
        Tensor tensor = Tensor.zeros(entry(name).type());
        readInto(name, tensor.data());
        return tensor;
    }

    /// Reads a tensor's bytes; `target` has exactly its size.
    public void readInto(String name, MemorySegment target) {
        Entry entry = entry(name);
        if (target.byteSize() != entry.type().bytes()) {
            throw new IllegalArgumentException(
                    name + ": " + entry.type().bytes() + " bytes, target has " + target.byteSize());
        }
        readInto(name, 0, target);
    }

    /// Reads as many bytes of a tensor as `target` has, from byte `start` of it on.
    public void readInto(String name, long start, MemorySegment target) {
        Entry entry = entry(name);
        if (start < 0 || target.byteSize() > entry.type().bytes() - start) {
            throw new IllegalArgumentException(name + ": " + entry.type().bytes() + " bytes, " + target.byteSize()
                    + " from byte " + start + " asked for");
        }
        try {
            transfer(channel, entry.offset() + start, target, false);
        } catch (IOException e) {
            throw new IngotException("safetensors: cannot read " + name + " from " + path + ": " + reason(e), e);
        }
    }

    /// Gives the bytes of tensors, one at a time.
    @FunctionalInterface
    public interface Contents {
        /// Hands the bytes of a tensor to `reader` in order, in any number of pieces, which need not stay after that.
        void read(String name, WeightStore.Reader<IOException> reader) throws IOException;
    }

    /// Writes a file atomically: a reader sees the old file or the whole new one, also after a power cut.
    public static void write(Path path, Map<String, String> metadata, SequencedMap<String, Tensor> tensors) {
        SequencedMap<String, Type> types = new LinkedHashMap<>();
        tensors.forEach((name, tensor) -> types.put(name, tensor.type()));
        write(path, metadata, types, (name, reader) -> {
            Tensor tensor = tensors.get(name);
            if (tensor != null) {
                reader.accept(tensor.data());
            }
        });
    }

    /// The same for tensors that are not in memory together.
    public static void write(
            Path path, Map<String, String> metadata, SequencedMap<String, Type> tensors, Contents contents) {
        ObjectNode header = JSON.createObjectNode();
        if (!metadata.isEmpty()) {
            ObjectNode node = header.putObject("__metadata__");
            metadata.forEach(node::put);
        }
        long offset = 0;
        for (Map.Entry<String, Type> entry : tensors.entrySet()) {
            Type type = entry.getValue();
            ObjectNode node = header.putObject(entry.getKey());
            node.put("dtype", type.dtype().name());
            var shape = node.putArray("shape");
            for (int dim : type.shape().dims()) {
                shape.add(dim);
            }
            node.putArray("data_offsets").add(offset).add(offset + type.bytes());
            offset += type.bytes();
        }
        byte[] json = JSON.writeValueAsBytes(header);
        int padded = (json.length + 7) & ~7;
        ByteBuffer head = ByteBuffer.allocate(8 + padded).order(ByteOrder.LITTLE_ENDIAN);
        head.putLong(padded).put(json);
        while (head.hasRemaining()) {
            head.put((byte) ' ');
        }
        Path partial = path.resolveSibling(path.getFileName() + ".partial");
        try {
            try (FileChannel out = FileChannel.open(
                    partial,
                    StandardOpenOption.CREATE,
                    StandardOpenOption.WRITE,
                    StandardOpenOption.TRUNCATE_EXISTING)) {
                transfer(out, 0, MemorySegment.ofArray(head.array()), true);
                long at = head.capacity();
                for (Map.Entry<String, Type> tensor : tensors.entrySet()) {
                    Body body = new Body(out, at, tensor.getKey(), tensor.getValue());
                    contents.read(tensor.getKey(), body);
                    at = body.end();
                }
                out.force(true);
            }
            Files.move(partial, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
            Durable.flushFolderOf(path);
        } catch (IOException e) {
            try {
                Files.deleteIfExists(partial);
            } catch (IOException suppressed) {
                e.addSuppressed(suppressed);
            }
            throw new IngotException(
                    "safetensors: cannot write " + path + " (" + (offset + head.capacity()) + " bytes): " + reason(e)
                            + "; the previous file, if any, is untouched",
                    e);
        }
    }

    /// The bytes of a tensor on their way into a file.
    private static final class Body implements WeightStore.Reader<IOException> {
        private final FileChannel out;
        private final String name;
        private final Type type;
        private final long end;
        private long at;

        Body(FileChannel out, long start, String name, Type type) {
            this.out = out;
            this.name = name;
            this.type = type;
            at = start;
            end = start + type.bytes();
        }

        @Override
        public void accept(MemorySegment piece) throws IOException {
            if (piece.byteSize() > end - at) {
                throw wrongSize(piece.byteSize());
            }
            transfer(out, at, piece, true);
            at += piece.byteSize();
        }

        /// The position after the tensor, all of whose bytes must have come.
        long end() {
            if (at != end) {
                throw wrongSize(0);
            }
            return end;
        }

        private IllegalArgumentException wrongSize(long more) {
            return new IllegalArgumentException(
                    name + ": " + type.bytes() + " bytes expected, got " + (type.bytes() - (end - at) + more));
        }
    }

    @Override
    public void close() {
        closeQuietly(channel);
    }

    private Entry entry(String name) {
        Entry entry = entries.get(name);
        if (entry == null) {
            throw new IngotException("safetensors: " + path + " has no tensor " + name + "; it has " + entries.size()
                    + (entries.isEmpty()
                            ? ""
                            : ", the first is " + entries.firstEntry().getKey()));
        }
        return entry;
    }

    private static Safetensors parse(Path path, FileChannel channel) throws IOException {
        long size = channel.size();
        if (size < 8) {
            throw wrong(path, "it has " + size + " bytes, a header needs at least 8");
        }
        ByteBuffer length = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
        transfer(channel, 0, MemorySegment.ofBuffer(length), false);
        long headerBytes = length.getLong(0);
        if (headerBytes < 2 || headerBytes > MAX_HEADER || headerBytes > size - 8) {
            throw wrong(
                    path,
                    "its header would have " + Long.toUnsignedString(headerBytes) + " bytes, the file has " + size
                            + "; it is truncated or no safetensors file");
        }
        byte[] json = new byte[(int) headerBytes];
        transfer(channel, 8, MemorySegment.ofArray(json), false);
        JsonNode root;
        try {
            root = JSON.readTree(new String(json, StandardCharsets.UTF_8));
        } catch (JacksonException e) {
            throw wrong(path, "its header is no JSON: " + e.getOriginalMessage());
        }
        if (!root.isObject()) {
            throw wrong(path, "its header is no JSON object");
        }
        SequencedMap<String, String> metadata = new LinkedHashMap<>();
        List<Map.Entry<String, Entry>> found = new ArrayList<>();
        long start = 8 + headerBytes;
        for (Map.Entry<String, JsonNode> property : root.properties()) {
            if (property.getKey().equals("__metadata__")) {
                property.getValue()
                        .properties()
                        .forEach(e -> metadata.put(e.getKey(), e.getValue().asString("")));
            } else {
                found.add(
                        Map.entry(property.getKey(), entry(path, property.getKey(), property.getValue(), start, size)));
            }
        }
        found.sort(Comparator.comparingLong(e -> e.getValue().offset()));
        SequencedMap<String, Entry> entries = new LinkedHashMap<>();
        long end = start;
        for (Map.Entry<String, Entry> e : found) {
            if (e.getValue().offset() < end) {
                throw wrong(path, "tensor " + e.getKey() + " overlaps the one before it");
            }
            end = e.getValue().offset() + e.getValue().type().bytes();
            entries.put(e.getKey(), e.getValue());
        }
        return new Safetensors(
                path,
                channel,
                Collections.unmodifiableSequencedMap(entries),
                Collections.unmodifiableSequencedMap(metadata),
                size + " bytes, header " + hash(json));
    }

    /// 64 bits of SHA-256.
    private static String hash(byte[] bytes) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes), 0, 8);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }

    private static Entry entry(Path path, String name, JsonNode node, long start, long size) {
        DType dtype = dtype(path, name, node.path("dtype").asString(""));
        JsonNode dims = node.path("shape");
        JsonNode offsets = node.path("data_offsets");
        if (!dims.isArray() || !offsets.isArray() || offsets.size() != 2) {
            throw wrong(path, "tensor " + name + " lacks dtype, shape or data_offsets");
        }
        int[] shape = new int[dims.size()];
        long elements = 1;
        for (int i = 0; i < shape.length; i++) {
            long dim = dims.get(i).isIntegralNumber() ? dims.get(i).asLong(-1) : -1;
            if (dim < 0 || dim > Integer.MAX_VALUE || (dim > 0 && elements > (Long.MAX_VALUE >> 4) / dim)) {
                throw wrong(path, "tensor " + name + " has the shape " + dims);
            }
            shape[i] = (int) dim;
            elements *= dim;
        }
        Type type = new Type(dtype, Shape.of(shape));
        long from = offsets.get(0).isIntegralNumber() ? offsets.get(0).asLong(-1) : -1;
        long to = offsets.get(1).isIntegralNumber() ? offsets.get(1).asLong(-1) : -1;
        if (from < 0 || to < from || to > size - start) {
            throw wrong(
                    path,
                    "tensor " + name + " lies at bytes " + offsets + " of " + (size - start)
                            + "; the file is truncated or corrupt");
        }
        if (to - from != type.bytes()) {
            throw wrong(
                    path, "tensor " + name + " is " + type + " = " + type.bytes() + " bytes, it has " + (to - from));
        }
        return new Entry(type, start + from);
    }

    private static DType dtype(Path path, String name, String text) {
        for (DType dtype : DType.values()) {
            if (dtype.name().equals(text)) {
                return dtype;
            }
        }
        throw wrong(
                path,
                "tensor " + name + " has the dtype '" + text + "', expected one of "
                        + java.util.Arrays.toString(DType.values()));
    }

    private static IngotException wrong(Path path, String what) {
        return new IngotException("safetensors: " + path + " is not usable: " + what);
    }

    /// Moves all of `memory` to or from the file; short reads and writes are continued. Heap arrays go through a small
    /// buffer.
    private static void transfer(FileChannel channel, long offset, MemorySegment memory, boolean write)
            throws IOException {
        ByteBuffer bounce = memory.isNative() ? null : ByteBuffer.allocate((int) Math.min(CHUNK, memory.byteSize()));
        for (long at = 0; at < memory.byteSize(); ) {
            MemorySegment part = memory.asSlice(at, Math.min(CHUNK, memory.byteSize() - at));
            ByteBuffer buffer =
                    bounce == null ? part.asByteBuffer() : bounce.clear().limit((int) part.byteSize());
            if (write && bounce != null) {
                MemorySegment.ofBuffer(buffer).copyFrom(part);
            }
            int n = write ? channel.write(buffer, offset + at) : channel.read(buffer, offset + at);
            if (n < 0) {
                throw new EOFException("the file ends at byte " + (offset + at));
            }
            if (!write && bounce != null) {
                part.asSlice(0, n).copyFrom(MemorySegment.ofBuffer(bounce.flip()));
            }
            at += n;
        }
    }

    private static String reason(IOException e) {
        return e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
    }

    private static void closeQuietly(@Nullable FileChannel channel) {
        if (channel != null) {
            try {
                channel.close();
            } catch (IOException e) {
                throw new IngotException("safetensors: cannot close a file: " + reason(e), e);
            }
        }
    }
}
