package ingot.train;

import ingot.formats.HuggingFace;
import ingot.ir.IngotException;
import ingot.nn.LanguageModel;
import ingot.nn.Network;
import ingot.store.RamStore;
import ingot.store.WeightStore;
import ingot.store.WeightStore.Key;
import java.nio.file.Files;
import java.nio.file.Path;

/// A trained model in a folder, a run's or any in the Hugging Face layout, and its weights in memory.
final class ModelFolder implements AutoCloseable {
    private final HuggingFace files;
    private final RamStore store = new RamStore();

    private ModelFolder(HuggingFace files) {
        this.files = files;
    }

    /// Opens the folder of a language model; the weights are not read yet.
    static ModelFolder open(Path path) {
        if (!Files.isDirectory(path)) {
            throw new IngotException("model: no such folder: " + path
                    + "; expected a run folder or a Hugging Face folder with config.json, model.safetensors and"
                    + " tokenizer.json");
        }
        if (Files.exists(path.resolve("ingot.yaml")) && !Files.exists(path.resolve("config.json"))) {
            throw new IngotException("model: " + path + " is a run that has saved no model yet; it does at its first"
                    + " checkpoint (train.checkpoint-every) or when it is stopped");
        }
        return new ModelFolder(HuggingFace.open(path));
    }

    HuggingFace files() {
        return files;
    }

    LanguageModel model() {
        return files.languageModel();
    }

    WeightStore store() {
        return store;
    }

    /// Reads the weights, if a tokenizer of so many tokens may belong to the model.
    void load(int tokens) {
        if (tokens > model().vocabulary()) {
            throw new IngotException("model: " + files.folder() + " has a tokenizer.json of " + tokens
                    + " tokens, but its model knows " + model().vocabulary()
                    + " (vocab_size in config.json); they do not belong together");
        }
        files.weights().load(store);
    }

    /// Writes a model made here with its weights from a store, in which nothing may be pending.
    static void save(Path folder, Network model, int endOfText, WeightStore store) {
        HuggingFace.save(folder, model, endOfText, (name, reader) -> store.read(Key.weight(name), reader));
    }

    @Override
    public void close() {
        files.close();
        store.close();
    }
}
