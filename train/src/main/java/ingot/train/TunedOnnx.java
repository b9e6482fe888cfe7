package ingot.train;

import ingot.formats.OnnxTextEncoder;
import ingot.formats.PortableModel;
import ingot.ir.IngotException;
import ingot.ir.Type;
import ingot.nn.Network;
import ingot.store.Safetensors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;

/// What fine-tuning made of an ONNX file: the file as it was, and in `model.safetensors` beside it the weights of the
/// tuned model, those of the file under its names.
public final class TunedOnnx {
    /// The graph of a tuned model.
    static final String GRAPH = "model.onnx";

    private TunedOnnx() {}

    /// A tuned text encoder with its head, to be written in another layout; empty for a folder that holds something
    /// else.
    public static Optional<PortableModel> open(Path folder) {
        if (!isIn(folder) || !Files.exists(folder.resolve(TunedFile.NAME))) {
            return Optional.empty();
        }
        OnnxTextEncoder encoder = encoder(folder, EncoderFolder.config(folder), TunedFile.read(folder));
        try {
            return Optional.of(PortableModel.of(folder, encoder, folder.resolve("model.safetensors"), encoder::close));
        } catch (RuntimeException e) {
            encoder.close();
            throw e;
        }
    }

    /// True if there is the graph of such a model, and no configuration that says otherwise.
    public static boolean isIn(Path folder) {
        return Files.exists(folder.resolve(GRAPH)) && !Files.exists(folder.resolve("config.json"));
    }

    /// With the head that was trained.
    static OnnxTextEncoder encoder(Path folder, FineTuneConfig config, TunedFile file) {
        OnnxTextEncoder base = OnnxTextEncoder.open(
                folder.resolve(GRAPH), OnnxBase.pooling(config.model().pooling()), 0);
        return base.withHead(TunedTrainee.head(config.task(), file.labels()));
    }

    /// Copies the file where it is not yet, and writes the weights of the tuned model.
    static void save(Path file, Path to, Network model, Safetensors.Contents contents) {
        SequencedMap<String, Type> types = new LinkedHashMap<>();
        model.weights().forEach(parameter -> types.put(parameter.name(), parameter.type()));
        try {
            Files.createDirectories(to);
            Path graph = to.resolve(GRAPH);
            if (!Files.exists(graph)) {
                Path partial = to.resolve(GRAPH + ".partial");
                Files.copy(file, partial, StandardCopyOption.REPLACE_EXISTING);
                Files.move(partial, graph, StandardCopyOption.ATOMIC_MOVE);
            }
        } catch (IOException e) {
            throw new IngotException("run: cannot copy " + file + " to " + to + ": " + e.getMessage(), e);
        }
        Safetensors.write(to.resolve("model.safetensors"), Map.of("format", "pt"), types, contents);
    }
}
