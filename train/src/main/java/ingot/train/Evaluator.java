package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Compiler;
import ingot.data.Sequences;
import ingot.nn.LanguageModel;
import ingot.runtime.Executor;
import ingot.runtime.StageUpdates;
import ingot.store.WeightStore;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.BooleanSupplier;
import java.util.function.LongConsumer;

/// Measures a language model on text it was not trained on.
public final class Evaluator implements AutoCloseable {
    private static final int IGNORED = -100;

    private final Sequences text;
    private final int batch;
    private final Executor executor;

    /// Mean loss in nats per token, bits per byte of text, and the perplexity per token.
    public record Evaluation(double loss, double bitsPerByte, double perplexity, long tokens) {}

    /// `batch` sequences are evaluated at a time.
    public Evaluator(LanguageModel model, Sequences text, int batch, Backend backend, WeightStore store) {
        this.text = text;
        this.batch = Math.min(batch, text.count());
        executor = new Executor(Compiler.inference(model.lossGraph(this.batch, text.length(), false)), backend, store);
    }

    public Evaluation run() {
        return run(() -> false, sequences -> {});
    }

    /// The same, which stops early (with what it has) when `stop` holds, and tells how many sequences are done.
    public Evaluation run(BooleanSupplier stop, LongConsumer progress) {
        executor.input("scale").set(ValueLayout.JAVA_FLOAT, 0, 1f);
        MemorySegment tokens = executor.input("tokens");
        MemorySegment targets = executor.input("targets");
        long row = 4L * text.length();
        double nats = 0;
        int done = 0;
        while (done < text.count() && !(done > 0 && stop.getAsBoolean())) {
            int rows = Math.min(batch, text.count() - done);
            for (int i = 0; i < batch; i++) {
                text.read(done + Math.min(i, rows - 1), tokens, i * row, targets, i * row);
                if (i >= rows) {
                    for (int t = 0; t < text.length(); t++) {
                        targets.set(ValueLayout.JAVA_INT, i * row + 4L * t, IGNORED);
                    }
                }
            }
            executor.run(StageUpdates.NONE);
            nats += executor.output("loss").get(ValueLayout.JAVA_FLOAT, 0);
            done += rows;
            progress.accept(done);
        }
        long count = (long) done * text.length();
        double share = (double) done / text.count();
        return new Evaluation(nats / count, text.bitsPerByte(nats) / share, Math.exp(nats / count), count);
    }

    @Override
    public void close() {
        executor.close();
    }
}
