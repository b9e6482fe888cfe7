package ingot.train;

import ingot.data.Corpus;
import ingot.data.Row;
import ingot.data.Source;
import ingot.data.TextTokenizer;
import ingot.ir.IngotException;
import ingot.nn.Head;
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
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.IntStream;
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
            case TEXT_CLASSIFICATION -> classification(folder, callback);
            case REGRESSION, TOKEN_CLASSIFICATION, LANGUAGE_MODEL, EMBEDDING ->
                throw new IngotException("configuration: task " + Section.kebab(config.task()) + " is not there yet");
        };
    }

    @Override
    public Lesson withoutData(RunFolder folder) {
        TunedFile file = TunedFile.read(folder.path());
        EncoderGraphs graphs = graphs(new Labels(file.labels()), file.length());
        return new Untaught(
                EncoderLesson.task(graphs, start(graphs.model()), (step, executor) -> 0),
                writer(graphs.model(), file),
                () -> {});
    }

    private EncoderGraphs graphs(Labels labels, int length) {
        TextEncoder tuned = encoder().withHead(Head.of(Head.Kind.CLASS, labels.size()));
        return new EncoderGraphs(tuned, length, config.data().classWeights() == FineTuneConfig.ClassWeights.BALANCED);
    }

    private Lesson classification(RunFolder folder, Callback callback) {
        FineTuneConfig.ExamplesConfig data = config.data();
        ExampleRows rows = ExampleRows.read(config, callback, this::content, row -> row.text(data.label()));
        List<String> found =
                rows.all().stream().map(row -> row.text(data.label())).toList();
        Labels labels = Labels.of(data.labels().keySet(), found);
        if (labels.size() < 2) {
            throw new IngotException(data.source() + ": all examples have the same label, '"
                    + String.join(", ", labels.names()) + "'; a classifier needs two or more");
        }
        int[] training = classes(rows.training().rows(), labels);
        int[] heldOut = classes(rows.heldOut().rows(), labels);
        List<DataSummary.Group> groups = groups(labels, training, heldOut);
        Path tokenizerFile = tokenizer(folder, notice -> callback.onPhase(notice, 0, 0));
        try (TextTokenizer tokenizer = open(tokenizerFile, config.length())) {
            Texts texts = Texts.of(pairs(rows.all()), tokenizer, callback);
            int count = rows.training().rows().size();
            Texts learned = texts.select(IntStream.range(0, count).toArray());
            Texts measured = texts.select(IntStream.range(count, texts.count()).toArray());
            int length = config.length() > 0
                    ? config.length()
                    : learned.usualLength(encoder().context());
            EncoderGraphs graphs = graphs(labels, length);
            TunedFile file = new TunedFile(labels.names(), length);
            Map<String, String> fingerprints = new LinkedHashMap<>();
            fingerprints.put(RunIdentity.TEXT, rows.training().fingerprint());
            fingerprints.put(RunIdentity.TOKENIZER, fingerprint(tokenizerFile));
            fingerprints.put("the labels", String.join(", ", labels.names()));
            fingerprints.put("the length", Integer.toString(length));
            return new EncoderLesson(
                    graphs,
                    new EncoderLesson.Examples(learned, new Targets.Classes(training)),
                    new EncoderLesson.Examples(measured, new Targets.Classes(heldOut)),
                    labels,
                    graphs.weighted() ? weights(labels, training) : null,
                    start(graphs.model()),
                    config.train(),
                    fingerprints,
                    new DataSummary.Examples(
                            "text", groups, length + " tokens", learned.longer(length), model.describe()),
                    writer(graphs.model(), file));
        }
    }

    private static int[] classes(List<Row> rows, Labels labels, String column) {
        return rows.stream()
                .mapToInt(row -> labels.index(row.text(column), row.where()))
                .toArray();
    }

    private int[] classes(List<Row> rows, Labels labels) {
        return classes(rows, labels, config.data().label());
    }

    /// n / (classes · n of the class).
    private static float[] weights(Labels labels, int[] classes) {
        float[] weights = new float[labels.size()];
        for (int label = 0; label < weights.length; label++) {
            int own = label;
            long count = IntStream.of(classes).filter(c -> c == own).count();
            weights[label] = (float) ((double) classes.length / (labels.size() * (double) count));
        }
        return weights;
    }

    private static List<DataSummary.Group> groups(Labels labels, int[] training, int[] heldOut) {
        List<DataSummary.Group> groups = new ArrayList<>();
        for (int i = 0; i < labels.size(); i++) {
            int own = i;
            int learned = (int) IntStream.of(training).filter(c -> c == own).count();
            int measured = (int) IntStream.of(heldOut).filter(c -> c == own).count();
            if (learned == 0) {
                throw new IngotException("data: there is no example of the label '"
                        + labels.names().get(i) + "' to learn from; give some, or take it out of data.labels");
            }
            groups.add(new DataSummary.Group(labels.names().get(i), learned, measured));
        }
        return groups;
    }

    private String content(Row row) {
        FineTuneConfig.ExamplesConfig data = config.data();
        return data.second().isEmpty()
                ? row.text(data.text())
                : row.text(data.text()) + "\u0000" + row.text(data.second());
    }

    private List<Texts.Pair> pairs(List<Row> rows) {
        FineTuneConfig.ExamplesConfig data = config.data();
        return rows.stream()
                .map(row ->
                        new Texts.Pair(row.text(data.text()), data.second().isEmpty() ? "" : row.text(data.second())))
                .toList();
    }

    // ---- the model

    private TextEncoder encoder() {
        if (model.network() instanceof TextEncoder encoder) {
            return encoder;
        }
        throw new IngotException("configuration: task " + Section.kebab(config.task()) + " needs an encoder of texts;"
                + " model.from is " + model.describe());
    }

    private Start start(Network tuned) {
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

    private Untaught.Writer writer(Network tuned, TunedFile file) {
        return (to, store) -> {
            model.save(to, tuned, file.labels(), (name, reader) -> store.read(Key.weight(name), reader));
            file.write(to);
        };
    }

    // ---- the tokenizer

    /// The run's own copy, made when it begins.
    private Path tokenizer(RunFolder folder, Consumer<String> notice) {
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

    private TextTokenizer open(Path file, int length) {
        int most = encoder().context();
        if (length > most) {
            throw new IngotException(
                    "configuration: length is " + length + ", the model has positions for " + most + " tokens");
        }
        TextTokenizer tokenizer =
                length > 0 ? TextTokenizer.cutting(file, length) : TextTokenizer.open(file, most);
        int known = encoder().vocabulary();
        if (tokenizer.vocabularySize() > known) {
            int size = tokenizer.vocabularySize();
            tokenizer.close();
            throw new IngotException("configuration: the tokenizer has " + size + " tokens, the model knows " + known
                    + "; they do not belong together");
        }
        return tokenizer;
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
