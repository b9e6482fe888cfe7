package ingot.train;

import ingot.nn.Lora;
import java.util.Map;

/// A model that exists, learned by low-rank terms beside its matrices.
record AdaptedTrainee(Trainee inner, Lora.Settings settings, String from) implements Trainee {
    @Override
    public Map<String, String> origin() {
        return inner.origin();
    }

    @Override
    public Lesson lesson(RunFolder folder, Callback callback) {
        Lesson lesson = inner.lesson(folder, callback);
        try {
            return AdaptedLesson.of(lesson, settings, from);
        } catch (RuntimeException e) {
            lesson.close();
            throw e;
        }
    }

    @Override
    public Lesson withoutData(RunFolder folder) {
        return AdaptedLesson.of(inner.withoutData(folder), settings, from);
    }

    @Override
    public void close() {
        inner.close();
    }
}
