package ingot.train;

import ingot.ir.IngotException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.Supplier;

/// A model that lives in a folder between calls: the face known from TensorFlow, over `Model` and its checkpoints.
///
/// ```java
/// Estimator<Integer> estimator = Estimator.of(
///         width -> Model.of(Mlp.of(2, width, 3), backend)
///                 .compile(Optimizer.AdamW.DEFAULT, Schedule.constant(1e-2, 0), Loss.CROSS_ENTROPY, 32),
///         Path.of("models/spirals"),
///         64);
/// estimator.train(() -> Examples.of(x, classes), 1000);
/// double loss = estimator.evaluate(() -> Examples.of(testX, testClasses));
/// float[][] logits = estimator.predict(() -> testX);
/// ```
///
/// `train` continues where the folder is: 500 and 500 steps give the bits of 1,000.
public final class Estimator<P> {
    private final Function<P, Model> modelFunction;
    private final Path folder;
    private final P parameters;

    private Estimator(Function<P, Model> modelFunction, Path folder, P parameters) {
        this.modelFunction = modelFunction;
        this.folder = folder;
        this.parameters = parameters;
    }

    /// `modelFunction` gives a new compiled model for the parameters; they identify it, so another value is refused by
    /// a folder that has a checkpoint.
    public static <P> Estimator<P> of(Function<P, Model> modelFunction, Path modelDirectory, P parameters) {
        return new Estimator<>(modelFunction, modelDirectory, parameters);
    }

    /// Trains `steps` steps more and saves; the loss of the last.
    public double train(Supplier<Examples> inputFunction, long steps) {
        if (steps < 1) {
            throw new IngotException("estimator: steps expected at least 1, got " + steps);
        }
        try (RunLock _ = RunLock.take(folder);
                Model model = modelFunction.apply(parameters)) {
            restore(model);
            float last = model.advance(inputFunction.get(), steps).getLast();
            String losses = model.trainer().losses();
            Checkpoint.save(
                    checkpoints(),
                    Checkpoint.State.of(model.step(), identity(model), Map.of(), losses, model.store(), Set.of()),
                    model.store());
            return last;
        }
    }

    /// The mean loss of the saved model.
    public double evaluate(Supplier<Examples> inputFunction) {
        try (Model model = saved()) {
            return model.evaluate(inputFunction.get());
        }
    }

    /// The outputs of the saved model.
    public float[][] predict(Supplier<float[][]> inputFunction) {
        try (Model model = saved()) {
            return model.predict(inputFunction.get());
        }
    }

    /// Steps done by the saved model; 0 if there is none.
    public long step() {
        Checkpoint.State state = Checkpoint.newest(checkpoints());
        return state == null ? 0 : state.step();
    }

    private Model saved() {
        if (step() == 0) {
            throw new IngotException("estimator: " + folder + " has no trained model; call train first");
        }
        Model model = modelFunction.apply(parameters);
        restore(model);
        return model;
    }

    /// Continues from the newest checkpoint, if there is one.
    private void restore(Model model) {
        Checkpoint.State described = Checkpoint.newest(checkpoints());
        if (described != null && !described.identity().equals(identity(model))) {
            throw new IngotException("estimator: " + folder + " holds a model of " + described.identity()
                    + ", this one is of " + identity(model) + "; choose another folder or the old parameters");
        }
        Checkpoint.State state = Checkpoint.load(checkpoints(), model.store(), warning -> {});
        if (state != null) {
            model.trainer().continueAt(state.step(), state.losses());
        }
    }

    private Map<String, String> identity(Model model) {
        Map<String, String> identity = new LinkedHashMap<>();
        identity.put("parameters", String.valueOf(parameters));
        Map<String, String> types = new TreeMap<>();
        model.parameters().forEach(p -> types.put(p.name(), p.type().toString()));
        identity.putAll(types);
        return identity;
    }

    private Path checkpoints() {
        return folder.resolve("resume");
    }
}
