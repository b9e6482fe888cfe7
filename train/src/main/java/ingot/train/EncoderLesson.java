package ingot.train;

import ingot.data.Batches;
import ingot.runtime.Executor;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// An encoder with a head that learns classes or numbers from texts.
///
/// @param classWeights how much a target of each class counts; null: all the same
final class EncoderLesson extends TaughtLesson {
    private final EncoderGraphs graphs;
    private final Examples training;
    private final Examples heldOut;
    private final Labels labels;
    private final float @Nullable [] classWeights;
    private final Task task;

    /// Texts with what is expected of each.
    record Examples(Texts texts, Targets targets) {}

    EncoderLesson(
            EncoderGraphs graphs,
            Examples training,
            Examples heldOut,
            Labels labels,
            float @Nullable [] classWeights,
            Start start,
            RunConfig.TrainConfig train,
            Map<String, String> fingerprints,
            DataSummary summary,
            Untaught.Writer writer) {
        super(fingerprints, summary, writer);
        this.graphs = graphs;
        this.training = training;
        this.heldOut = heldOut;
        this.labels = labels;
        this.classWeights = classWeights;
        Batches batches = new Batches(training.texts().count(), train.batch(), train.seed());
        task = task(graphs, start, (step, executor) -> fill(batches, step, executor));
    }

    /// The task of such a lesson.
    static Task task(EncoderGraphs graphs, Start start, Task.Feed feed) {
        boolean random = Task.draws(graphs.loss(1, true));
        return new Task(
                graphs.model().parameters(), rows -> graphs.loss(rows, random), graphs.batched(), random, feed, start);
    }

    private long fill(Batches batches, long step, Executor executor) {
        double counted = 0;
        int length = graphs.length();
        for (int row = 0; row < batches.size(); row++) {
            int index = batches.sequence(step, row);
            training.texts().write(index, executor, row, length, graphs.typed());
            counted += training.targets().write(index, executor, row, length, classWeights);
        }
        executor.input("scale").set(ValueLayout.JAVA_FLOAT, 0, counted == 0 ? 0 : (float) (1 / counted));
        return (long) batches.size() * length;
    }

    @Override
    public Task task() {
        return task;
    }

    @Override
    public int rows() {
        return training.texts().count();
    }

    @Override
    public Evaluation evaluate(Inference inference, Callback callback) {
        Measured measured = switch (heldOut.targets()) {
            case Targets.Classes classes -> new Measured.OfClasses(labels, classes);
            case Targets.Tags tags -> new Measured.OfTags(labels, tags);
            case Targets.Numbers numbers -> new Measured.OfNumbers(numbers);
        };
        Predictions.run(graphs, heldOut.texts(), inference, callback, measured::add);
        return measured.result();
    }
}
