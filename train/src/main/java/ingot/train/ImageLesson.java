package ingot.train;

import ingot.data.Batches;
import ingot.data.ImageSet;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Value;
import ingot.nn.ImageClassifier;
import ingot.runtime.Executor;
import ingot.runtime.StageUpdates;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

/// A network that learns the classes of images.
final class ImageLesson extends TaughtLesson {
    /// Images that are classified at a time.
    static final int AT_ONCE = 64;

    private final ImageClassifier model;
    private final ImageSet training;
    private final ImageSet heldOut;
    private final Task task;

    ImageLesson(
            ImageClassifier model,
            ImageSet training,
            ImageSet heldOut,
            Start start,
            RunConfig.TrainConfig train,
            Map<String, String> fingerprints,
            DataSummary summary,
            Untaught.Writer writer) {
        super(fingerprints, summary, writer);
        this.model = model;
        this.training = training;
        this.heldOut = heldOut;
        Batches batches = new Batches(training.count(), train.batch(), train.seed());
        task = task(model, start, (step, executor) -> fill(batches, train.seed(), step, executor));
    }

    /// The task of such a lesson. Norms whose statistics are frozen use them.
    static Task task(ImageClassifier model, Start start, Task.Feed feed) {
        return new Task(
                model.weights(),
                rows -> model.lossGraph(rows, model.drops(), start.frozen()),
                Set.of("pixels", "targets"),
                model.drops(),
                feed,
                start);
    }

    /// Rows are made side by side: images may have to be decoded.
    private long fill(Batches batches, long seed, long step, Executor executor) {
        IntStream.range(0, batches.size()).parallel().forEach(row -> {
            int index = batches.sequence(step, row);
            write(training.numbers(index, seed, batches.epoch(step, row)), executor, row);
            executor.input("targets").setAtIndex(ValueLayout.JAVA_INT, row, training.label(index));
        });
        executor.input("scale").set(ValueLayout.JAVA_FLOAT, 0, 1f / batches.size());
        return batches.size();
    }

    private static void write(float[] numbers, Executor executor, int row) {
        MemorySegment pixels = executor.input("pixels");
        MemorySegment.copy(numbers, 0, pixels, ValueLayout.JAVA_FLOAT, 4L * row * numbers.length, numbers.length);
    }

    @Override
    public Task task() {
        return task;
    }

    @Override
    public int rows() {
        return training.count();
    }

    /// Of products and convolutions, with their gradients.
    @Override
    public double flops() {
        double products = 0;
        for (Value value : model.logitsGraph(1).values()) {
            long terms = switch (value.op()) {
                case Op.Dot dot ->
                    dot.contractA().stream()
                            .mapToLong(axis -> dot.a().shape().dim(axis))
                            .reduce(1, (a, b) -> a * b);
                case Op.Convolution convolution -> {
                    Shape kernel = convolution.kernel().shape();
                    yield kernel.elements() / kernel.dim(0);
                }
                default -> 0;
            };
            products += (double) terms * value.shape().elements();
        }
        return 6 * products;
    }

    @Override
    public Evaluation evaluate(Inference inference, Callback callback) {
        int[] right = IntStream.range(0, heldOut.count()).map(heldOut::label).toArray();
        Measured measured = new Measured.OfClasses(new Labels(heldOut.classes()), new Targets.Classes(right));
        run(model, heldOut, inference, measured::add, callback);
        return measured.result();
    }

    /// Takes the logits of one image.
    interface Taker {
        void take(int index, float[] logits);
    }

    /// Classifies images in order.
    static void run(ImageClassifier model, ImageSet images, Inference inference, Taker taker, Callback callback) {
        int count = images.count();
        try (Inference.Rows rows = inference.open(model::logitsGraph, AT_ONCE, count)) {
            for (int from = 0; from < count; from += rows.size()) {
                int first = from;
                int some = Math.min(rows.size(), count - from);
                IntStream.range(0, some)
                        .parallel()
                        .forEach(row -> write(images.numbers(first + row), rows.executor(), row));
                rows.executor().run(StageUpdates.NONE);
                MemorySegment logits = rows.executor().output("logits");
                for (int row = 0; row < some; row++) {
                    float[] one = new float[model.labels()];
                    MemorySegment.copy(logits, ValueLayout.JAVA_FLOAT, 4L * row * one.length, one, 0, one.length);
                    taker.take(from + row, one);
                }
                callback.onPhase("evaluating", from + some, count);
            }
        }
    }
}
