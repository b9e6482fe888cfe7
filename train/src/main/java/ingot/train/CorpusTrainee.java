package ingot.train;

import ingot.data.Tokenizer;
import ingot.formats.BaseFiles;
import ingot.ir.IngotException;
import ingot.nn.Gpt;
import ingot.nn.GptConfig;
import ingot.store.BaseWeights;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// A language model that learns from the text of a corpus.
final class CorpusTrainee implements Trainee {
    private final RunConfig config;
    private final @Nullable BaseWeights base;

    private CorpusTrainee(RunConfig config, @Nullable BaseWeights base) {
        this.config = config;
        this.base = base;
    }

    static CorpusTrainee open(RunConfig config) {
        if (config.model().base().isEmpty()) {
            return new CorpusTrainee(config, null);
        }
        BaseWeights base = BaseFiles.open(Path.of(config.model().base()));
        Path path = base.path().toAbsolutePath().normalize();
        Path run = Path.of(config.run()).toAbsolutePath().normalize();
        if (path.equals(run) || path.equals(run.resolve("model.safetensors"))) {
            base.close();
            throw new IngotException("configuration: model.base " + base.path() + " lies in the run folder, where the"
                    + " run writes its own model; choose another with run=…");
        }
        return new CorpusTrainee(config, base);
    }

    /// The weights that the model begins with; null if the seed decides them.
    @Nullable
    BaseWeights base() {
        return base;
    }

    /// The model. Its weights are called as in its base, if it has one.
    Gpt model(int vocabulary) {
        GptConfig sizes = config.model().gpt(vocabulary);
        return base != null && base.types().containsKey("wte.weight") ? new Gpt(sizes, "") : Gpt.of(sizes);
    }

    @Override
    public Map<String, String> origin() {
        return base == null ? Map.of() : Map.of(RunIdentity.BASE, base.fingerprint());
    }

    @Override
    public Lesson lesson(RunFolder folder, Callback callback) {
        RunText text = RunText.open(config, folder, callback);
        try {
            return CorpusLesson.of(config, model(text.tokenizer().vocabularySize()), base, text);
        } catch (RuntimeException e) {
            text.close();
            throw e;
        }
    }

    @Override
    public Lesson withoutData(RunFolder folder) {
        Tokenizer tokenizer = Tokenizer.open(folder.path());
        Gpt model = model(tokenizer.vocabularySize());
        return new Untaught(
                task(config, model, base),
                (to, store) -> ModelFolder.save(to, model, tokenizer.endOfText(), store),
                tokenizer::close);
    }

    /// Next-token prediction without data: what it computes, but nothing to compute it of.
    static Task task(RunConfig config, Gpt model, @Nullable BaseWeights base) {
        return task(config, model, base, config.model().context(), (step, executor) -> 0);
    }

    static Task task(RunConfig config, Gpt model, @Nullable BaseWeights base, int length, Task.Feed feed) {
        GptConfig sizes = model.config();
        boolean dropout = sizes.embeddingDropout() > 0 || sizes.attentionDropout() > 0 || sizes.residualDropout() > 0;
        return new Task(
                        model.parameters(),
                        batch -> model.lossGraph(batch, length, dropout),
                        Set.of("tokens", "targets"),
                        dropout,
                        feed)
                .startingAt(Start.of(model.parameters(), base, config.train().freeze()));
    }

    @Override
    public void close() {
        if (base != null) {
            base.close();
        }
    }
}
