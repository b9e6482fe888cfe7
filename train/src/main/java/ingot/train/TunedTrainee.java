package ingot.train;

import ingot.data.Corpus;
import ingot.data.Source;
import ingot.data.TextTokenizer;
import ingot.ir.IngotException;
import ingot.nn.Head;
import ingot.nn.LanguageModel;
import ingot.nn.Network;
import ingot.nn.Parameter;
import ingot.nn.TextEncoder;
import ingot.store.BaseWeights;
import ingot.store.WeightStore.Key;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// A model that exists and goes on learning.
final class TunedTrainee implements Trainee {
    private final FineTuneConfig config;
    private final BaseModel model;

    private TunedTrainee(FineTuneConfig config, BaseModel model) {
        this.config = config;
        this.model = model;
    }

    static TunedTrainee open(FineTuneConfig config, Callback callback) {
        BaseModel model = BaseModel.open(config, RunFolder.of(config).path(), notice -> callback.onPhase(notice, 0, 0));
        Path run = Path.of(config.run()).toAbsolutePath().normalize();
        if (model.folder().toAbsolutePath().normalize().equals(run)) {
            model.close();
            throw new IngotException(
                    "configuration: model.from " + config.model().from() + " lies in the run folder,"
                            + " where the run writes its own model; choose another with run=…");
        }
        return new TunedTrainee(config, model);
    }

    @Override
    public Map<String, String> origin() {
        return Map.of(RunIdentity.BASE, model.weights().fingerprint());
    }

    @Override
    public Lesson lesson(RunFolder folder, Callback callback) {
        return switch (config.task()) {
            case TEXT_CLASSIFICATION, REGRESSION, TOKEN_CLASSIFICATION ->
                new EncoderTeacher(config, this).lesson(folder, callback);
            case EMBEDDING -> new EmbeddingTeacher(config, this).lesson(folder, callback);
            case LANGUAGE_MODEL -> new AnswerTeacher(config, this).lesson(folder, callback);
        };
    }

    @Override
    public Lesson withoutData(RunFolder folder) {
        TunedFile file = TunedFile.read(folder.path());
        Task task = switch (config.task()) {
            case TEXT_CLASSIFICATION, REGRESSION, TOKEN_CLASSIFICATION -> new EncoderTeacher(config, this).task(file);
            case EMBEDDING -> new EmbeddingTeacher(config, this).task(file);
            case LANGUAGE_MODEL -> new AnswerTeacher(config, this).task(file);
        };
        boolean whole = config.task() == FineTuneConfig.Goal.EMBEDDING;
        return new Untaught(
                task, asked -> whole ? EmbeddingLesson.whole(asked) : asked, writer(tuned(file), file), () -> {});
    }

    /// The model as it is trained and saved.
    private Network tuned(TunedFile file) {
        return switch (config.task()) {
            case TEXT_CLASSIFICATION, REGRESSION, TOKEN_CLASSIFICATION ->
                encoder().withHead(head(config.task(), file.labels()));
            case EMBEDDING -> EmbeddingTeacher.encoder(encoder());
            case LANGUAGE_MODEL -> model.network();
        };
    }

    /// The head for a task with these labels.
    static Head head(FineTuneConfig.Goal task, List<String> labels) {
        return switch (task) {
            case TEXT_CLASSIFICATION -> Head.of(Head.Kind.CLASS, labels.size());
            case TOKEN_CLASSIFICATION -> Head.of(Head.Kind.TOKEN_CLASS, labels.size());
            case REGRESSION -> Head.of(Head.Kind.NUMBERS, 1);
            case EMBEDDING, LANGUAGE_MODEL -> Head.NONE;
        };
    }

    /// Fingerprints of what every fine-tuning learns from.
    static Map<String, String> fingerprints(ExampleRows rows, Path tokenizer, TunedFile file) {
        Map<String, String> fingerprints = new LinkedHashMap<>();
        fingerprints.put(RunIdentity.TEXT, rows.training().fingerprint());
        fingerprints.put(RunIdentity.TOKENIZER, fingerprint(tokenizer));
        fingerprints.put("the labels", String.join(", ", file.labels()));
        fingerprints.put("the length", Integer.toString(file.length()));
        return fingerprints;
    }

    // ---- the model

    BaseModel model() {
        return model;
    }

    LanguageModel language() {
        if (model.network() instanceof LanguageModel language) {
            return language;
        }
        throw new IngotException("configuration: task " + Section.kebab(config.task()) + " needs a language model;"
                + " model.from is " + model.describe());
    }

    TextEncoder encoder() {
        if (model.network() instanceof TextEncoder encoder) {
            return encoder;
        }
        throw new IngotException("configuration: task " + Section.kebab(config.task()) + " needs an encoder of texts;"
                + " model.from is " + model.describe());
    }

    Start start(Network tuned) {
        List<Parameter> parameters = tuned.parameters();
        return Start.grown(parameters, base(parameters), config.train().freeze());
    }

    /// The weights under the names of the parameters; null if all begin at random.
    private @Nullable BaseWeights base(List<Parameter> parameters) {
        if (config.model().weights() == FineTuneConfig.Weights.RANDOM) {
            return null;
        }
        BaseWeights weights = model.weights();
        weights.rename(model.names(parameters));
        for (Parameter parameter : parameters) {
            if (weights.contains(parameter.name())) {
                weights.check(parameter.name(), parameter.type());
            }
        }
        return weights;
    }

    Untaught.Writer writer(Network tuned, TunedFile file) {
        return (to, store) -> {
            model.save(to, tuned, file.labels(), (name, reader) -> store.read(Key.weight(name), reader));
            file.write(to);
        };
    }

    // ---- the tokenizer

    /// The run's own copy, made when it begins.
    Path tokenizer(RunFolder folder, Consumer<String> notice) {
        Path own = folder.tokenizer();
        if (!folder.begun() || !Files.exists(own)) {
            Path given = config.model().tokenizer().isEmpty()
                    ? model.folder().resolve("tokenizer.json")
                    : Source.file(config.model().tokenizer(), Corpus.defaultCache(), notice);
            try {
                TextTokenizer.open(given).close();
                Path partial = own.resolveSibling(own.getFileName() + ".partial");
                Files.createDirectories(folder.path());
                Files.copy(given, partial, StandardCopyOption.REPLACE_EXISTING);
                Files.move(partial, own, StandardCopyOption.ATOMIC_MOVE);
            } catch (IOException e) {
                throw new IngotException("run: cannot copy the tokenizer to " + own + ": " + e.getMessage(), e);
            }
        }
        return own;
    }

    /// The tokenizer for texts of at most `length` tokens; 0: as long as the model and the file allow.
    TextTokenizer open(Path file, int length, int most, int known) {
        if (length > most) {
            throw new IngotException(
                    "configuration: length is " + length + ", the model has positions for " + most + " tokens");
        }
        TextTokenizer tokenizer = length > 0 ? TextTokenizer.cutting(file, length) : TextTokenizer.open(file, most);
        if (tokenizer.vocabularySize() > known) {
            int size = tokenizer.vocabularySize();
            tokenizer.close();
            throw new IngotException("configuration: the tokenizer has " + size + " tokens, the model knows " + known
                    + "; they do not belong together");
        }
        return tokenizer;
    }

    /// For the encoder.
    TextTokenizer open(Path file, int length) {
        return open(file, length, encoder().context(), encoder().vocabulary());
    }

    private static String fingerprint(Path file) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(file)));
        } catch (IOException e) {
            throw new IngotException("run: cannot read " + file + ": " + e.getMessage(), e);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }

    @Override
    public void close() {
        model.close();
    }
}
