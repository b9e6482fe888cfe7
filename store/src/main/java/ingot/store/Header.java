package ingot.store;

import ingot.ir.IngotException;
import ingot.ir.Type;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32C;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/// The first bytes of a store's file, written once: what it is, whose it is, and how it is laid out.
///
///      0  8 bytes  "INGOTST" and 0
///      8  u32  version of the format
///     12  u32  CRC-32C of bytes 16 to the end of the JSON
///     16  u64  id of the store
///     24  u64  bytes of the file
///     32  u32  bytes of the header, a multiple of 4 KiB
///     36  u32  bytes of the JSON
///     40  JSON, UTF-8
record Header(long store, StoreLayout layout, String identity, String created, List<Geometry.Extent> extents) {
    static final int VERSION = 1;
    static final String FILE = "state.ingot";

    private static final long MAGIC = 0x0054_5354_4f47_4e49L; // "INGOTST\0"
    private static final int JSON_START = 40;
    private static final int MAX_BYTES = 64 << 20;
    private static final JsonMapper JSON = JsonMapper.builder().build();

    /// What the first block of a file says about it.
    enum Kind {
        STORE,
        /// Zeros: its creation did not come to an end.
        UNFINISHED,
        FOREIGN
    }

    static Kind kind(MemorySegment firstBlock) {
        long magic = firstBlock.get(LittleEndian.LONG, 0);
        return magic == MAGIC ? Kind.STORE : magic == 0 ? Kind.UNFINISHED : Kind.FOREIGN;
    }

    Geometry geometry() {
        return new Geometry(layout, bytes(json()), extents);
    }

    private static int bytes(byte[] json) {
        return (int) Storage.roundUp(JSON_START + json.length);
    }

    /// The header's blocks.
    MemorySegment encode(Arena arena) {
        byte[] json = json();
        MemorySegment into = arena.allocate(bytes(json), Blocks.SIZE);
        into.set(LittleEndian.LONG, 0, MAGIC);
        into.set(LittleEndian.INT, 8, VERSION);
        into.set(LittleEndian.LONG, 16, store);
        into.set(LittleEndian.LONG, 24, geometry().fileBytes());
        into.set(LittleEndian.INT, 32, bytes(json));
        into.set(LittleEndian.INT, 36, json.length);
        MemorySegment.copy(MemorySegment.ofArray(json), 0, into, JSON_START, json.length);
        into.set(LittleEndian.INT, 12, checksum(into, json.length));
        return into;
    }

    /// Bytes of the header whose first block this is, so that the rest can be read.
    static int bytes(MemorySegment firstBlock, String where) {
        int version = firstBlock.get(LittleEndian.INT, 8);
        if (version != VERSION) {
            throw new IngotException("store: " + where + " has format version " + version
                    + ", this Ingot reads version " + VERSION + "; use the Ingot that wrote it");
        }
        int bytes = firstBlock.get(LittleEndian.INT, 32);
        int json = firstBlock.get(LittleEndian.INT, 36);
        if (bytes < Blocks.SIZE
                || bytes > MAX_BYTES
                || bytes % Blocks.SIZE != 0
                || json < 0
                || json > bytes - JSON_START) {
            throw damaged(where, "its header would have " + bytes + " bytes");
        }
        return bytes;
    }

    static Header decode(MemorySegment header, String where) {
        int length = header.get(LittleEndian.INT, 36);
        if (header.get(LittleEndian.INT, 12) != checksum(header, length)) {
            throw damaged(where, "the checksum of its header does not match");
        }
        byte[] json = header.asSlice(JSON_START, length).toArray(java.lang.foreign.ValueLayout.JAVA_BYTE);
        try {
            JsonNode root = JSON.readTree(new String(json, StandardCharsets.UTF_8));
            List<StoredTensor> tensors = new ArrayList<>();
            for (JsonNode node : root.path("tensors")) {
                int[] dims = new int[node.path("shape").size()];
                Arrays.setAll(dims, i -> node.path("shape").get(i).asInt());
                tensors.add(new StoredTensor(
                        node.path("name").asString(),
                        Type.f32(dims),
                        node.path("frozen").asBoolean(false)));
            }
            List<String> moments = new ArrayList<>();
            root.path("moments").forEach(node -> moments.add(node.asString()));
            List<Geometry.Extent> extents = new ArrayList<>();
            root.path("extents")
                    .forEach(node -> extents.add(new Geometry.Extent(
                            node.path("bytes").asInt(),
                            node.path("count").asInt(),
                            node.path("slack").asInt())));
            Header found = new Header(
                    header.get(LittleEndian.LONG, 16),
                    new StoreLayout(tensors, moments, root.path("chunkElements").asInt()),
                    root.path("identity").asString(),
                    root.path("created").asString(),
                    extents);
            if (found.geometry().fileBytes() != fileBytes(header)) {
                throw damaged(where, "its header contradicts itself");
            }
            return found;
        } catch (JacksonException | IllegalArgumentException e) {
            throw damaged(where, "its header cannot be read: " + e.getMessage());
        }
    }

    static long fileBytes(MemorySegment header) {
        return header.get(LittleEndian.LONG, 24);
    }

    private static IngotException damaged(String where, String what) {
        return new IngotException("store: " + where + " is damaged: " + what
                + "; without its header a store cannot be used: go back to an exported copy, or, if its creation was "
                + "interrupted, delete it");
    }

    private static int checksum(MemorySegment header, int json) {
        CRC32C crc = new CRC32C();
        crc.update(header.asSlice(16, JSON_START - 16 + json).asByteBuffer());
        return (int) crc.getValue();
    }

    private byte[] json() {
        ObjectNode root = JSON.createObjectNode();
        root.put("identity", identity);
        root.put("created", created);
        root.put("chunkElements", layout.chunkElements());
        var moments = root.putArray("moments");
        layout.moments().forEach(moments::add);
        var tensors = root.putArray("tensors");
        for (StoredTensor tensor : layout.tensors()) {
            ObjectNode node = tensors.addObject();
            node.put("name", tensor.name());
            var shape = node.putArray("shape");
            for (int dim : tensor.type().shape().dims()) {
                shape.add(dim);
            }
            if (tensor.frozen()) {
                node.put("frozen", true);
            }
        }
        var classes = root.putArray("extents");
        for (Geometry.Extent extent : extents) {
            classes.addObject()
                    .put("bytes", extent.bytes())
                    .put("count", extent.count())
                    .put("slack", extent.slack());
        }
        return JSON.writeValueAsBytes(root);
    }

    /// Refuses a store that was made for something else, naming the first difference.
    void check(StoreLayout expected, String expectedIdentity, String where) {
        if (layout.chunkElements() != expected.chunkElements()) {
            throw other(where, "chunks of " + layout.chunkElements() + " elements", expected.chunkElements() + "");
        }
        if (!layout.moments().equals(expected.moments())) {
            throw other(where, "the moments " + layout.moments(), expected.moments() + "");
        }
        int common = Math.min(layout.tensors().size(), expected.tensors().size());
        for (int t = 0; t < common; t++) {
            StoredTensor mine = layout.tensors().get(t);
            StoredTensor asked = expected.tensors().get(t);
            if (!mine.equals(asked)) {
                throw other(where, "tensor " + t + " as " + text(mine), text(asked));
            }
        }
        if (layout.tensors().size() != expected.tensors().size()) {
            throw other(
                    where,
                    layout.tensors().size() + " tensors",
                    expected.tensors().size() + "");
        }
        if (!identity.equals(expectedIdentity)) {
            List<String> mine = identity.lines().toList();
            List<String> asked = expectedIdentity.lines().toList();
            int line = 0;
            while (line < Math.min(mine.size(), asked.size()) && mine.get(line).equals(asked.get(line))) {
                line++;
            }
            throw other(where, "'" + line(mine, line) + "'", "'" + line(asked, line) + "'");
        }
    }

    private static String text(StoredTensor tensor) {
        return tensor.name() + " " + tensor.type() + (tensor.frozen() ? " (frozen)" : "");
    }

    private static String line(List<String> lines, int number) {
        return number < lines.size() ? lines.get(number) : "";
    }

    private static IngotException other(String where, String found, String expected) {
        return new IngotException("store: " + where + " belongs to another run: it has " + found + ", expected "
                + expected + "; go on with the configuration it was made for, or choose another folder");
    }
}
