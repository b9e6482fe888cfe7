package ingot.train;

import ingot.data.Corpus;
import ingot.data.HeldOut;
import ingot.data.Row;
import ingot.data.Table;
import ingot.ir.IngotException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.stream.IntStream;

/// The examples of a run: those to learn from and those held out.
record ExampleRows(Table training, Table heldOut) {
    /// Reads what a configuration names.
    ///
    /// @param content what an example shows, so that equal ones stay together
    /// @param kind its class, so that every class is held out in part
    static ExampleRows read(
            FineTuneConfig config, Callback callback, Function<Row, String> content, Function<Row, String> kind) {
        FineTuneConfig.ExamplesConfig data = config.data();
        Table all = table(data.source(), data, callback);
        if (!data.evaluation().isEmpty()) {
            return new ExampleRows(all, table(data.evaluation(), data, callback));
        }
        HeldOut.Split split = HeldOut.of(
                all.rows().stream().map(content).toList(),
                all.rows().stream().map(kind).toList(),
                data.heldOut(),
                config.train().seed());
        if (split.training().length == 0 || split.heldOut().length == 0) {
            throw new IngotException(data.source() + ": " + all.rows().size()
                    + " examples are too few to hold some out; name others to measure with in data.evaluation");
        }
        return new ExampleRows(select(all, split.training()), select(all, split.heldOut()));
    }

    private static Table table(String source, FineTuneConfig.ExamplesConfig data, Callback callback) {
        callback.onPhase("reading " + source, 0, 0);
        Corpus corpus =
                Corpus.open(source, data.include(), Corpus.defaultCache(), notice -> callback.onPhase(notice, 0, 0));
        if (!corpus.replacements().isEmpty()) {
            List<String> names = corpus.replacements();
            callback.onWarning(
                    "malformed UTF-8 was replaced in " + names.size() + " files, such as " + names.getFirst());
        }
        boolean globbed = data.labels().values().stream().anyMatch(globs -> !globs.isEmpty());
        return Table.of(corpus, data.format(), globbed ? data.labels() : java.util.Map.of());
    }

    private static Table select(Table all, int[] indices) {
        return new Table(
                all.source(), IntStream.of(indices).mapToObj(all.rows()::get).toList());
    }

    /// Both parts, one after the other.
    List<Row> all() {
        List<Row> all = new ArrayList<>(training.rows());
        all.addAll(heldOut.rows());
        return all;
    }
}
