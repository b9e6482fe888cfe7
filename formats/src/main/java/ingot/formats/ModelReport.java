package ingot.formats;

import ingot.ir.IngotException;
import ingot.ir.Type;
import ingot.nn.Head;
import ingot.nn.ImageClassifier;
import ingot.nn.LanguageModel;
import ingot.nn.Lora;
import ingot.nn.Network;
import ingot.nn.TextEncoder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SequencedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/// What a folder of Hugging Face, or a file of tensors, holds, without its data. ONNX has an [OnnxReport].
///
/// @param facts what is known about the model, a line each
/// @param tensors names and types as the files have them
/// @param unused tensors that the model has no use for
/// @param problem why it cannot be used here, everything at once; null if it can
public record ModelReport(
        String format,
        List<String> facts,
        SequencedMap<String, Type> tensors,
        List<String> unused,
        @Nullable String problem) {
    public ModelReport {
        facts = List.copyOf(facts);
        unused = List.copyOf(unused);
    }

    public static ModelReport folder(Path folder) {
        ModelConfig config = ModelConfig.read(folder.resolve("config.json"));
        List<String> named = config.texts("architectures");
        String format = "Hugging Face folder, " + config.text("model_type", "no model_type")
                + (named.isEmpty() ? "" : " (" + String.join(", ", named) + ")");
        try (HuggingFace files = HuggingFace.open(folder)) {
            List<String> facts = new ArrayList<>(facts(files.model()));
            if (!files.labels().isEmpty()) {
                facts.add("labels " + Listing.of(files.labels()));
            }
            facts.add(Files.exists(folder.resolve("tokenizer.json")) ? "with a tokenizer.json" : "no tokenizer.json");
            return new ModelReport(format, facts, files.weights().stored(), files.unused(), null);
        } catch (IngotException e) {
            try (WeightSource tensors = WeightFiles.open(folder)) {
                return new ModelReport(format, List.of(), tensors.stored(), List.of(), e.getMessage());
            }
        }
    }

    public static ModelReport adapter(ModelFile.Adapter file) {
        try (PeftAdapter adapter = PeftAdapter.open(file.path())) {
            Lora.Settings settings = adapter.settings();
            return new ModelReport(
                    "PEFT adapter, rank " + settings.rank() + ", alpha " + settings.alpha(),
                    List.of(
                            "of the model " + (adapter.base().isEmpty() ? "that nobody names" : adapter.base()),
                            "beside " + Listing.of(settings.targets())),
                    adapter.tensors().stored(),
                    List.of(),
                    null);
        }
    }

    public static ModelReport tensors(ModelFile.Tensors file) {
        try (WeightSource tensors = new SafetensorsWeights(file.path())) {
            return new ModelReport("safetensors", beside(file), tensors.stored(), List.of(), null);
        }
    }

    public static ModelReport pickled(ModelFile.Pickled file) {
        try (WeightSource tensors = StateDict.open(file.path())) {
            return new ModelReport("PyTorch state dict", beside(file), tensors.stored(), List.of(), null);
        }
    }

    private static List<String> beside(ModelFile file) {
        Path config = file.path().resolveSibling("config.json");
        return List.of(
                Files.exists(config)
                        ? "weights of the model that " + config + " describes: import its folder"
                        : "weights alone: a config.json beside them says what model they are of");
    }

    private static List<String> facts(Network model) {
        return switch (model) {
            case LanguageModel m -> List.of("continues texts: " + m.vocabulary() + " tokens, context " + m.context());
            case TextEncoder m ->
                List.of("reads texts: " + m.vocabulary() + " tokens, context " + m.context() + ", width " + m.width()
                        + (m.head().kind() == Head.Kind.NONE
                                ? ", no head"
                                : ", " + m.head().labels() + " labels"));
            case ImageClassifier m ->
                List.of("reads images " + m.channels() + " × " + m.imageSize() + " × " + m.imageSize()
                        + (m.labels() == 0 ? ", no head" : ", " + m.labels() + " labels"));
            default -> List.of();
        };
    }

    public long elements() {
        return tensors.values().stream()
                .mapToLong(type -> type.shape().elements())
                .sum();
    }

    public long bytes() {
        return tensors.values().stream().mapToLong(Type::bytes).sum();
    }

    /// Tensors that differ in the numbers of their names only, in one line: `h.*.ln_1.weight f32[8] × 12`.
    public static List<String> summary(SequencedMap<String, Type> tensors) {
        SequencedMap<String, Integer> counts = new java.util.LinkedHashMap<>();
        TreeMap<String, String> single = new TreeMap<>();
        tensors.forEach((name, type) -> {
            String pattern = name.replaceAll("(?<=^|\\.|_)\\d+(?=\\.|_|$)", "*") + " " + type;
            counts.merge(pattern, 1, Integer::sum);
            single.put(pattern, name + " " + type);
        });
        List<String> lines = new ArrayList<>();
        counts.forEach((pattern, count) ->
                lines.add(count == 1 ? String.valueOf(single.get(pattern)) : pattern + " × " + count));
        return lines;
    }
}
