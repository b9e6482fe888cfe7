package ingot.train;

import ingot.data.Row;
import ingot.data.TextTokenizer;
import ingot.ir.IngotException;
import ingot.nn.CrossEntropy;
import ingot.nn.Head;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.ToIntFunction;
import java.util.stream.IntStream;

/// Makes lessons for an encoder with a head: classes, numbers or tags of texts.
record EncoderTeacher(FineTuneConfig config, TunedTrainee trainee) {
    Task task(TunedFile file) {
        EncoderGraphs graphs = graphs(file);
        return EncoderLesson.task(graphs, trainee.start(graphs.model()), (step, executor) -> 0);
    }

    private EncoderGraphs graphs(TunedFile file) {
        boolean weighted = config.task() != FineTuneConfig.Goal.REGRESSION
                && config.data().classWeights() == FineTuneConfig.ClassWeights.BALANCED;
        Head head = TunedTrainee.head(config.task(), file.labels());
        return new EncoderGraphs(trainee.encoder().withHead(head), file.length(), weighted);
    }

    Lesson lesson(RunFolder folder, Callback callback) {
        FineTuneConfig.ExamplesConfig data = config.data();
        boolean tags = config.task() == FineTuneConfig.Goal.TOKEN_CLASSIFICATION;
        boolean classes = config.task() == FineTuneConfig.Goal.TEXT_CLASSIFICATION;
        ExampleRows rows =
                ExampleRows.read(config, callback, this::content, row -> classes ? row.text(data.label()) : "");
        Labels labels = labels(rows);
        Path file = trainee.tokenizer(folder, notice -> callback.onPhase(notice, 0, 0));
        Texts texts = texts(rows.all(), file, config.length(), callback);
        int count = rows.training().rows().size();
        int[] first = IntStream.range(0, count).toArray();
        int[] second = IntStream.range(count, texts.count()).toArray();
        int length = config.length();
        if (length == 0) {
            length = texts.select(first).usualLength(trainee.encoder().context());
            if (texts.longer(length) > 0) {
                texts = texts(rows.all(), file, length, callback); // cut before the last special token
            }
        }
        Targets targets = targets(rows.all(), labels, texts);
        if (targets instanceof Targets.Classes(int[] of)) {
            requireExamples(labels, Arrays.copyOf(of, count));
        }
        TunedFile tuned = new TunedFile(labels.names(), length);
        EncoderGraphs graphs = graphs(tuned);
        Targets learned = targets.select(first);
        DataSummary summary = new DataSummary.Examples(
                tags ? "sentence" : data.second().isEmpty() ? "text" : "pair",
                groups(labels, learned, targets.select(second)),
                length + " tokens",
                texts.select(first).reaching(length),
                trainee.model().describe());
        return new EncoderLesson(
                graphs,
                new EncoderLesson.Examples(texts.select(first), learned),
                new EncoderLesson.Examples(texts.select(second), targets.select(second)),
                labels,
                graphs.weighted() ? weights(labels, learned) : null,
                trainee.start(graphs.model()),
                config.train(),
                TunedTrainee.fingerprints(rows, file, tuned),
                summary,
                trainee.writer(graphs.model(), tuned));
    }

    private Labels labels(ExampleRows rows) {
        FineTuneConfig.ExamplesConfig data = config.data();
        if (config.task() == FineTuneConfig.Goal.REGRESSION) {
            return new Labels(List.of());
        }
        List<String> found = new ArrayList<>();
        for (Row row : rows.all()) {
            if (config.task() == FineTuneConfig.Goal.TEXT_CLASSIFICATION) {
                found.add(row.text(data.label()));
            } else {
                found.addAll(row.texts(data.label()));
            }
        }
        Labels labels = Labels.of(data.labels().keySet(), found);
        if (labels.size() < 2) {
            throw new IngotException(data.source() + ": all examples have the same label, '"
                    + String.join(", ", labels.names()) + "'; a classifier needs two or more");
        }
        return labels;
    }

    private Texts texts(List<Row> rows, Path file, int length, Callback callback) {
        FineTuneConfig.ExamplesConfig data = config.data();
        try (TextTokenizer tokenizer = trainee.open(file, length)) {
            if (config.task() == FineTuneConfig.Goal.TOKEN_CLASSIFICATION) {
                int most = length > 0 ? length : trainee.encoder().context();
                return new Texts(
                        rows.stream()
                                .map(row -> tokenizer.encodeWords(row.texts(data.text()), most))
                                .toList(),
                        tokenizer.padding());
            }
            return Texts.of(
                    rows.stream()
                            .map(row -> new Texts.Pair(
                                    data.content().of(row.text(data.text())),
                                    data.second().isEmpty() ? "" : row.text(data.second())))
                            .toList(),
                    tokenizer,
                    callback);
        }
    }

    private Targets targets(List<Row> rows, Labels labels, Texts texts) {
        FineTuneConfig.ExamplesConfig data = config.data();
        return switch (config.task()) {
            case TEXT_CLASSIFICATION ->
                new Targets.Classes(rows.stream()
                        .mapToInt(row -> labels.index(row.text(data.label()), row.where()))
                        .toArray());
            case REGRESSION -> {
                float[] numbers = new float[rows.size()];
                for (int i = 0; i < numbers.length; i++) {
                    numbers[i] = rows.get(i).number(data.label());
                }
                yield new Targets.Numbers(numbers);
            }
            case TOKEN_CLASSIFICATION -> {
                int[][] tags = new int[rows.size()][];
                for (int i = 0; i < tags.length; i++) {
                    tags[i] = tags(rows.get(i), labels, texts.encoded().get(i));
                }
                yield new Targets.Tags(tags);
            }
            case LANGUAGE_MODEL, EMBEDDING -> throw new IllegalStateException("no head");
        };
    }

    /// The first token of a word has its tag; the others, and special ones, do not count.
    private int[] tags(Row row, Labels labels, TextTokenizer.Encoded encoded) {
        FineTuneConfig.ExamplesConfig data = config.data();
        List<String> names = row.texts(data.label());
        int words = row.texts(data.text()).size();
        if (names.size() != words) {
            throw new IngotException(row.where() + ": " + words + " words in " + data.text() + ", but " + names.size()
                    + " labels in " + data.label() + "; expected one for each");
        }
        int[] tags = new int[encoded.ids().length];
        int before = -1;
        for (int t = 0; t < tags.length; t++) {
            int word = encoded.words()[t];
            tags[t] = word < 0 || word == before ? CrossEntropy.IGNORED : labels.index(names.get(word), row.where());
            before = word;
        }
        return tags;
    }

    private String content(Row row) {
        FineTuneConfig.ExamplesConfig data = config.data();
        if (config.task() == FineTuneConfig.Goal.TOKEN_CLASSIFICATION) {
            return String.join(" ", row.texts(data.text()));
        }
        return data.second().isEmpty()
                ? data.content().of(row.text(data.text()))
                : row.text(data.text()) + "\u0000" + row.text(data.second());
    }

    private static void requireExamples(Labels labels, int[] training) {
        for (int label = 0; label < labels.size(); label++) {
            int own = label;
            if (IntStream.of(training).noneMatch(c -> c == own)) {
                throw new IngotException("data: there is no example of the label '"
                        + labels.names().get(label) + "' to learn from; give some, or take it out of data.labels");
            }
        }
    }

    /// How often each label is a target.
    private static int[] counts(Labels labels, Targets targets) {
        int[] counts = new int[labels.size()];
        IntStream all = switch (targets) {
            case Targets.Classes(int[] of) -> IntStream.of(of);
            case Targets.Tags(int[][] of) -> Arrays.stream(of).flatMapToInt(IntStream::of);
            case Targets.Numbers _ -> IntStream.empty();
        };
        all.filter(label -> label >= 0).forEach(label -> counts[label]++);
        return counts;
    }

    /// n / (classes · n of the class); 1 for a class that never comes.
    private static float[] weights(Labels labels, Targets targets) {
        int[] counts = counts(labels, targets);
        double total = IntStream.of(counts).sum();
        float[] weights = new float[counts.length];
        for (int i = 0; i < counts.length; i++) {
            weights[i] = counts[i] == 0 ? 1 : (float) (total / (counts.length * (double) counts[i]));
        }
        return weights;
    }

    private static List<DataSummary.Group> groups(Labels labels, Targets training, Targets heldOut) {
        ToIntFunction<Targets> size = targets -> switch (targets) {
            case Targets.Classes(int[] of) -> of.length;
            case Targets.Numbers(float[] of) -> of.length;
            case Targets.Tags(int[][] of) -> of.length;
        };
        if (!(training instanceof Targets.Classes)) {
            return List.of(new DataSummary.Group("", size.applyAsInt(training), size.applyAsInt(heldOut)));
        }
        int[] learned = counts(labels, training);
        int[] measured = counts(labels, heldOut);
        return IntStream.range(0, labels.size())
                .mapToObj(i -> new DataSummary.Group(labels.names().get(i), learned[i], measured[i]))
                .toList();
    }
}
