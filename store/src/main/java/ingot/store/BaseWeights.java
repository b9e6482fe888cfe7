package ingot.store;

import com.sun.nio.file.ExtendedOpenOption;
import ingot.ir.DType;
import ingot.ir.IngotException;
import ingot.ir.Type;
import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// The weights of a model that exists, read where they lie: one safetensors file, or a folder with one or with shards
/// and their index (`model.safetensors.index.json`: tensor → file).
///
/// Nothing is copied anywhere but into the memory that asks for it. F32 is taken as it is; F16 and BF16 become F32 on
/// the way, which is exact. Files are read directly, past the page cache, where the file system can: what is asked for
/// seldom lies at whole blocks, so the blocks around it are read into a buffer first. Any thread may read, but one that
/// is interrupted meanwhile closes the file.
public final class BaseWeights implements AutoCloseable {
    /// Bytes of memory for buffers, if four threads read at the same time.
    public static final long BUFFER_BYTES = 4L * (BaseWeights.PIECE + 2 * Blocks.SIZE);

    private static final int PIECE = 1 << 20;
    private static final String WHOLE = "model.safetensors";
    private static final String INDEX = "model.safetensors.index.json";
    private static final JsonMapper JSON = JsonMapper.builder().build();
    private static final ValueLayout.OfShort SHORT =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

    private final Path path;
    private final String fingerprint;
    private final SequencedMap<String, Place> places = new LinkedHashMap<>();
    private final List<FileChannel> channels = new ArrayList<>();
    private final Arena arena = Arena.ofShared();
    private final ArrayDeque<MemorySegment> idle = new ArrayDeque<>(); // buffers

    /// Where a tensor lies.
    private record Place(Type type, Path file, FileChannel channel, boolean direct, long offset) {}

    /// A tensor without gaps, little-endian, from a byte of a file on.
    public record Region(Type type, Path file, long offset) {
        public Region {
            if (offset < 0) {
                throw new IllegalArgumentException(file + ": offset " + offset);
            }
        }
    }

    private BaseWeights(Path path, SequencedMap<Path, Set<String>> files) {
        this.path = path;
        List<String> prints = new ArrayList<>();
        try {
            for (Map.Entry<Path, Set<String>> entry : files.entrySet()) {
                try (Safetensors file = Safetensors.open(entry.getKey())) {
                    prints.add(file.fingerprint());
                    add(file, entry.getValue());
                }
            }
        } catch (IOException e) {
            close();
            throw new IngotException("base: cannot read " + path + ": " + StoreLock.reason(e), e);
        } catch (RuntimeException e) {
            close();
            throw e;
        }
        fingerprint = String.join("; ", prints);
    }

    /// Tensors that lie somewhere in files of any kind.
    ///
    /// @param path what the user named
    /// @param fingerprint differs for files that differ
    private BaseWeights(Path path, String fingerprint, SequencedMap<String, Region> regions) {
        this.path = path;
        this.fingerprint = fingerprint;
        Map<Path, Opened> opened = new LinkedHashMap<>();
        try {
            for (Map.Entry<String, Region> entry : regions.entrySet()) {
                Region region = entry.getValue();
                Opened file = opened.get(region.file());
                if (file == null) {
                    file = open(region.file(), channels);
                    opened.put(region.file(), file);
                }
                places.put(
                        entry.getKey(),
                        new Place(region.type(), region.file(), file.channel(), file.direct(), region.offset()));
            }
        } catch (IOException e) {
            close();
            throw new IngotException("base: cannot read " + path + ": " + StoreLock.reason(e), e);
        }
    }

    /// Opens tensors that lie somewhere in files of any kind; `fingerprint` must differ for files that differ.
    public static BaseWeights of(Path path, String fingerprint, SequencedMap<String, Region> regions) {
        return new BaseWeights(path, fingerprint, regions);
    }

    /// Opens a file or a folder; reads headers only.
    public static BaseWeights open(Path path) {
        if (Files.isRegularFile(path)) {
            return path.getFileName().toString().endsWith(".json")
                    ? new BaseWeights(path, shards(path))
                    : new BaseWeights(path, all(List.of(path)));
        }
        if (!Files.isDirectory(path)) {
            throw new IngotException("base: no such file or folder: " + path
                    + "; expected a safetensors file, or a folder with " + WHOLE + " or with shards and " + INDEX);
        }
        if (Files.exists(path.resolve(INDEX))) {
            return new BaseWeights(path, shards(path.resolve(INDEX)));
        }
        if (Files.exists(path.resolve(WHOLE))) {
            return new BaseWeights(path, all(List.of(path.resolve(WHOLE))));
        }
        try (Stream<Path> entries = Files.list(path)) {
            List<Path> files = entries.filter(
                            file -> file.getFileName().toString().endsWith(".safetensors"))
                    .sorted()
                    .toList();
            if (files.isEmpty()) {
                throw new IngotException(
                        "base: " + path + " has no safetensors files; expected " + WHOLE + ", or shards and " + INDEX);
            }
            return new BaseWeights(path, all(files));
        } catch (IOException e) {
            throw new IngotException("base: cannot list " + path + ": " + StoreLock.reason(e), e);
        }
    }

    private static SequencedMap<Path, Set<String>> all(List<Path> files) {
        SequencedMap<Path, Set<String>> all = new LinkedHashMap<>();
        files.forEach(file -> all.put(file, Set.of()));
        return all;
    }

    /// The files of an index, each with the tensors it must have.
    private static SequencedMap<Path, Set<String>> shards(Path index) {
        SequencedMap<Path, Set<String>> shards = new LinkedHashMap<>();
        try {
            JsonNode map = JSON.readTree(Files.readString(index)).path("weight_map");
            if (!map.isObject() || map.isEmpty()) {
                throw new IngotException("base: " + index + " has no weight_map from tensors to files");
            }
            ShardIndex.shards(index, map)
                    .forEach((file, tensors) -> shards.put(index.resolveSibling(file), new LinkedHashSet<>(tensors)));
        } catch (IOException e) {
            throw new IngotException("base: cannot read " + index + ": " + StoreLock.reason(e), e);
        } catch (JacksonException e) {
            throw new IngotException("base: " + index + " is no JSON: " + e.getOriginalMessage(), e);
        }
        return shards;
    }

    private void add(Safetensors file, Set<String> promised) throws IOException {
        SequencedMap<String, Type> types = file.tensors();
        for (String name : promised) {
            if (!types.containsKey(name)) {
                throw new IngotException("base: " + file.path() + " has no tensor " + name
                        + ", which the index beside it says; the download is not complete");
            }
        }
        Opened opened = open(file.path(), channels);
        for (Map.Entry<String, Type> tensor : types.entrySet()) {
            Place place = new Place(
                    tensor.getValue(), file.path(), opened.channel(), opened.direct(), file.offset(tensor.getKey()));
            Place other = places.putIfAbsent(tensor.getKey(), place);
            if (other != null) {
                throw new IngotException("base: both " + other.file() + " and " + file.path() + " have a tensor "
                        + tensor.getKey() + "; name one of them, or a folder with an index");
            }
        }
    }

    private record Opened(FileChannel channel, boolean direct) {}

    private static Opened open(Path file, List<FileChannel> channels) throws IOException {
        boolean direct = true;
        FileChannel channel;
        try {
            channel = FileChannel.open(file, StandardOpenOption.READ, ExtendedOpenOption.DIRECT);
        } catch (IOException | UnsupportedOperationException e) {
            channel = FileChannel.open(file, StandardOpenOption.READ); // no direct access, such as tmpfs
            direct = false;
        }
        channels.add(channel);
        return new Opened(channel, direct);
    }

    /// Gives tensors the names of a model, `names` from those to the names in the files; all others are left out.
    public void rename(Map<String, String> names) {
        SequencedMap<String, Place> renamed = new LinkedHashMap<>();
        names.forEach((name, stored) -> renamed.put(name, place(stored)));
        places.clear();
        places.putAll(renamed);
    }

    public boolean contains(String name) {
        return places.containsKey(name);
    }

    public Path path() {
        return path;
    }

    /// Names and types as the files have them.
    public SequencedMap<String, Type> types() {
        SequencedMap<String, Type> types = new LinkedHashMap<>();
        places.forEach((name, place) -> types.put(name, place.type()));
        return types;
    }

    /// Sizes of the files and hashes of their headers: files that differ in it are other files.
    public String fingerprint() {
        return fingerprint;
    }

    /// Refuses a tensor that is missing, has another shape than expected, or values that cannot be read.
    public void check(String name, Type expected) {
        Place place = place(name);
        boolean readable = switch (place.type().dtype()) {
            case F32, F16, BF16 -> true;
            case I32, I64, I8, U8, BOOL -> false;
        };
        if (!readable) {
            throw new IngotException("base: " + place.file() + " has " + name + " as " + place.type()
                    + ", expected f32, f16 or bf16; quantised weights must be converted first, for example with"
                    + " transformers: AutoModelForCausalLM.from_pretrained(…, dtype=\"float32\").save_pretrained(…)");
        }
        if (!place.type().shape().equals(expected.shape())) {
            throw new IngotException("base: " + place.file() + " has " + name + " as " + place.type() + ", expected "
                    + expected + "; the sizes of the model must be those of its base");
        }
    }

    /// The file with a tensor.
    public Path file(String name) {
        return place(name).file();
    }

    /// Writes the values of a tensor from position `start` on as f32, as many as `into` holds.
    public void read(String name, long start, MemorySegment into) {
        Place place = place(name);
        int size = place.type().dtype().bytes();
        long elements = into.byteSize() / Float.BYTES;
        if (start < 0 || start + elements > place.type().shape().elements()) {
            throw new IllegalArgumentException(name + " " + place.type() + ": " + elements + " values from " + start);
        }
        try {
            for (long done = 0; done < elements; ) {
                long n = Math.min(PIECE / size, elements - done);
                long position = place.offset() + (start + done) * size;
                MemorySegment piece = into.asSlice(done * Float.BYTES, n * Float.BYTES);
                if (place.type().dtype() == DType.F32 && isWhole(place, position, piece)) {
                    transfer(place.channel(), position, piece, piece.byteSize());
                } else {
                    through(place, position, piece);
                }
                done += n;
            }
        } catch (IOException e) {
            throw new IngotException(
                    "base: cannot read " + name + " from " + place.file() + ": " + StoreLock.reason(e), e);
        }
    }

    /// True if a piece can be read to where it belongs.
    private static boolean isWhole(Place place, long position, MemorySegment piece) {
        return piece.isNative()
                && (!place.direct()
                        || (position % Blocks.SIZE == 0
                                && piece.byteSize() % Blocks.SIZE == 0
                                && piece.address() % Blocks.SIZE == 0));
    }

    private void through(Place place, long position, MemorySegment piece) throws IOException {
        int size = place.type().dtype().bytes();
        long bytes = piece.byteSize() / Float.BYTES * size;
        long first = place.direct() ? position & -Blocks.SIZE : position;
        MemorySegment buffer = take();
        try {
            long end = place.direct() ? Storage.roundUp(position + bytes) : position + bytes;
            transfer(place.channel(), first, buffer.asSlice(0, end - first), position + bytes - first);
            widen(place.type().dtype(), buffer.asSlice(position - first, bytes), piece);
        } finally {
            give(buffer);
        }
    }

    private static void widen(DType from, MemorySegment bytes, MemorySegment into) {
        long count = into.byteSize() / Float.BYTES;
        switch (from) {
            case F32 -> MemorySegment.copy(bytes, 0, into, 0, into.byteSize());
            case BF16 -> {
                for (long i = 0; i < count; i++) {
                    into.set(FLOAT, 4 * i, Float.intBitsToFloat(bytes.get(SHORT, 2 * i) << 16));
                }
            }
            case F16 -> {
                for (long i = 0; i < count; i++) {
                    into.set(FLOAT, 4 * i, Float.float16ToFloat(bytes.get(SHORT, 2 * i)));
                }
            }
            case I32, I64, I8, U8, BOOL -> throw new IllegalStateException("no weights of " + from);
        }
    }

    /// Reads until `needed` bytes are there; a short read goes on at its last whole block.
    private static void transfer(FileChannel channel, long position, MemorySegment into, long needed)
            throws IOException {
        boolean blocks = position % Blocks.SIZE == 0 && into.byteSize() % Blocks.SIZE == 0;
        for (long done = 0; done < needed; ) {
            int n = channel.read(into.asSlice(done).asByteBuffer(), position + done);
            long now = done + Math.max(0, n);
            long next = now >= needed || !blocks ? now : now & -Blocks.SIZE;
            if (next == done) {
                throw new EOFException("it ends before byte " + (position + needed) + "; it was cut short");
            }
            done = next;
        }
    }

    private MemorySegment take() {
        synchronized (idle) {
            MemorySegment buffer = idle.poll();
            return buffer == null ? arena.allocate(PIECE + 2 * Blocks.SIZE, Blocks.SIZE) : buffer;
        }
    }

    private void give(MemorySegment buffer) {
        synchronized (idle) {
            idle.push(buffer);
        }
    }

    private Place place(String name) {
        Place place = places.get(name);
        if (place == null) {
            throw new IngotException("base: " + path + " has no tensor " + name + "; it has " + places.size()
                    + places.keySet().stream().limit(3).collect(Collectors.joining(", ", ", such as ", "")));
        }
        return place;
    }

    @Override
    public void close() {
        arena.close();
        for (FileChannel channel : channels) {
            try {
                channel.close();
            } catch (IOException e) {
                throw new IngotException("base: cannot close a file of " + path + ": " + StoreLock.reason(e), e);
            }
        }
    }
}
