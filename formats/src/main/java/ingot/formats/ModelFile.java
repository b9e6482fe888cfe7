package ingot.formats;

import ingot.ir.IngotException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/// A model in somebody's files, told apart by what they look like.
public sealed interface ModelFile {
    Path path();

    /// One file in the format of ONNX, perhaps with data in others beside it.
    record Onnx(Path path) implements ModelFile {}

    /// A folder in the layout of Hugging Face: `config.json` and weights.
    record Folder(Path path) implements ModelFile {}

    /// One safetensors file: tensors by name, and nothing that says what they are for.
    record Tensors(Path path) implements ModelFile {}

    /// One file that `torch.save` wrote: tensors by name.
    record Pickled(Path path) implements ModelFile {}

    /// A folder in the layout of PEFT: a low-rank adapter of a model that lies elsewhere.
    record Adapter(Path path) implements ModelFile {}

    /// A model of Keras: a `.keras` or `.h5` file, or the `model.json` of TF.js beside its shards.
    record Keras(Path path) implements ModelFile {}

    /// A folder that TensorFlow saved: it is told what it holds, not imported.
    record Saved(Path path) implements ModelFile {}

    static ModelFile detect(Path path) {
        if (!Files.exists(path)) {
            throw new IngotException(path + ": no such file or folder");
        }
        return Files.isDirectory(path) ? folder(path) : file(path);
    }

    private static ModelFile folder(Path path) {
        if (Files.exists(path.resolve("config.json"))) {
            return new Folder(path);
        }
        if (Files.exists(path.resolve("model.json"))) {
            return new Keras(path.resolve("model.json"));
        }
        if (SavedModel.isAt(path)) {
            return new Saved(path);
        }
        if (Files.exists(path.resolve(PeftAdapter.CONFIG))) {
            return new Adapter(path);
        }
        for (String name : List.of("model.onnx", "onnx/model.onnx")) {
            if (Files.exists(path.resolve(name))) {
                return new Onnx(path.resolve(name));
            }
        }
        if (Files.exists(path.resolve("ingot.yaml"))) {
            throw new IngotException(path + ": a run that has saved no model yet; it does at its first checkpoint"
                    + " (train.checkpoint-every) or when it is stopped");
        }
        throw new IngotException(path + ": no model of a known kind in this folder; expected config.json with"
                + " model.safetensors or pytorch_model.bin, or model.onnx; it has " + names(path));
    }

    private static String names(Path folder) {
        try (Stream<Path> entries = Files.list(folder)) {
            List<String> names = entries.map(entry -> entry.getFileName().toString())
                    .sorted()
                    .toList();
            return names.isEmpty() ? "no files" : Listing.of(names);
        } catch (IOException e) {
            throw new IngotException(folder + ": cannot be listed: " + e.getMessage(), e);
        }
    }

    private static ModelFile file(Path path) {
        String name = path.getFileName().toString().toLowerCase(Locale.ROOT);
        byte[] head = head(path);
        if (name.endsWith(".safetensors") || (head.length > 8 && head[8] == '{' && head[6] == 0 && head[7] == 0)) {
            return new Tensors(path);
        }
        boolean hdf = head.length > 3 && head[1] == 'H' && head[2] == 'D' && head[3] == 'F';
        if (hdf || name.endsWith(".keras") || name.endsWith(".h5") || name.equals("model.json")) {
            return new Keras(path);
        }
        boolean zip = head.length > 3 && head[0] == 'P' && head[1] == 'K';
        if (zip || name.endsWith(".pt") || name.endsWith(".pth") || name.endsWith(".bin")) {
            return new Pickled(path);
        }
        if (name.endsWith(".onnx") || isOnnx(head)) {
            return new Onnx(path);
        }
        throw new IngotException(path + ": not a model of a known kind; expected an ONNX file (.onnx), a safetensors"
                + " file, a file of torch.save (.pt, .pth, pytorch_model.bin), a file of Keras (.keras, .h5,"
                + " model.json), or a Hugging Face folder");
    }

    private static byte[] head(Path path) {
        try (InputStream in = Files.newInputStream(path)) {
            return in.readNBytes(16);
        } catch (IOException e) {
            throw new IngotException(path + ": cannot be read: " + e.getMessage(), e);
        }
    }

    /// It begins as a ModelProto does: field 1, the IR version, then one of the next few fields.
    private static boolean isOnnx(byte[] head) {
        return head.length > 2
                && head[0] == 0x08
                && head[1] > 0
                && head[1] < 32
                && (head[2] & 7) == 2
                && head[2] >>> 3 < 9;
    }
}
