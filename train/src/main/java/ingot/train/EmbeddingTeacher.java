package ingot.train;

import ingot.data.Row;
import ingot.data.TextTokenizer;
import ingot.ir.IngotException;
import ingot.nn.Bert;
import ingot.nn.Head;
import ingot.nn.TextEncoder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/// Makes lessons for an encoder of vectors: pairs of texts that belong together.
record EmbeddingTeacher(FineTuneConfig config, TunedTrainee trainee) {
    EmbeddingTeacher {
        if (config.data().second().isEmpty()) {
            throw new IngotException("configuration: data.second is missing: the column of the text that belongs to the"
                    + " one of data.text");
        }
        RunConfig.TrainConfig train = config.train();
        if (train.microBatch() != 0 && train.microBatch() != train.batch()) {
            throw new IngotException("configuration: train.micro-batch is " + train.microBatch() + ", but embedding"
                    + " compares every text with all others of its batch, so the batch stays whole; leave it out and"
                    + " take a smaller train.batch if memory is short");
        }
        if (train.batch() < 2) {
            throw new IngotException("configuration: train.batch expected at least 2: a text is told apart from the"
                    + " others of its batch");
        }
    }

    Task task(TunedFile file) {
        EmbeddingGraphs graphs = graphs(file.length());
        return EmbeddingLesson.task(graphs, trainee.start(graphs.model()), (step, executor) -> 0);
    }

    /// As far as its hidden states: what comes after them learns nothing.
    static TextEncoder encoder(TextEncoder model) {
        return model instanceof Bert bert ? bert.withoutPooler() : model.withHead(Head.NONE);
    }

    private EmbeddingGraphs graphs(int length) {
        return new EmbeddingGraphs(encoder(trainee.encoder()), length);
    }

    Lesson lesson(RunFolder folder, Callback callback) {
        FineTuneConfig.ExamplesConfig data = config.data();
        ExampleRows rows = ExampleRows.read(config, callback, row -> row.text(data.text()), row -> "");
        Path file = trainee.tokenizer(folder, notice -> callback.onPhase(notice, 0, 0));
        Texts texts = texts(rows.all(), file, config.length(), callback);
        int training = rows.training().rows().size();
        int total = rows.all().size();
        int length = config.length();
        if (length == 0) {
            length = texts.usualLength(trainee.encoder().context());
            if (texts.longer(length) > 0) {
                texts = texts(rows.all(), file, length, callback);
            }
        }
        int[] learned = IntStream.range(0, training).toArray();
        int[] measured = IntStream.range(training, total).toArray();
        EmbeddingGraphs graphs = graphs(length);
        TunedFile tuned = new TunedFile(List.of(), length);
        Texts anchors = texts.select(IntStream.range(0, total).toArray());
        Texts others = texts.select(IntStream.range(total, 2 * total).toArray());
        DataSummary summary = new DataSummary.Examples(
                "pair",
                List.of(new DataSummary.Group("", training, total - training)),
                length + " tokens",
                texts.reaching(length),
                trainee.model().describe());
        return new EmbeddingLesson(
                graphs,
                new EmbeddingLesson.Pairs(anchors.select(learned), others.select(learned)),
                new EmbeddingLesson.Pairs(anchors.select(measured), others.select(measured)),
                trainee.start(graphs.model()),
                config.train(),
                TunedTrainee.fingerprints(rows, file, tuned),
                summary,
                trainee.writer(graphs.model(), tuned));
    }

    /// The first texts of all pairs, then the second ones.
    private Texts texts(List<Row> rows, Path file, int length, Callback callback) {
        FineTuneConfig.ExamplesConfig data = config.data();
        List<Texts.Pair> all = new ArrayList<>();
        rows.forEach(row -> all.add(new Texts.Pair(row.text(data.text()), "")));
        rows.forEach(row -> all.add(new Texts.Pair(row.text(data.second()), "")));
        try (TextTokenizer tokenizer = trainee.open(file, length)) {
            return Texts.of(all, tokenizer, callback);
        }
    }
}
