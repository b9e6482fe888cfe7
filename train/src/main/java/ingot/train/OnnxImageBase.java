package ingot.train;

import ingot.formats.OnnxImageClassifier;
import ingot.ir.IngotException;
import ingot.ir.Type;
import ingot.nn.Network;
import ingot.nn.Parameter;
import ingot.store.BaseWeights;
import ingot.store.Safetensors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// A classifier of images in an ONNX file. Tuned, it is the same file beside `model.safetensors`, which has the weights
/// that the file goes on needing under its names, and those of the head.
record OnnxImageBase(OnnxImageClassifier model, BaseWeights weights) implements BaseModel {
    /// The graph of a tuned model.
    static final String GRAPH = "model.onnx";

    /// The weights of the file as it was, in the folder of the run: they are read from there whenever they are needed.
    private static final String WEIGHTS = "base.safetensors";

    /// @param size of an image where the file leaves it open
    /// @param run the folder of the run
    static OnnxImageBase open(Path file, int size, Path run) {
        OnnxImageClassifier model = OnnxImageClassifier.open(file, size);
        try {
            Files.createDirectories(run);
            Path weights = run.resolve(WEIGHTS);
            Path partial = run.resolve(WEIGHTS + ".partial");
            Safetensors.write(partial, Map.of(), model.types(), model.contents());
            Files.move(partial, weights, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
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
    public Map<String, String> names(List<Parameter> parameters) {
        Map<String, String> names = new LinkedHashMap<>();
        for (Parameter parameter : parameters) {
            if (weights.contains(parameter.name())) {
                names.put(parameter.name(), parameter.name());
            }
        }
        return names;
    }

    @Override
    public void save(Path to, Network network, List<String> labels, Safetensors.Contents contents) {
        SequencedMap<String, Type> types = new LinkedHashMap<>();
        network.weights().forEach(parameter -> types.put(parameter.name(), parameter.type()));
        try {
            Files.createDirectories(to);
            Path graph = to.resolve(GRAPH);
            if (!Files.exists(graph)) {
                Path partial = to.resolve(GRAPH + ".partial");
                Files.copy(model.path(), partial, StandardCopyOption.REPLACE_EXISTING);
                Files.move(partial, graph, StandardCopyOption.ATOMIC_MOVE);
            }
        } catch (IOException e) {
            throw new IngotException("run: cannot copy " + model.path() + " to " + to + ": " + e.getMessage(), e);
        }
        Safetensors.write(to.resolve("model.safetensors"), Map.of("format", "pt"), types, contents);
    }

    @Override
    public void close() {
        weights.close();
        model.close();
    }
}
