package ingot.bench;

import ingot.nn.Gpt;
import ingot.nn.GptConfig;
import ingot.train.Optimizer;
import ingot.train.Recipe;
import ingot.train.Schedule;
import ingot.train.Task;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Set;

/// A GPT training job with random tokens: what the speed figures are about.
enum GptSize {
    /// 2 layers of width 32: milliseconds per step in any JVM.
    TINY(512, 2, 32, 2, 4, 16),
    /// 2 layers of width 64: seconds for hundreds of steps.
    TOY(512, 2, 64, 4, 4, 32),
    /// GPT 11M: 6 layers of width 384, 16 × 256 tokens.
    SMALL(2048, 6, 384, 6, 16, 256),
    /// GPT-2 124M, 4 × 256 tokens.
    GPT2(50257, 12, 768, 12, 4, 256),
    /// GPT 0.2B: 16 layers of width 1024, 4 × 256 tokens.
    MEDIUM(8192, 16, 1024, 16, 4, 256);

    final int vocabulary;
    final int layers;
    final int width;
    final int heads;
    final int batch;
    final int time;

    GptSize(int vocabulary, int layers, int width, int heads, int batch, int time) {
        this.vocabulary = vocabulary;
        this.layers = layers;
        this.width = width;
        this.heads = heads;
        this.batch = batch;
        this.time = time;
    }

    Gpt model() {
        return Gpt.of(GptConfig.of(vocabulary, time, width, layers, heads));
    }

    long parameters() {
        return model().parameters().stream()
                .mapToLong(p -> p.type().shape().elements())
                .sum();
    }

    /// Work of a step by the usual count: 6 · parameters · tokens.
    double flops() {
        return 6.0 * parameters() * batch * time;
    }

    Task task() {
        return task(batch);
    }

    /// The job with another number of sequences per step.
    Task task(int rows) {
        return task(model(), vocabulary, time, rows);
    }

    /// A job with random tokens.
    static Task task(Gpt model, int vocabulary, int time, int sequences) {
        return new Task(
                model.parameters(),
                rows -> model.lossGraph(rows, time, false),
                Set.of("tokens", "targets"),
                false,
                (step, executor) -> {
                    MemorySegment tokens = executor.input("tokens");
                    MemorySegment targets = executor.input("targets");
                    long state = step * 0x9E3779B97F4A7C15L + 1;
                    for (long i = 0; i < (long) sequences * time; i++) {
                        state = state * 6364136223846793005L + 1442695040888963407L;
                        tokens.setAtIndex(
                                ValueLayout.JAVA_INT, i, (int) Long.remainderUnsigned(state >>> 20, vocabulary));
                        state = state * 6364136223846793005L + 1442695040888963407L;
                        targets.setAtIndex(
                                ValueLayout.JAVA_INT, i, (int) Long.remainderUnsigned(state >>> 20, vocabulary));
                    }
                    executor.input("scale").set(ValueLayout.JAVA_FLOAT, 0, 1f / (sequences * time));
                    return (long) sequences * time;
                });
    }

    /// AdamW at a constant rate, clipped: everything a real run does.
    Recipe recipe(int microBatch) {
        return recipe(batch, microBatch);
    }

    Recipe recipe(int sequences, int microBatch) {
        return Recipe.of(Optimizer.AdamW.DEFAULT, Schedule.constant(1e-3, 0), sequences)
                .withMicroBatch(microBatch)
                .withClip(1);
    }
}
