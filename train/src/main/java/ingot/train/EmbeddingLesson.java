package ingot.train;

import ingot.data.Batches;
import ingot.runtime.Executor;
import ingot.runtime.StageUpdates;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;

/// An encoder that learns vectors from pairs of texts. A batch is one shard: every text meets all others of it.
final class EmbeddingLesson extends TaughtLesson {
    private static final int TOKENS_AT_ONCE = 4096;

    private final EmbeddingGraphs graphs;
    private final Pairs training;
    private final Pairs heldOut;
    private final Task task;

    /// The first and the second texts of pairs, in the same order.
    record Pairs(Texts first, Texts second) {}

    EmbeddingLesson(
            EmbeddingGraphs graphs,
            Pairs training,
            Pairs heldOut,
            Start start,
            RunConfig.TrainConfig train,
            Map<String, String> fingerprints,
            DataSummary summary,
            Untaught.Writer writer) {
        super(fingerprints, summary, writer);
        this.graphs = graphs;
        this.training = training;
        this.heldOut = heldOut;
        Batches batches = new Batches(training.first().count(), train.batch(), train.seed());
        task = task(graphs, start, (step, executor) -> fill(batches, step, executor));
    }

    static Task task(EmbeddingGraphs graphs, Start start, Task.Feed feed) {
        boolean random = Task.draws(graphs.loss(2, true));
        return new Task(
                graphs.model().parameters(), rows -> graphs.loss(rows, random), graphs.batched(), random, feed, start);
    }

    private long fill(Batches batches, long step, Executor executor) {
        int length = graphs.length();
        for (int row = 0; row < batches.size(); row++) {
            int index = batches.sequence(step, row);
            training.first().write(index, executor, row, length, graphs.typed());
            training.second().write(index, executor, row, length, graphs.typed(), EmbeddingGraphs.SECOND);
            executor.input("targets").setAtIndex(ValueLayout.JAVA_INT, row, row);
        }
        executor.input("scale").set(ValueLayout.JAVA_FLOAT, 0, 1f / batches.size());
        return 2L * batches.size() * length;
    }

    /// The whole batch is one shard and one micro-batch.
    static Recipe whole(Recipe asked) {
        return asked.withMicroBatch(0).withShard(asked.batch());
    }

    @Override
    public Recipe recipe(Recipe asked) {
        return whole(asked);
    }

    @Override
    public Task task() {
        return task;
    }

    @Override
    public int rows() {
        return training.first().count();
    }

    /// Every first text looks for its second one among those of all pairs held out.
    @Override
    public Evaluation evaluate(Inference inference, Callback callback) {
        int count = heldOut.first().count();
        float[][] first = new float[count][];
        float[][] second = new float[count][];
        int length = graphs.length();
        try (Inference.Rows rows = inference.open(graphs::vectors, TOKENS_AT_ONCE / length, 2 * count)) {
            Executor executor = rows.executor();
            int width = graphs.model().width();
            for (int from = 0; from < 2 * count; from += rows.size()) {
                int some = Math.min(rows.size(), 2 * count - from);
                for (int row = 0; row < rows.size(); row++) {
                    int index = from + Math.min(row, some - 1);
                    Texts texts = index < count ? heldOut.first() : heldOut.second();
                    texts.write(index % count, executor, row, length, graphs.typed());
                }
                executor.run(StageUpdates.NONE);
                MemorySegment vectors = executor.output("vectors");
                for (int row = 0; row < some; row++) {
                    float[] vector = new float[width];
                    MemorySegment.copy(vectors, ValueLayout.JAVA_FLOAT, 4L * row * width, vector, 0, width);
                    (from + row < count ? first : second)[(from + row) % count] = vector;
                }
                callback.onPhase("evaluating", from + some, 2L * count);
            }
        }
        return measure(first, second);
    }

    static Evaluation.Neighbours measure(float[][] first, float[][] second) {
        double loss = 0;
        int right = 0;
        for (int i = 0; i < first.length; i++) {
            float[] cosines = new float[second.length];
            for (int j = 0; j < second.length; j++) {
                double sum = 0;
                for (int k = 0; k < first[i].length; k++) {
                    sum += (double) first[i][k] * second[j][k];
                }
                cosines[j] = (float) (EmbeddingGraphs.SHARPNESS * sum);
            }
            loss += Measured.loss(cosines, 0, cosines.length, i);
            right += Measured.best(cosines, 0, cosines.length) == i ? 1 : 0;
        }
        return new Evaluation.Neighbours(loss / first.length, (double) right / first.length, first.length);
    }
}
