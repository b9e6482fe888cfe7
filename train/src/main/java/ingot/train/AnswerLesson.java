package ingot.train;

import ingot.data.Batches;
import ingot.nn.CrossEntropy;
import ingot.nn.LanguageModel;
import ingot.runtime.Executor;
import ingot.runtime.StageUpdates;
import ingot.train.AnswerTeacher.Sequence;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// A language model that learns some of the tokens of sequences: answers, or all of a text.
final class AnswerLesson extends TaughtLesson {
    /// A constant: the losses of the tokens evaluated at once are added in fp32, so their number decides bits.
    private static final int TOKENS_AT_ONCE = 2048;

    private final LanguageModel model;
    private final int length;
    private final List<Sequence> training;
    private final List<Sequence> heldOut;
    private final Task task;

    AnswerLesson(
            LanguageModel model,
            int length,
            List<Sequence> training,
            List<Sequence> heldOut,
            Start start,
            RunConfig.TrainConfig train,
            Map<String, String> fingerprints,
            DataSummary summary,
            Untaught.Writer writer) {
        super(fingerprints, summary, writer);
        this.model = model;
        this.length = length;
        this.training = List.copyOf(training);
        this.heldOut = List.copyOf(heldOut);
        Batches batches = new Batches(training.size(), train.batch(), train.seed());
        task = task(model, length, start, (step, executor) -> fill(batches, step, executor));
    }

    static Task task(LanguageModel model, int length, Start start, Task.Feed feed) {
        boolean random = Task.draws(model.lossGraph(1, length, true));
        return new Task(
                model.parameters(),
                rows -> model.lossGraph(rows, length, random),
                Set.of("tokens", "targets"),
                random,
                feed,
                start);
    }

    private long fill(Batches batches, long step, Executor executor) {
        long targets = 0;
        for (int row = 0; row < batches.size(); row++) {
            targets += write(training.get(batches.sequence(step, row)), executor, row, true);
        }
        executor.input("scale").set(ValueLayout.JAVA_FLOAT, 0, 1f / targets);
        return (long) batches.size() * length;
    }

    /// Writes a sequence into a row, filled up with tokens that are no targets; returns the number of its targets.
    private int write(Sequence sequence, Executor executor, int row, boolean counted) {
        int targets = 0;
        for (int t = 0; t < length; t++) {
            boolean real = t + 1 < sequence.ids().length;
            boolean target = counted && real && sequence.learned()[t + 1];
            long at = (long) row * length + t;
            executor.input("tokens").setAtIndex(ValueLayout.JAVA_INT, at, real ? sequence.ids()[t] : 0);
            executor.input("targets")
                    .setAtIndex(ValueLayout.JAVA_INT, at, target ? sequence.ids()[t + 1] : CrossEntropy.IGNORED);
            targets += target ? 1 : 0;
        }
        return targets;
    }

    @Override
    public Task task() {
        return task;
    }

    @Override
    public int rows() {
        return training.size();
    }

    @Override
    public Evaluation evaluate(Inference inference, Callback callback) {
        double nats = 0;
        long targets = 0;
        int count = heldOut.size();
        try (Inference.Rows rows =
                inference.open(n -> model.lossGraph(n, length, false), TOKENS_AT_ONCE / length, count)) {
            Executor executor = rows.executor();
            executor.input("scale").set(ValueLayout.JAVA_FLOAT, 0, 1f);
            for (int from = 0; from < count; from += rows.size()) {
                for (int row = 0; row < rows.size(); row++) {
                    boolean there = from + row < count;
                    targets += write(heldOut.get(there ? from + row : from), executor, row, there);
                }
                executor.run(StageUpdates.NONE);
                nats += executor.output("loss").get(ValueLayout.JAVA_FLOAT, 0);
                callback.onPhase("evaluating", Math.min(count, from + rows.size()), count);
            }
        }
        return new Evaluation.Answers(nats / targets, targets);
    }
}
