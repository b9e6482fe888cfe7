package ingot.train;

import ingot.formats.HuggingFace;
import ingot.formats.OnnxTextEncoder;
import ingot.ir.IngotException;
import ingot.ir.Type;
import ingot.nn.TextEncoder;
import ingot.store.RamStore;
import ingot.store.Safetensors;
import ingot.store.WeightStore;
import ingot.store.WeightStore.Key;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/// A text encoder in a folder with its weights in memory: a Hugging Face folder, or what fine-tuning made of an ONNX
/// file.
///
/// @param content what texts are
/// @param labels of its head
/// @param length tokens that it was trained with; 0 if nobody says
record EncoderFolder(
        Path folder,
        TextEncoder encoder,
        FineTuneConfig.Content content,
        List<String> labels,
        int length,
        RamStore store,
        AutoCloseable files)
        implements AutoCloseable {

    static EncoderFolder open(Path folder) {
        if (!Files.isDirectory(folder)) {
            throw new IngotException("model: no such folder: " + folder
                    + "; expected the run of a fine-tuning, or a Hugging Face folder of a text encoder");
        }
        boolean onnx = TunedOnnx.isIn(folder);
        boolean run = Files.exists(folder.resolve("ingot.yaml"));
        if (run && !onnx && !Files.exists(folder.resolve("config.json"))) {
            throw new IngotException("model: " + folder + " is a run that has saved no model yet; it does at its first"
                    + " checkpoint (train.checkpoint-every) or when it is stopped");
        }
        boolean tuned = Files.exists(folder.resolve(TunedFile.NAME));
        TunedFile file = tuned ? TunedFile.read(folder) : new TunedFile(List.of(), 0);
        RamStore store = new RamStore();
        try {
            return onnx ? onnx(folder, file, store) : huggingFace(folder, file, store);
        } catch (RuntimeException e) {
            store.close();
            throw e;
        }
    }

    private static EncoderFolder huggingFace(Path folder, TunedFile file, RamStore store) {
        HuggingFace files = HuggingFace.open(folder);
        try {
            TextEncoder encoder = files.encoder();
            files.weights().load(store);
            FineTuneConfig.Content content = file.length() > 0 && Files.exists(folder.resolve("ingot.yaml"))
                    ? config(folder).data().content()
                    : FineTuneConfig.Content.TEXT;
            List<String> labels = file.labels().isEmpty() ? files.labels() : file.labels();
            return new EncoderFolder(folder, encoder, content, labels, file.length(), store, files);
        } catch (RuntimeException e) {
            files.close();
            throw e;
        }
    }

    private static EncoderFolder onnx(Path folder, TunedFile file, RamStore store) {
        FineTuneConfig config = config(folder);
        OnnxTextEncoder encoder = TunedOnnx.encoder(folder, config, file);
        Path weights = folder.resolve("model.safetensors");
        try (Safetensors stored = Safetensors.open(weights)) {
            Map<String, Type> found = stored.tensors();
            encoder.parameters().forEach(parameter -> {
                if (!parameter.type().equals(found.get(parameter.name()))) {
                    throw new IngotException(weights + ": " + parameter.name() + " is "
                            + (found.containsKey(parameter.name()) ? found.get(parameter.name()) : "missing")
                            + ", expected " + parameter.type() + "; the file does not belong to " + TunedOnnx.GRAPH);
                }
                Key key = Key.weight(parameter.name());
                store.create(key, parameter.type());
                stored.readInto(parameter.name(), store.pin(key));
                store.release(key, true);
            });
            return new EncoderFolder(
                    folder, encoder, config.data().content(), file.labels(), file.length(), store, encoder);
        } catch (RuntimeException e) {
            encoder.close();
            throw e;
        }
    }

    static FineTuneConfig config(Path folder) {
        Path file = folder.resolve("ingot.yaml");
        try {
            return FineTuneConfig.parse(Files.readString(file), List.of());
        } catch (IOException e) {
            throw new IngotException("model: cannot read " + file + ": " + e.getMessage(), e);
        }
    }

    WeightStore weights() {
        return store;
    }

    /// Refuses a tokenizer that cannot belong to the model.
    void checkTokens(int tokens) {
        if (tokens > encoder.vocabulary()) {
            throw new IngotException("model: " + folder + " has a tokenizer.json of " + tokens
                    + " tokens, but its model knows " + encoder.vocabulary() + "; they do not belong together");
        }
    }

    @Override
    public void close() {
        store.close();
        try {
            files.close();
        } catch (Exception e) {
            throw new IngotException("model: cannot close " + folder + ": " + e.getMessage(), e);
        }
    }
}
