package ingot.train;

import ingot.compiler.Backend;
import ingot.data.TextTokenizer;
import ingot.ir.IngotException;
import ingot.nn.Head;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/// Asks a fine-tuned encoder about texts: the class, the number, or the class of each word.
///
/// ```java
/// try (var predictor = Predictor.open(Path.of("runs/spam"), backend)) {
///     Prediction prediction = predictor.predict(List.of("You have won!")).getFirst();
/// }
/// ```
public final class Predictor implements AutoCloseable {
    private static final int STEP = 16;

    private final EncoderFolder folder;
    private final TextTokenizer tokenizer;
    private final Backend backend;
    private final int most;

    private Predictor(EncoderFolder folder, TextTokenizer tokenizer, Backend backend, int most) {
        this.folder = folder;
        this.tokenizer = tokenizer;
        this.backend = backend;
        this.most = most;
    }

    /// Opens the run of a fine-tuning, or a Hugging Face folder of an encoder with a head.
    public static Predictor open(Path path, Backend backend) {
        refuseOthers(path);
        EncoderFolder folder = EncoderFolder.open(path);
        try {
            if (folder.encoder().head().kind() == Head.Kind.NONE) {
                throw new IngotException("predict: the model of " + path + " has no head: it turns texts into vectors;"
                        + " ask it with ingot embed");
            }
            int most = folder.length() > 0 ? folder.length() : folder.encoder().context();
            TextTokenizer tokenizer =
                    folder.length() > 0 ? TextTokenizer.cutting(path, most) : TextTokenizer.open(path, most);
            folder.checkTokens(tokenizer.vocabularySize());
            return new Predictor(folder, tokenizer, backend, most);
        } catch (RuntimeException e) {
            folder.close();
            throw e;
        }
    }

    private static void refuseOthers(Path path) {
        Path file = path.resolve("ingot.yaml");
        if (!Files.exists(file)) {
            return;
        }
        try {
            String yaml = Files.readString(file);
            if (!ConfigText.root(yaml, List.of()).has("task")) {
                throw new IngotException(
                        "predict: " + path + " is the run of a language model; ask it with ingot" + " generate");
            }
            if (FineTuneConfig.parse(yaml, List.of()).task() == FineTuneConfig.Goal.LANGUAGE_MODEL) {
                throw new IngotException(
                        "predict: the task of " + path + " is language-model; ask it with ingot" + " generate");
            }
        } catch (java.io.IOException e) {
            throw new IngotException("predict: cannot read " + file + ": " + e.getMessage(), e);
        }
    }

    /// What the model says about each text.
    public List<Prediction> predict(List<String> texts) {
        return predict(texts, List.of());
    }

    /// What the model says about pairs of texts; no second ones: about the first ones alone.
    public List<Prediction> predict(List<String> texts, List<String> second) {
        boolean tags = folder.encoder().head().kind() == Head.Kind.TOKEN_CLASS;
        List<TextTokenizer.Encoded> encoded = new ArrayList<>();
        for (int i = 0; i < texts.size(); i++) {
            encoded.add(
                    tags
                            ? tokenizer.encodeWords(words(texts.get(i)), most)
                            : second.isEmpty()
                                    ? tokenizer.encode(folder.content().of(texts.get(i)))
                                    : tokenizer.encode(texts.get(i), second.get(i)));
        }
        int longest = encoded.stream().mapToInt(one -> one.ids().length).max().orElse(1);
        int length = folder.length() > 0
                ? folder.length()
                : Math.clamp(
                        Math.ceilDiv(longest, STEP) * STEP, 1, folder.encoder().context());
        EncoderGraphs graphs = new EncoderGraphs(folder.encoder(), length, false);
        Prediction[] predictions = new Prediction[texts.size()];
        Predictions.run(
                graphs,
                new Texts(encoded, tokenizer.padding()),
                Inference.over(folder.weights(), backend),
                new Callback() {},
                (index, logits) -> predictions[index] = of(logits, texts.get(index), encoded.get(index)));
        return Arrays.asList(predictions);
    }

    private static List<String> words(String text) {
        return List.of(text.strip().split("\\s+"));
    }

    private Prediction of(float[] logits, String text, TextTokenizer.Encoded encoded) {
        int labels = folder.encoder().head().labels();
        List<String> names = folder.labels().size() == labels
                ? folder.labels()
                : IntStream.range(0, labels).mapToObj(i -> "LABEL_" + i).toList();
        return switch (folder.encoder().head().kind()) {
            case CLASS ->
                new Prediction.OfClass(
                        names,
                        Arrays.stream(Measured.probabilities(logits, 0, labels))
                                .boxed()
                                .toList());
            case NUMBERS -> new Prediction.OfNumber(logits[0]);
            case TOKEN_CLASS -> tagged(logits, labels, names, words(text), encoded.words());
            case NONE -> throw new IllegalStateException("no head");
        };
    }

    private static Prediction tagged(float[] logits, int labels, List<String> names, List<String> words, int[] owners) {
        List<String> seen = new ArrayList<>();
        List<String> tags = new ArrayList<>();
        List<Double> probabilities = new ArrayList<>();
        for (int t = 0; t < owners.length && t * labels < logits.length; t++) {
            if (owners[t] == seen.size()) {
                int best = Measured.best(logits, t * labels, labels);
                seen.add(words.get(owners[t]));
                tags.add(names.get(best));
                probabilities.add(Measured.probabilities(logits, t * labels, labels)[best]);
            }
        }
        return new Prediction.OfWords(seen, tags, probabilities);
    }

    @Override
    public void close() {
        tokenizer.close();
        folder.close();
    }
}
