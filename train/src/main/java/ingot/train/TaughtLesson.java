package ingot.train;

import ingot.store.WeightStore;
import java.nio.file.Path;
import java.util.Map;

/// What lessons over examples have in common: what was read, and who saves the model.
abstract class TaughtLesson implements Lesson {
    private final Map<String, String> fingerprints;
    private final DataSummary summary;
    private final Untaught.Writer writer;

    TaughtLesson(Map<String, String> fingerprints, DataSummary summary, Untaught.Writer writer) {
        this.fingerprints = fingerprints;
        this.summary = summary;
        this.writer = writer;
    }

    @Override
    public final Map<String, String> fingerprints() {
        return fingerprints;
    }

    @Override
    public final DataSummary summary() {
        return summary;
    }

    @Override
    public double flops() {
        return Lesson.flops(task());
    }

    @Override
    public final void save(Path folder, WeightStore store) {
        writer.save(folder, store);
    }

    @Override
    public final void close() {}
}
