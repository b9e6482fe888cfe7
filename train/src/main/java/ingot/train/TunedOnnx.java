package ingot.train;

import ingot.formats.OnnxTextEncoder;
import ingot.formats.PortableModel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/// What fine-tuning made of a text encoder in an ONNX file: the file as it was, and all weights beside it.
public final class TunedOnnx {
    private TunedOnnx() {}

    /// The tuned model with its head, to be written in another layout; empty for a folder that holds something else.
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
        return Files.exists(folder.resolve(OnnxBase.GRAPH)) && !Files.exists(folder.resolve("config.json"));
    }

    /// With the head that was trained.
    static OnnxTextEncoder encoder(Path folder, FineTuneConfig config, TunedFile file) {
        OnnxTextEncoder base = OnnxTextEncoder.open(
                folder.resolve(OnnxBase.GRAPH), OnnxBase.pooling(config.model().pooling()), 0);
        return base.withHead(TunedTrainee.head(config.task(), file.labels()));
    }
}
