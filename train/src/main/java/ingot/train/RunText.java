package ingot.train;

import ingot.data.BytePairs;
import ingot.data.Corpus;
import ingot.data.Sequences;
import ingot.data.Tokenizer;
import ingot.ir.IngotException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/// The text of a run: the documents to train on and those held out, and both as sequences of tokens.
record RunText(Corpus.Split documents, Tokenizer tokenizer, Sequences training, Sequences heldOut)
        implements AutoCloseable {

    /// Reads and encodes the corpus of a configuration.
    static RunText open(RunConfig config, RunFolder folder, Callback callback) {
        RunConfig.DataConfig data = config.data();
        callback.onPhase("reading " + data.corpus(), 0, 0);
        Corpus corpus = Corpus.open(
                data.corpus(), data.include(), Corpus.defaultCache(), notice -> callback.onPhase(notice, 0, 0));
        if (!corpus.replacements().isEmpty()) {
            callback.onWarning("malformed UTF-8 was replaced in " + String.join(", ", corpus.replacements()));
        }
        Corpus.Split split = corpus.split(config.train().seed(), data.heldOut());
        Tokenizer tokenizer = tokenizer(config, folder, split.training(), callback);
        try {
            int length = config.model().context();
            Sequences training = Sequences.of(
                    split.training(), tokenizer, length, (done, total) -> callback.onPhase("encoding", done, total));
            Sequences heldOut = Sequences.of(split.heldOut(), tokenizer, length, (done, total) -> {});
            return new RunText(split, tokenizer, training, heldOut);
        } catch (RuntimeException e) {
            tokenizer.close();
            throw e;
        }
    }

    /// The run's own tokenizer if it has begun, else the given file, else byte pairs trained on the training text.
    private static Tokenizer tokenizer(RunConfig config, RunFolder folder, Corpus training, Callback callback) {
        Path own = folder.tokenizer();
        RunConfig.TokenizerConfig wanted = config.tokenizer();
        if (!folder.begun() || !Files.exists(own)) {
            if (wanted.file().isEmpty()) {
                BytePairs.train(
                                training,
                                wanted.vocabulary(),
                                (done, total) -> callback.onPhase("training the tokenizer", done, total))
                        .write(own);
            } else {
                copy(Path.of(wanted.file()), own);
            }
        }
        return Tokenizer.open(own);
    }

    private static void copy(Path given, Path own) {
        try {
            Tokenizer.open(given).close();
            Path partial = own.resolveSibling(own.getFileName() + ".partial");
            Files.copy(given, partial, StandardCopyOption.REPLACE_EXISTING);
            Files.move(partial, own, StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            throw new IngotException("run: cannot copy the tokenizer to " + own + ": " + e.getMessage(), e);
        }
    }

    @Override
    public void close() {
        tokenizer.close();
    }
}
