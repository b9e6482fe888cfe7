package ingot.formats;

import ingot.ir.IngotException;
import ingot.ir.Type;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.SequencedMap;
import java.util.zip.ZipEntry;
import java.util.zip.ZipException;
import java.util.zip.ZipFile;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// A model of Keras as files have it, opened: its configuration and its tensors.
///
/// Three kinds: `.keras` (a zip of config.json and model.weights.h5), `.h5` (Keras 2), and `model.json` with shards
/// (TF.js layers model). Nothing of a file is executed: layers with code in them are refused.
public final class KerasModel implements AutoCloseable {
    private static final long MOST_JSON = 64L << 20;

    private final Path path;
    private final String format;
    private final int version;
    private final KerasLayer layer;
    private final KerasTensors tensors;

    private KerasModel(Path path, String format, int version, KerasLayer layer, KerasTensors tensors) {
        this.path = path;
        this.format = format;
        this.version = version;
        this.layer = layer;
        this.tensors = tensors;
    }

    /// Opens a file, or the `model.json` of a folder.
    public static KerasModel open(Path path) {
        Path file = Files.isDirectory(path) ? path.resolve("model.json") : path;
        byte[] head = head(file);
        if (head.length >= 4 && head[0] == 'P' && head[1] == 'K') {
            return zipped(file);
        }
        return head.length >= 4 && (head[0] & 0xFF) == 0x89 && head[1] == 'H' ? listed(file) : sharded(file);
    }

    private static byte[] head(Path file) {
        try (InputStream in = Files.newInputStream(file)) {
            return in.readNBytes(8);
        } catch (IOException e) {
            throw new IngotException("keras: " + file + " cannot be read: " + e.getMessage(), e);
        }
    }

    private static KerasModel zipped(Path file) {
        try (ZipFile zip = new ZipFile(file.toFile())) {
            JsonNode config = json(file, new String(bytes(file, zip, "config.json"), StandardCharsets.UTF_8));
            String made = zip.getEntry("metadata.json") == null
                    ? ""
                    : json(file, new String(bytes(file, zip, "metadata.json"), StandardCharsets.UTF_8))
                            .path("keras_version")
                            .asString("");
            KerasLayer layer = model(file, config);
            KerasTensors tensors = KerasHdf.nested(file, extracted(file, zip));
            return new KerasModel(file, "Keras " + made + ", .keras", version(made, 3), layer, tensors);
        } catch (ZipException e) {
            throw new IngotException("keras: " + file + " is a damaged or truncated zip: " + e.getMessage(), e);
        } catch (IOException e) {
            throw new IngotException("keras: " + file + " cannot be read: " + e.getMessage(), e);
        }
    }

    private static ZipEntry entry(Path file, ZipFile zip, String name) {
        ZipEntry entry = zip.getEntry(name);
        if (entry == null) {
            throw new IngotException(
                    "keras: " + file + " has no " + name + "; expected config.json and model.weights.h5");
        }
        return entry;
    }

    private static byte[] bytes(Path file, ZipFile zip, String name) throws IOException {
        try (InputStream in = zip.getInputStream(entry(file, zip, name))) {
            byte[] bytes = in.readNBytes((int) MOST_JSON);
            if (in.read() >= 0) {
                throw new IngotException("keras: " + name + " in " + file + " is longer than " + MOST_JSON + " bytes");
            }
            return bytes;
        }
    }

    /// The weights in a file of their own: HDF5 is read at any place.
    private static Path extracted(Path file, ZipFile zip) throws IOException {
        ZipEntry entry = entry(file, zip, "model.weights.h5");
        Path target = Files.createTempFile("ingot-keras", ".h5");
        try (InputStream in = zip.getInputStream(entry);
                OutputStream out = Files.newOutputStream(target)) {
            long left = Math.min(entry.getSize(), Math.multiplyExact(Files.size(file), 1100L));
            byte[] chunk = new byte[1 << 16];
            for (int n = in.read(chunk); n > 0; n = in.read(chunk)) {
                left -= n;
                if (left < 0) {
                    throw new IngotException("keras: model.weights.h5 in " + file + " is longer than it says");
                }
                out.write(chunk, 0, n);
            }
            return target;
        } catch (IOException | RuntimeException e) {
            Files.deleteIfExists(target);
            throw e;
        }
    }

    private static KerasModel listed(Path file) {
        KerasHdf tensors = KerasHdf.listed(file);
        try {
            String config = tensors.text("model_config");
            if (config == null) {
                throw new IngotException("keras: " + file + " has weights alone, no model_config; save the whole model"
                        + " with model.save");
            }
            String made = java.util.Objects.requireNonNullElse(tensors.text("keras_version"), "2");
            KerasLayer layer = model(file, json(file, config));
            return new KerasModel(file, "Keras " + made + ", .h5", version(made, 2), layer, tensors);
        } catch (RuntimeException e) {
            tensors.close();
            throw e;
        }
    }

    private static KerasModel sharded(Path file) {
        JsonNode json = ModelConfig.object(file);
        String kind = json.path("format").asString("layers-model");
        if (!kind.equals("layers-model")) {
            throw new IngotException(
                    "tfjs: " + file + " is a " + kind + ", whose operators are TensorFlow's; expected a"
                            + " layers-model, which tensorflowjs_converter makes of a .h5 file");
        }
        JsonNode topology = json.path("modelTopology");
        String made = topology.path("keras_version").asString("");
        JsonNode config = topology.path("model_config").isObject() ? topology.path("model_config") : topology;
        KerasLayer layer = model(file, config);
        return new KerasModel(
                file,
                "TF.js layers model" + (made.isEmpty() ? "" : " of Keras " + made),
                version(made, 2),
                layer,
                TfJsTensors.open(file, json.path("weightsManifest")));
    }

    private static int version(String made, int otherwise) {
        return made.startsWith("3") ? 3 : made.startsWith("2") ? 2 : otherwise;
    }

    private static JsonNode json(Path file, String text) {
        try {
            return JsonMapper.shared().readTree(text);
        } catch (JacksonException e) {
            throw new IngotException(
                    "keras: the configuration in " + file + " is not valid JSON: " + e.getOriginalMessage(), e);
        }
    }

    private static KerasLayer model(Path file, JsonNode config) {
        KerasLayer layer = KerasLayer.of(config);
        if (!layer.isModel()) {
            throw new IngotException("keras: " + file + " is a model of the class " + layer.kind()
                    + ", whose code is not in the file; expected a Functional or Sequential one");
        }
        return layer;
    }

    public Path path() {
        return path;
    }

    /// Such as `Keras 3.5.0, .keras`.
    public String format() {
        return format;
    }

    int version() {
        return version;
    }

    KerasLayer layer() {
        return layer;
    }

    KerasTensors tensors() {
        return tensors;
    }

    /// Shapes by the names of the file.
    public SequencedMap<String, Type> stored() {
        return tensors.types();
    }

    /// Classes of layers without a meaning here, with the names of the layers.
    public SequencedMap<String, List<String>> unsupported() {
        return KerasGraph.unsupported(layer);
    }

    @Override
    public void close() {
        tensors.close();
    }
}
