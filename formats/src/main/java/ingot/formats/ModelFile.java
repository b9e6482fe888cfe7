package ingot.formats;

import ingot.ir.IngotException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/// A model in somebody's files, told apart by what they look like.
public sealed interface ModelFile {
    Path path();

    /// One file in the format of ONNX, perhaps with data in others beside it.
    record Onnx(Path path) implements ModelFile {}

    static ModelFile detect(Path path) {
        if (!Files.exists(path)) {
            throw new IngotException(path + ": no such file or folder");
        }
        if (Files.isRegularFile(path) && isOnnx(path)) {
            return new Onnx(path);
        }
        throw new IngotException(path + ": not a model of a known kind; expected an ONNX file (.onnx)");
    }

    /// By name, or because it begins as a ModelProto does: field 1, the IR version, then one of the next few fields.
    private static boolean isOnnx(Path path) {
        if (path.getFileName().toString().toLowerCase(Locale.ROOT).endsWith(".onnx")) {
            return true;
        }
        try (InputStream in = Files.newInputStream(path)) {
            byte[] head = in.readNBytes(3);
            return head.length == 3
                    && head[0] == 0x08
                    && head[1] > 0
                    && head[1] < 32
                    && (head[2] & 7) == 2
                    && head[2] >>> 3 < 9;
        } catch (IOException e) {
            throw new IngotException(path + ": cannot be read: " + e.getMessage(), e);
        }
    }
}
