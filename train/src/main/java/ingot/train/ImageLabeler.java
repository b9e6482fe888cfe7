package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Compiler;
import ingot.data.Image;
import ingot.data.ImagePreparation;
import ingot.formats.HuggingFace;
import ingot.ir.IngotException;
import ingot.nn.ImageClassifier;
import ingot.runtime.Executor;
import ingot.runtime.StageUpdates;
import ingot.store.RamStore;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/// What is on an image, by a model in a folder: that of a run, or a Hugging Face one.
///
/// ```java
/// try (var labeler = ImageLabeler.open(Path.of("runs/fashion-mnist"), backend)) {
///     List<ImageLabeler.Guess> guesses = labeler.guess(Path.of("coat.png"));
/// }
/// ```
public final class ImageLabeler implements AutoCloseable {
    private final HuggingFace files;
    private final List<String> labels;
    private final ImagePreparation preparation;
    private final RamStore store = new RamStore();
    private final Executor executor;

    /// A class and its probability.
    public record Guess(String label, double probability) {}

    private ImageLabeler(HuggingFace files, Backend backend) {
        this.files = files;
        ImageClassifier model = files.imageClassifier();
        List<String> found = files.labels();
        labels = found.size() == model.labels()
                ? found
                : IntStream.range(0, model.labels()).mapToObj(Integer::toString).toList();
        preparation = ImageProcessor.read(files.folder(), model);
        ModelFolder.load(files, store);
        executor = new Executor(Compiler.inference(model.logitsGraph(1)), backend, store);
    }

    /// True if a folder has a model of images.
    public static boolean fits(Path folder) {
        return Files.exists(folder.resolve(ImageProcessor.NAME));
    }

    public static ImageLabeler open(Path folder, Backend backend) {
        HuggingFace files = HuggingFace.open(folder);
        try {
            if (files.imageClassifier().labels() == 0) {
                throw new IngotException(
                        "model: " + folder + " has no head, so it knows no classes; fine-tune it first");
            }
            return new ImageLabeler(files, backend);
        } catch (RuntimeException e) {
            files.close();
            throw e;
        }
    }

    /// All classes, the likeliest first.
    public List<Guess> guess(Path image) {
        return guess(Image.read(image));
    }

    public List<Guess> guess(Image image) {
        float[] numbers = preparation.numbers(preparation.fit(image));
        MemorySegment.copy(numbers, 0, executor.input("pixels"), ValueLayout.JAVA_FLOAT, 0, numbers.length);
        executor.run(StageUpdates.NONE);
        float[] logits = executor.output("logits").toArray(ValueLayout.JAVA_FLOAT);
        double[] probabilities = Measured.probabilities(logits, 0, labels.size());
        List<Guess> guesses = new ArrayList<>();
        for (int i = 0; i < labels.size(); i++) {
            guesses.add(new Guess(labels.get(i), probabilities[i]));
        }
        guesses.sort(Comparator.comparingDouble(Guess::probability).reversed());
        return guesses;
    }

    @Override
    public void close() {
        executor.close();
        files.close();
        store.close();
    }
}
