package ingot.train;

import ingot.formats.OnnxImageClassifier;
import ingot.ir.IngotException;
import ingot.nn.Network;
import ingot.store.BaseWeights;
import ingot.store.Safetensors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/// A classifier of images in an ONNX file. Tuned, it is the same file beside `model.safetensors`, which has the weights
/// that the file goes on needing under its names, and those of the head.
record OnnxImageBase(OnnxImageClassifier model, BaseWeights weights) implements BaseModel {
    /// The weights of the file as it was, in the folder of the run: they are read from there whenever they are needed.
    private static final String WEIGHTS = "base.safetensors";

    /// @param size of an image where the file leaves it open
    /// @param run the folder of the run
    static OnnxImageBase open(Path file, int size, Path run) {
        OnnxImageClassifier model = OnnxImageClassifier.open(file, size);
        try {
            Files.createDirectories(run);
            Path weights = run.resolve(WEIGHTS);
            Safetensors.write(weights, Map.of(), model.types(), model.contents());
            return new OnnxImageBase(model, BaseWeights.open(weights));
        } catch (IOException e) {
            model.close();
            throw new IngotException(
                    "run: cannot write the weights of " + file + " to " + run + ": " + e.getMessage(), e);
        } catch (RuntimeException e) {
            model.close();
            throw e;
        }
    }

    @Override
    public Network network() {
        return model;
    }

    @Override
    public String describe() {
        return "the ONNX classifier " + model.path().getFileName();
    }

    @Override
    public Path folder() {
        Path parent = model.path().toAbsolutePath().getParent();
        return parent == null ? Path.of("") : parent;
    }

    @Override
    public void save(Path to, Network network, List<String> labels, Safetensors.Contents contents) {
        TunedOnnx.save(model.path(), to, network, contents);
    }

    @Override
    public void close() {
        weights.close();
        model.close();
    }
}
