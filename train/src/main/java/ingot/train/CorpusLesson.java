package ingot.train;

import ingot.data.Batches;
import ingot.data.Sequences;
import ingot.nn.Gpt;
import ingot.runtime.Executor;
import ingot.store.BaseWeights;
import ingot.store.WeightStore;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Next-token prediction over packed sequences of a corpus.
record CorpusLesson(Gpt model, RunText text, Task task) implements Lesson {
    static CorpusLesson of(RunConfig config, Gpt model, @Nullable BaseWeights base, RunText text) {
        Sequences training = text.training();
        Batches batches = new Batches(
                training.count(), config.train().batch(), config.train().seed());
        return new CorpusLesson(
                model,
                text,
                CorpusTrainee.task(
                        config,
                        model,
                        base,
                        training.length(),
                        (step, executor) -> fill(training, batches, step, executor)));
    }

    private static long fill(Sequences training, Batches batches, long step, Executor executor) {
        MemorySegment tokens = executor.input("tokens");
        MemorySegment targets = executor.input("targets");
        long row = 4L * training.length();
        for (int i = 0; i < batches.size(); i++) {
            training.read(batches.sequence(step, i), tokens, i * row, targets, i * row);
        }
        long count = (long) batches.size() * training.length();
        executor.input("scale").set(ValueLayout.JAVA_FLOAT, 0, 1f / count);
        return count;
    }

    @Override
    public int rows() {
        return text.training().count();
    }

    @Override
    public Map<String, String> fingerprints() {
        Map<String, String> all = new LinkedHashMap<>();
        all.put(RunIdentity.TEXT, text.documents().training().fingerprint());
        all.put(RunIdentity.TOKENIZER, text.tokenizer().fingerprint());
        return all;
    }

    @Override
    public DataSummary summary() {
        return new DataSummary.Text(
                text.documents().training().documents().size(),
                text.documents().heldOut().documents().size(),
                text.training().tokens(),
                text.training().bytesPerToken(),
                text.heldOut().targetBytes());
    }

    @Override
    public Evaluation evaluate(Inference inference, Callback callback) {
        try (Evaluator evaluator = new Evaluator(model, text.heldOut(), inference)) {
            return evaluator.run(() -> false, done -> callback.onPhase("evaluating", done, evaluator.sequences()));
        }
    }

    @Override
    public void save(Path folder, WeightStore store) {
        ModelFolder.save(folder, model, text.tokenizer().endOfText(), store);
    }

    @Override
    public void close() {
        text.close();
    }
}
