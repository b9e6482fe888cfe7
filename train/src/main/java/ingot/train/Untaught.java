package ingot.train;

import ingot.store.WeightStore;
import java.nio.file.Path;
import java.util.Map;
import java.util.function.UnaryOperator;

/// A lesson without data: it says what is trained and can save it.
record Untaught(Task task, UnaryOperator<Recipe> how, Writer writer, Runnable end) implements Lesson {
    /// One that takes any recipe.
    Untaught(Task task, Writer writer, Runnable end) {
        this(task, UnaryOperator.identity(), writer, end);
    }

    /// Writes a model with its weights from a store.
    interface Writer {
        void save(Path folder, WeightStore store);
    }

    @Override
    public Recipe recipe(Recipe asked) {
        return how.apply(asked);
    }

    @Override
    public int rows() {
        return 0;
    }

    @Override
    public Map<String, String> fingerprints() {
        return Map.of();
    }

    @Override
    public DataSummary summary() {
        throw new IllegalStateException("there is no data");
    }

    @Override
    public Evaluation evaluate(Inference inference, Callback callback) {
        throw new IllegalStateException("there is no data");
    }

    @Override
    public void save(Path folder, WeightStore store) {
        writer.save(folder, store);
    }

    @Override
    public void close() {
        end.run();
    }
}
