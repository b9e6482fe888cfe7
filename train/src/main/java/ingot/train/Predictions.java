package ingot.train;

import ingot.runtime.Executor;
import ingot.runtime.StageUpdates;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// The outputs of an encoder's head for texts, in order.
final class Predictions {
    /// Tokens computed at a time.
    private static final int TOKENS_AT_ONCE = 4096;

    private Predictions() {}

    /// Takes the logits of one text: [labels], or [length, labels] row-major.
    interface Taker {
        void take(int index, float[] logits);
    }

    /// Tells `callback` how far it is, and ends early when it says stop.
    static void run(EncoderGraphs graphs, Texts texts, Inference inference, Callback callback, Taker taker) {
        int length = graphs.length();
        try (Inference.Rows rows = inference.open(graphs::logits, TOKENS_AT_ONCE / length, texts.count())) {
            Executor executor = rows.executor();
            for (int from = 0; from < texts.count(); from += rows.size()) {
                int count = Math.min(rows.size(), texts.count() - from);
                for (int row = 0; row < rows.size(); row++) {
                    texts.write(from + Math.min(row, count - 1), executor, row, length, graphs.typed());
                }
                executor.run(StageUpdates.NONE);
                MemorySegment logits = executor.output("logits");
                int width = (int) (logits.byteSize() / 4 / rows.size());
                for (int row = 0; row < count; row++) {
                    float[] one = new float[width];
                    MemorySegment.copy(logits, ValueLayout.JAVA_FLOAT, 4L * row * width, one, 0, width);
                    taker.take(from + row, one);
                }
                callback.onPhase("evaluating", from + count, texts.count());
            }
        }
    }
}
