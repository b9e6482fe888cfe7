package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Compiler;
import ingot.data.Image;
import ingot.data.ImagePreparation;
import ingot.formats.HuggingFace;
import ingot.formats.OnnxImageClassifier;
import ingot.ir.IngotException;
import ingot.nn.ImageClassifier;
import ingot.nn.Parameter;
import ingot.runtime.Executor;
import ingot.runtime.PackedWeights;
import ingot.runtime.StageUpdates;
import ingot.store.BaseWeights;
import ingot.store.RamStore;
import ingot.store.WeightStore.Key;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.stream.IntStream;

/// What is on an image, by a model in a folder: that of a run, or a Hugging Face one.
///
/// ```java
/// try (var labeler = ImageLabeler.open(Path.of("runs/fashion-mnist"), backend)) {
///     List<ImageLabeler.Guess> guesses = labeler.guess(Path.of("coat.png"));
/// }
/// ```
public final class ImageLabeler implements AutoCloseable {
    private final Runnable end;
    private final List<String> labels;
    private final ImagePreparation preparation;
    private final RamStore store = new RamStore();
    private final PackedWeights packed = new PackedWeights();
    private final Executor executor;

    /// A class and its probability.
    public record Guess(String label, double probability) {}

    /// A model, what reads its weights by name, what its classes are called, and what closes its files.
    private record Found(
            ImageClassifier model, BiConsumer<String, MemorySegment> weights, List<String> labels, Runnable end) {}

    private ImageLabeler(Path folder, Found found, Backend backend) {
        ImageClassifier model = found.model();
        if (model.labels() == 0) {
            throw new IngotException("model: " + folder + " has no head, so it knows no classes; fine-tune it first");
        }
        end = found.end();
        labels = found.labels().size() == model.labels()
                ? found.labels()
                : IntStream.range(0, model.labels()).mapToObj(Integer::toString).toList();
        preparation = ImageProcessor.read(folder, model);
        for (Parameter parameter : model.weights()) {
            Key key = Key.weight(parameter.name());
            store.create(key, parameter.type());
            found.weights().accept(parameter.name(), store.pin(key));
            store.release(key, true);
        }
        executor = new Executor(Compiler.inference(model.logitsGraph(1)), backend, store, packed);
    }

    /// True if a folder has a model of images.
    public static boolean fits(Path folder) {
        return Files.exists(folder.resolve(ImageProcessor.NAME));
    }

    public static ImageLabeler open(Path folder, Backend backend) {
        Found found = find(folder);
        try {
            return new ImageLabeler(folder, found, backend);
        } catch (RuntimeException e) {
            found.end().run();
            throw e;
        }
    }

    private static Found find(Path folder) {
        Path graph = folder.resolve(TunedOnnx.GRAPH);
        if (!Files.exists(graph)) {
            HuggingFace files = HuggingFace.open(folder);
            try {
                return new Found(files.imageClassifier(), files.weights()::read, files.labels(), files::close);
            } catch (RuntimeException e) {
                files.close();
                throw e;
            }
        }
        List<String> labels = TunedFile.read(folder).labels();
        OnnxImageClassifier model = OnnxImageClassifier.open(graph, ImageProcessor.size(folder));
        BaseWeights weights = BaseWeights.open(folder);
        return new Found(
                model.withLabels(labels.size()), (name, memory) -> weights.read(name, 0, memory), labels, () -> {
                    weights.close();
                    model.close();
                });
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
        packed.close();
        end.run();
        store.close();
    }
}
