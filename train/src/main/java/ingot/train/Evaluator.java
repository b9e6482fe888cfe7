package ingot.train;

import ingot.compiler.Backend;
import ingot.data.Corpus;
import ingot.data.Sequences;
import ingot.data.Tokenizer;
import ingot.ir.IngotException;
import ingot.nn.CrossEntropy;
import ingot.nn.LanguageModel;
import ingot.runtime.Executor;
import ingot.runtime.StageUpdates;
import ingot.store.WeightStore;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.LongConsumer;

/// Measures a language model on text it was not trained on.
public final class Evaluator implements AutoCloseable {
    /// A constant: the losses of the tokens evaluated at once are added in fp32, so their number decides bits.
    private static final int TOKENS_AT_ONCE = 2048;

    private final Sequences text;
    private final Inference.Rows program;

    public Evaluator(LanguageModel model, Sequences text, Backend backend, WeightStore store) {
        this(model, text, Inference.over(store, backend));
    }

    Evaluator(LanguageModel model, Sequences text, Inference inference) {
        this.text = text;
        program = inference.open(
                rows -> model.lossGraph(rows, text.length(), false), TOKENS_AT_ONCE / text.length(), text.count());
    }

    /// Measures the model of a folder: a run folder, or any Hugging Face folder of a causal language model with a
    /// byte-level tokenizer.
    ///
    /// `source` is a corpus like `data.corpus`, with the globs `include`; if it is empty, the folder is a run and its
    /// own held-out text is taken. Phases and progress go to `callback`, whose `stop` ends early with what is done.
    public static Evaluation.Text evaluate(
            Path folder, String source, List<String> include, Backend backend, Callback callback) {
        try (ModelFolder opened = ModelFolder.open(folder)) {
            Corpus corpus = source.isEmpty() ? heldOut(folder, callback) : corpus(source, include, callback);
            Sequences text;
            try (Tokenizer tokenizer = Tokenizer.open(folder)) {
                opened.load(tokenizer.vocabularySize());
                int length = opened.model().context();
                text = Sequences.of(
                        corpus, tokenizer, length, (done, total) -> callback.onPhase("encoding", done, total));
            }
            callback.onPhase("compiling", 0, 0);
            try (Evaluator evaluator = new Evaluator(opened.model(), text, backend, opened.store())) {
                return evaluator.run(
                        callback::stop, done -> callback.onPhase("evaluating", done, evaluator.text.count()));
            }
        }
    }

    private static Corpus heldOut(Path folder, Callback callback) {
        Path file = folder.resolve("ingot.yaml");
        if (!Files.exists(file)) {
            throw new IngotException("evaluate: " + folder + " is not a run of ingot, so it has no held-out text of its"
                    + " own; say which text to use with --data");
        }
        try {
            RunConfig config = RunConfig.parse(Files.readString(file), List.of());
            return corpus(config.data().corpus(), config.data().include(), callback)
                    .split(config.train().seed(), config.data().heldOut())
                    .heldOut();
        } catch (IOException e) {
            throw new IngotException("evaluate: cannot read " + file + ": " + e.getMessage(), e);
        }
    }

    private static Corpus corpus(String source, List<String> include, Callback callback) {
        callback.onPhase("reading " + source, 0, 0);
        return Corpus.open(source, include, Corpus.defaultCache(), notice -> callback.onPhase(notice, 0, 0));
    }

    /// How many sequences there are to evaluate.
    int sequences() {
        return text.count();
    }

    public Evaluation.Text run() {
        return run(() -> false, sequences -> {});
    }

    /// The same, which stops early (with what it has) when `stop` holds, and tells how many sequences are done.
    public Evaluation.Text run(BooleanSupplier stop, LongConsumer progress) {
        Executor executor = program.executor();
        int batch = program.size();
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
                        targets.set(ValueLayout.JAVA_INT, i * row + 4L * t, CrossEntropy.IGNORED);
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
        return new Evaluation.Text(nats / count, text.bitsPerByte(nats) / share, Math.exp(nats / count), count);
    }

    @Override
    public void close() {
        program.close();
    }
}
