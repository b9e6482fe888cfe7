package ingot.formats;

import ingot.ir.IngotException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/// An ONNX file: its graph in records, its tensors in place.
///
/// The file is mapped into memory, so opening costs what its structure costs, not what its weights do. What is read
/// from it is valid until it is closed. Not safe for use by several threads at once.
public final class OnnxModel implements AutoCloseable, OnnxTensor.Neighbours {
    /// Operators of the standard domain are known in the versions between these.
    static final long OLDEST_OPSET = 7;

    static final long NEWEST_OPSET = 25;

    private final Path path;
    private final Arena arena = Arena.ofShared();
    private final Map<String, MemorySegment> neighbours = new HashMap<>();
    private OnnxReader.Contents contents = OnnxReader.Contents.NONE;
    private MemorySegment file = MemorySegment.NULL;

    private OnnxModel(Path path) {
        this.path = path;
    }

    public static OnnxModel open(Path path) {
        if (!Files.isRegularFile(path)) {
            throw new IngotException("onnx: no such file: " + path);
        }
        OnnxModel model = new OnnxModel(path);
        try {
            model.file = map(path, model.arena);
            model.contents = new OnnxReader().model(model.file);
            return model;
        } catch (IOException | RuntimeException e) {
            model.close();
            throw switch (e) {
                case IngotException own -> new IngotException(own.getMessage() + " (" + path + ")", own);
                case IOException io -> new IngotException("onnx: cannot read " + path + ": " + io.getMessage(), io);
                default -> new IngotException("onnx: " + path + " is damaged or no ONNX model: " + e, e);
            };
        }
    }

    private static MemorySegment map(Path file, Arena arena) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            return channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), arena);
        }
    }

    public Path path() {
        return path;
    }

    /// The place of a part of the file in it.
    long offset(MemorySegment part) {
        return part.address() - file.address();
    }

    OnnxGraph graph() {
        return contents.graph();
    }

    List<OnnxReader.Function> functions() {
        return contents.functions();
    }

    /// Names of what goes in.
    public List<String> inputs() {
        return contents.graph().freeInputs().stream().map(OnnxGraph.Port::name).toList();
    }

    /// Versions of the operator sets by domain; the standard domain is the empty name.
    public Map<String, Long> opsets() {
        return Map.copyOf(contents.opsets());
    }

    /// The program that wrote the file, as it calls itself.
    public String producer() {
        return (contents.producer() + " " + contents.producerVersion()).strip();
    }

    public long irVersion() {
        return contents.irVersion();
    }

    /// A part of a file in the folder of the model; nothing outside of it can be named.
    @Override
    public MemorySegment open(String tensor, OnnxTensor.Data.External where, long bytes) {
        MemorySegment file = neighbours.computeIfAbsent(where.location(), location -> neighbour(tensor, location));
        long length = where.length() < 0 ? bytes : where.length();
        if (where.offset() > file.byteSize() || length > file.byteSize() - where.offset()) {
            throw new IngotException("onnx: tensor " + tensor + " lies at bytes " + where.offset() + " + " + length
                    + " of " + where.location() + ", which has " + file.byteSize());
        }
        return file.asSlice(where.offset(), length);
    }

    private MemorySegment neighbour(String tensor, String location) {
        Path folder = Objects.requireNonNull(path.toAbsolutePath().getParent(), "a file lies in a folder");
        try {
            Path relative = Path.of(location);
            Path file = folder.resolve(relative).normalize();
            if (relative.isAbsolute() || !file.startsWith(folder) || location.contains("..")) {
                throw new IngotException("onnx: tensor " + tensor + " lies in '" + location
                        + "', which is outside of the model's folder; this is refused");
            }
            if (!Files.isRegularFile(file)) {
                throw new IngotException("onnx: tensor " + tensor + " lies in " + location
                        + ", but there is no such file beside " + path);
            }
            if (!file.toRealPath().startsWith(folder.toRealPath())) {
                throw new IngotException("onnx: tensor " + tensor + " lies in '" + location
                        + "', a link out of the model's folder; this is refused");
            }
            return map(file, arena);
        } catch (IOException | java.nio.file.InvalidPathException e) {
            throw new IngotException(
                    "onnx: tensor " + tensor + " lies in '" + location + "', which cannot be read: " + e.getMessage(),
                    e);
        }
    }

    @Override
    public void close() {
        arena.close();
    }
}
