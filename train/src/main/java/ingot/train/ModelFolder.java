package ingot.train;

import ingot.data.Tokenizer;
import ingot.ir.IngotException;
import ingot.nn.Gpt;
import ingot.store.RamStore;
import ingot.store.WeightStore;
import java.nio.file.Files;
import java.nio.file.Path;

/// A trained model with its tokenizer: a run folder, or any Hugging Face GPT-2 folder.
record ModelFolder(Path path, Gpt model, Tokenizer tokenizer, WeightStore store) implements AutoCloseable {
    static ModelFolder open(Path path) {
        if (!Files.isDirectory(path)) {
            throw new IngotException("model: no such folder: " + path
                    + "; expected a run folder or a Hugging Face GPT-2 folder with config.json, model.safetensors and"
                    + " tokenizer.json");
        }
        if (Files.exists(path.resolve("ingot.yaml")) && !Files.exists(path.resolve("config.json"))) {
            throw new IngotException("model: " + path + " is a run that has saved no model yet; it does at its first"
                    + " checkpoint (train.checkpoint-every) or when it is stopped");
        }
        Gpt model = GptFiles.open(path);
        Tokenizer tokenizer = Tokenizer.open(path);
        RamStore store = new RamStore();
        try {
            if (tokenizer.vocabularySize() > model.vocabulary()) {
                throw new IngotException("model: " + path + " has a tokenizer.json of " + tokenizer.vocabularySize()
                        + " tokens, but its model knows " + model.vocabulary()
                        + " (vocab_size in config.json); they do not belong together");
            }
            GptFiles.load(path, model, store);
            return new ModelFolder(path, model, tokenizer, store);
        } catch (RuntimeException e) {
            tokenizer.close();
            store.close();
            throw e;
        }
    }

    @Override
    public void close() {
        tokenizer.close();
        store.close();
    }
}
