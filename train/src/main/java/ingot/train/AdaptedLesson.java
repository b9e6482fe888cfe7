package ingot.train;

import ingot.formats.PeftAdapter;
import ingot.ir.IngotException;
import ingot.ir.Type;
import ingot.nn.Lora;
import ingot.nn.Parameter;
import ingot.store.BaseWeights;
import ingot.store.WeightStore;
import ingot.store.WeightStore.Key;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import java.util.stream.Collectors;

/// A lesson of which low-rank terms learn, and what its model's base does not have, such as a new head. The base is
/// frozen, so with streaming it stays in its files.
///
/// Saved is the model with the terms in its matrices, and the adapter alone in the folder `adapter`.
record AdaptedLesson(Lesson inner, Lora lora, Task task, String from) implements Lesson {
    private static final String FOLDER = "adapter";

    static Lesson of(Lesson inner, Lora.Settings settings, String from) {
        Task plain = inner.task();
        Start start = plain.start();
        BaseWeights base = start.base();
        if (base == null) {
            throw new IngotException(
                    "configuration: lora adapts a model that exists; with model.weights: random there is"
                            + " none, leave out lora");
        }
        Lora lora = Lora.of(settings, plain.lossGraph().apply(1));
        List<Parameter> all = new ArrayList<>(plain.parameters());
        all.addAll(lora.parameters());
        Set<String> frozen = plain.parameters().stream()
                .map(Parameter::name)
                .filter(name -> start.frozen().contains(name) || base.contains(name))
                .collect(Collectors.toSet());
        Task task = new Task(
                all,
                rows -> lora.adaptForLearning(plain.lossGraph().apply(rows), rows),
                plain.batched(),
                plain.keyed() || settings.dropout() > 0,
                plain.feed(),
                new Start(base, frozen));
        return new AdaptedLesson(inner, lora, task, from);
    }

    @Override
    public Recipe recipe(Recipe asked) {
        return inner.recipe(asked);
    }

    @Override
    public int rows() {
        return inner.rows();
    }

    @Override
    public Map<String, String> fingerprints() {
        return inner.fingerprints();
    }

    @Override
    public DataSummary summary() {
        return inner.summary();
    }

    @Override
    public Evaluation evaluate(Inference inference, Callback callback) {
        return inner.evaluate(
                (graph, wished, count) -> inference.open(rows -> lora.adapt(graph.apply(rows)), wished, count),
                callback);
    }

    @Override
    public void save(Path folder, WeightStore store) {
        inner.save(folder, new MergedStore(store, lora));
        Set<String> thin = lora.parameters().stream().map(Parameter::name).collect(Collectors.toSet());
        SequencedMap<String, Type> whole = new LinkedHashMap<>();
        for (Parameter parameter : task.trained()) {
            if (!thin.contains(parameter.name())) {
                whole.put(parameter.name(), parameter.type());
            }
        }
        PeftAdapter.save(
                folder.resolve(FOLDER), lora, from, whole, (name, reader) -> store.read(Key.weight(name), reader));
    }

    @Override
    public void close() {
        inner.close();
    }
}
