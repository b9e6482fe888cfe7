package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Compiler;
import ingot.data.Batches;
import ingot.ir.IngotException;
import ingot.nn.Gpt;
import ingot.nn.ImageClassifier;
import ingot.nn.Mlp;
import ingot.nn.Parameter;
import ingot.runtime.Executor;
import ingot.runtime.StageUpdates;
import ingot.store.RamStore;
import ingot.store.WeightStore;
import ingot.store.WeightStore.Key;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// A network that is compiled, fitted, evaluated and asked: the face known from Keras, over a `Trainer`.
///
/// ```java
/// float[][] x = …; // [rows, 2]
/// int[] classes = …;
/// try (Model model = Model.of(Mlp.of(2, 32, 3), backend)) {
///     model.compile(Optimizer.AdamW.DEFAULT, Schedule.constant(1e-2, 0), Loss.CROSS_ENTROPY, 32);
///     model.fit(Examples.of(x, classes), 20);
///     double loss = model.evaluate(Examples.of(testX, testClasses));
///     float[][] logits = model.predict(testX);
/// }
/// ```
///
/// The weights live in memory until `close`. For long runs over text, with checkpoints, see `TrainingRun`.
public final class Model implements AutoCloseable {
    private final Architecture architecture;
    private final Backend backend;
    private final RamStore store = new RamStore();
    private @Nullable Recipe recipe;
    private Loss loss = Loss.CROSS_ENTROPY;
    private @Nullable Trainer trainer;
    private @Nullable Examples examples;
    private @Nullable Batches batches;

    private Model(Architecture architecture, Backend backend) {
        this.architecture = architecture;
        this.backend = backend;
    }

    public static Model of(Mlp model, Backend backend) {
        return new Model(new Architecture.Perceptron(model), backend);
    }

    public static Model of(Gpt model, Backend backend) {
        return new Model(new Architecture.Language(model), backend);
    }

    public static Model of(ImageClassifier model, Backend backend) {
        return new Model(new Architecture.Pictures(model), backend);
    }

    /// Says how to train, in batches of `batch` rows. The weights get their first values.
    public Model compile(Optimizer optimizer, Schedule schedule, Loss kind, int batch) {
        return compile(Recipe.of(optimizer, schedule, batch), kind);
    }

    /// The same with every setting.
    public Model compile(Recipe how, Loss kind) {
        if (recipe != null) {
            throw new IngotException("model: it is compiled already; make another one");
        }
        Task task = new Task(
                architecture.parameters(),
                rows -> architecture.loss(kind, rows),
                Architecture.batched(),
                architecture.keyed(),
                this::feed);
        trainer = new Trainer(task, how, backend, store);
        recipe = how;
        loss = kind;
        return this;
    }

    /// Trains until every row was seen `epochs` times more; the loss of every step.
    public List<Float> fit(Examples data, double epochs) {
        return advance(data, new Batches(data.count(), recipe().batch(), recipe().seed()).steps(epochs));
    }

    /// Trains `steps` steps more. Their order depends on the seed and the steps done before.
    List<Float> advance(Examples data, long steps) {
        examples = data;
        batches = new Batches(data.count(), recipe().batch(), recipe().seed());
        List<Float> history = new ArrayList<>();
        for (long i = 0; i < steps; i++) {
            history.add(trainer().next().loss());
        }
        trainer().flush();
        return history;
    }

    /// The mean loss over all rows; the weights stay as they are.
    public double evaluate(Examples data) {
        int rows = Math.min(recipe().batch(), data.count());
        int whole = data.count() / rows * rows;
        double sum = sum(data, 0, whole, rows);
        if (whole < data.count()) {
            sum += sum(data, whole, data.count(), data.count() - whole);
        }
        return sum / ((double) data.count() * architecture.terms(loss));
    }

    /// The sum of the losses of rows [from, to), a multiple of `rows` of them, `rows` at a time.
    private double sum(Examples data, int from, int to, int rows) {
        try (Executor executor =
                new Executor(Compiler.inference(architecture.evaluation(loss, rows)), backend, store)) {
            executor.input("scale").set(ValueLayout.JAVA_FLOAT, 0, 1);
            double sum = 0;
            for (int at = from; at < to; at += rows) {
                for (int row = 0; row < rows; row++) {
                    architecture.write(loss, data, at + row, null, executor, row);
                }
                executor.run(StageUpdates.NONE);
                sum += executor.output("loss").get(ValueLayout.JAVA_FLOAT, 0);
            }
            return sum;
        }
    }

    /// The outputs for rows of numbers: logits of a classifier, values of a regression.
    public float[][] predict(float[][] inputs) {
        if (architecture.inputs() == 0) {
            throw new IngotException(
                    "model: predict takes rows of numbers; save a language model and use TextGenerator");
        }
        int rows = Math.clamp(inputs.length, 1, recipe().batch());
        int width = architecture.outputs();
        float[][] outputs = new float[inputs.length][width];
        try (Executor executor = new Executor(Compiler.inference(architecture.prediction(rows)), backend, store)) {
            for (int from = 0; from < inputs.length; from += rows) {
                int count = Math.min(rows, inputs.length - from);
                for (int i = 0; i < rows; i++) {
                    float[] row = inputs[from + Math.min(i, count - 1)];
                    Architecture.floats("inputs", row, executor.input("x"), i, architecture.inputs());
                }
                executor.run(StageUpdates.NONE);
                for (int i = 0; i < count; i++) {
                    MemorySegment y = executor.output("y");
                    MemorySegment.copy(y, ValueLayout.JAVA_FLOAT, 4L * i * width, outputs[from + i], 0, width);
                }
            }
        }
        return outputs;
    }

    /// Writes a language model as a Hugging Face GPT-2 folder, without its tokenizer.
    public void save(Path folder, int endOfText) {
        if (!(architecture instanceof Architecture.Language language)) {
            throw new IngotException("model: only language models have a file format yet; an Estimator keeps others");
        }
        ModelFolder.save(folder, language.model(), endOfText, store);
    }

    /// The steps done.
    public long step() {
        return trainer().step();
    }

    public List<Parameter> parameters() {
        return architecture.parameters();
    }

    /// A copy of a weight's values.
    public float[] weight(String name) {
        MemorySegment memory = store.pin(Key.weight(name));
        float[] values = memory.toArray(ValueLayout.JAVA_FLOAT);
        store.release(Key.weight(name), false);
        return values;
    }

    WeightStore store() {
        return store;
    }

    Trainer trainer() {
        if (trainer == null) {
            throw new IngotException("model: call compile(optimizer, schedule, loss, batch) first");
        }
        return trainer;
    }

    private Recipe recipe() {
        trainer();
        return Objects.requireNonNull(recipe);
    }

    private long feed(long step, Executor executor) {
        Examples data = Objects.requireNonNull(examples);
        Batches order = Objects.requireNonNull(batches);
        // rows are written side by side: images may have to be decoded
        IntStream.range(0, order.size()).parallel().forEach(row -> {
            Architecture.Place place = new Architecture.Place(recipe().seed(), order.epoch(step, row));
            architecture.write(loss, data, order.sequence(step, row), place, executor, row);
        });
        float terms = (float) order.size() * architecture.terms(loss);
        executor.input("scale").set(ValueLayout.JAVA_FLOAT, 0, 1 / terms);
        return order.size();
    }

    @Override
    public void close() {
        if (trainer != null) {
            trainer.close();
        }
        store.close();
    }
}
