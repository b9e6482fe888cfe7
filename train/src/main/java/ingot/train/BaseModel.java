package ingot.train;

import ingot.data.Corpus;
import ingot.data.Source;
import ingot.formats.BaseFiles;
import ingot.formats.HuggingFace;
import ingot.nn.Network;
import ingot.nn.Parameter;
import ingot.store.BaseWeights;
import ingot.store.Safetensors;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

/// A model that exists and is to be fine-tuned: what it is, where its weights lie, and how it is saved.
interface BaseModel extends AutoCloseable {
    /// As its files have it.
    Network network();

    /// In words, for the screen.
    String describe();

    /// Where a tokenizer.json is looked for if none is named.
    Path folder();

    /// Its weights where they lie, under the names in the files.
    BaseWeights weights();

    /// The names in the files of those parameters that they have; their own, if the files do not say otherwise.
    default Map<String, String> names(List<Parameter> parameters) {
        Map<String, String> names = new LinkedHashMap<>();
        for (Parameter parameter : parameters) {
            if (weights().contains(parameter.name())) {
                names.put(parameter.name(), parameter.name());
            }
        }
        return names;
    }

    /// The ids after which a text is complete; empty if it does not say.
    default Set<Integer> endTokens() {
        return Set.of();
    }

    /// Writes the tuned model in the layout of its origin.
    ///
    /// @param labels of its head; empty without one
    void save(Path to, Network model, List<String> labels, Safetensors.Contents contents);

    @Override
    void close();

    /// Opens what a configuration names.
    ///
    /// @param scratch a folder for what cannot be read where it lies
    static BaseModel open(FineTuneConfig config, Path scratch, Consumer<String> notice) {
        Path path = Source.file(config.model().from(), Corpus.defaultCache(), notice);
        if (path.getFileName().toString().endsWith(".onnx")) {
            return OnnxBase.open(path, config.model(), scratch);
        }
        return new FolderModel(HuggingFace.open(path), BaseFiles.open(path));
    }

    /// A Hugging Face folder.
    record FolderModel(HuggingFace files, BaseWeights weights) implements BaseModel {
        @Override
        public Network network() {
            return files.model();
        }

        @Override
        public String describe() {
            return files.type() + " of " + files.folder();
        }

        @Override
        public Path folder() {
            return files.folder();
        }

        @Override
        public Map<String, String> names(List<Parameter> parameters) {
            Map<String, String> names = new HashMap<>(files.stored(parameters));
            names.values().removeIf(stored -> !weights.contains(stored));
            return names;
        }

        @Override
        public Set<Integer> endTokens() {
            return files.endTokens();
        }

        @Override
        public void save(Path to, Network model, List<String> labels, Safetensors.Contents contents) {
            files.save(to, model, labels, contents);
        }

        @Override
        public void close() {
            weights.close();
            files.close();
        }
    }
}
