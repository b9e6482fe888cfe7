package ingot.cli;

import ingot.compiler.Backend;
import ingot.cpu.Autotuner;
import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.ir.IngotException;
import ingot.train.ImageLabeler;
import ingot.train.Prediction;
import ingot.train.Predictor;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `ingot predict`.
@Command(
        name = "predict",
        mixinStandardHelpOptions = true,
        header = "Asks a fine-tuned model about texts or images.",
        description = {
            "",
            "Prints the label of each text and how probable it is; the number, if the model",
            "learned numbers; the label of each word, if it learned those. Of an image it",
            "prints the likeliest classes.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  ingot predict runs/spam mail.txt other.txt",
            "  ingot predict runs/spam --text 'You have won a prize!' --json",
            "  ingot predict runs/fashion-mnist coat.png boot.jpg"
        })
final class Predict implements Callable<Integer> {
    private final Screen screen;

    @Parameters(
            index = "0",
            paramLabel = "RUN",
            description = "The run of a fine-tuning, or a Hugging Face folder of an encoder with a head.")
    private String run = "";

    @Parameters(index = "1..*", paramLabel = "FILE", description = "Texts or images to ask about.")
    private List<String> files = List.of();

    @Option(names = "--text", paramLabel = "TEXT", description = "A text itself; may be given several times.")
    private List<String> texts = List.of();

    @Option(
            names = "--second",
            paramLabel = "TEXT",
            description = "The second text of a pair, one for each --text, if the model learned pairs.")
    private List<String> second = List.of();

    @Option(
            names = "--top",
            paramLabel = "N",
            description = "How many classes of an image are printed.",
            defaultValue = "3")
    private int top = 3;

    @Option(names = "--json", description = "One line of JSON for each text.")
    private boolean json;

    @Option(names = "--threads", paramLabel = "N", description = "0: one per core. Never changes the result.")
    private int threads = 0;

    Predict(Screen screen) {
        this.screen = screen;
    }

    @Override
    public Integer call() {
        Path folder = ConfigFile.folder(run);
        try (TilePool pool = new TilePool(Threads.of(threads))) {
            Backend backend = new CpuBackend(pool, Autotuner.known());
            return ImageLabeler.fits(folder) ? images(folder, backend) : texts(folder, backend);
        }
    }

    private int images(Path folder, Backend backend) {
        if (files.isEmpty()) {
            throw new IngotException("predict: name an image, such as ingot predict " + run + " image.png");
        }
        try (ImageLabeler labeler = ImageLabeler.open(folder, backend)) {
            for (String file : files) {
                String guesses = labeler.guess(ConfigFile.path(file)).stream()
                        .limit(Math.max(1, top))
                        .map(guess ->
                                String.format(Locale.ROOT, "%s %.1f %%", guess.label(), 100 * guess.probability()))
                        .collect(Collectors.joining("   "));
                screen.line((files.size() == 1 ? "" : file + "   ") + guesses);
            }
        }
        return 0;
    }

    private int texts(Path folder, Backend backend) {
        List<String> names = new ArrayList<>();
        List<String> asked = new ArrayList<>();
        for (String file : files) {
            names.add(file);
            asked.add(read(ConfigFile.path(file)));
        }
        for (String text : texts) {
            names.add(text);
            asked.add(text);
        }
        if (asked.isEmpty()) {
            throw new IngotException("predict: nothing to ask about; name files, or give a text with --text");
        }
        if (!second.isEmpty() && (second.size() != texts.size() || !files.isEmpty())) {
            throw new IngotException("predict: " + second.size() + " --second for " + asked.size()
                    + " texts; give one for each --text, and no files");
        }
        try (Predictor predictor = Predictor.open(folder, backend)) {
            List<Prediction> predictions = predictor.predict(asked, second);
            for (int i = 0; i < predictions.size(); i++) {
                String line = json
                        ? predictions.get(i).json(names.get(i))
                        : text(predictions.get(i)) + "  " + screen.dim(brief(names.get(i)));
                screen.line(line);
            }
        }
        return 0;
    }

    private String text(Prediction prediction) {
        return switch (prediction) {
            case Prediction.OfClass one ->
                screen.bold(one.label()) + String.format(Locale.ROOT, " %.4f", one.probability()) + others(one);
            case Prediction.OfNumber one -> screen.bold(String.format(Locale.ROOT, "%.4f", one.value()));
            case Prediction.OfWords words ->
                IntStream.range(0, words.words().size())
                        .mapToObj(i -> words.words().get(i) + "/"
                                + screen.bold(words.labels().get(i)))
                        .collect(Collectors.joining(" "));
        };
    }

    /// `(ham 0.0123)`.
    private static String others(Prediction.OfClass one) {
        return IntStream.range(0, one.labels().size())
                .filter(i -> !one.labels().get(i).equals(one.label()))
                .mapToObj(i -> one.labels().get(i)
                        + String.format(
                                Locale.ROOT, " %.4f", one.probabilities().get(i)))
                .collect(Collectors.joining(", ", " (", ")"));
    }

    private static String brief(String name) {
        String line = name.replaceAll("\\s+", " ");
        return line.length() > 60 ? line.substring(0, 60) + "…" : line;
    }

    /// Bytes that are no UTF-8 become U+FFFD, as in training.
    private static String read(Path file) {
        try {
            return new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new IngotException(
                    "predict: cannot read " + file + ": " + (Files.exists(file) ? e.getMessage() : "no such file"), e);
        }
    }
}
