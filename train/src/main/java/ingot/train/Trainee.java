package ingot.train;

import java.util.Map;

/// What a run trains, before its data is read: a model, and the weights that it begins with.
///
/// A run opens it from its settings, compares `origin` with the state in the run folder, and only then asks for the
/// lesson, which reads the data.
interface Trainee extends AutoCloseable {
    static Trainee of(RunSettings settings, Callback callback) {
        return switch (settings) {
            case RunConfig config -> CorpusTrainee.open(config);
            case FineTuneConfig config -> {
                Trainee tuned = TunedTrainee.open(config, callback);
                yield config.lora() == null
                        ? tuned
                        : new AdaptedTrainee(
                                tuned, config.lora(), config.model().from());
            }
            case ImageConfig config -> ImageTrainee.open(config);
        };
    }

    /// The fingerprint of what it begins with under `RunIdentity.BASE`; empty if the seed decides everything.
    Map<String, String> origin();

    /// Reads the data.
    Lesson lesson(RunFolder folder, Callback callback);

    /// What a run that has begun trains, without its data: there is nothing to feed and nothing to evaluate.
    Lesson withoutData(RunFolder folder);

    /// The lessons stay open.
    @Override
    void close();
}
