package ingot.train;

import ingot.ir.IngotException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// A run of seconds: one layer of width 16 over a folder of invented prose.
final class SmallRun {
    private static final String[] WORDS = {
        "stone", "river", "light", "under", "green", "silver", "carry", "listen", "north", "window"
    };

    private SmallRun() {}

    /// Writes 12 files of text below `folder`.
    static Path corpus(Path folder) {
        Path corpus = folder.resolve("corpus");
        try {
            Files.createDirectories(corpus);
            for (int file = 0; file < 12; file++) {
                StringBuilder text = new StringBuilder();
                int at = file;
                for (int i = 0; i < 160; i++) {
                    at = (at * 7 + 3 + i / 40) % 10;
                    text.append(WORDS[at]).append(i % 9 == 8 ? ".\n" : " ");
                }
                Files.writeString(corpus.resolve("f" + file + ".txt"), text);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return corpus;
    }

    /// 8 steps of 4 sequences of 16 tokens, a checkpoint every 2 and an evaluation every 4 steps.
    static RunConfig config(Path folder, String run, String... overrides) {
        String yaml = """
            run: %s
            model: {layers: 1, width: 16, heads: 2, context: 16}
            data: {corpus: %s, held-out: 0.25}
            tokenizer: {vocabulary: 270}
            train:
              steps: 8
              batch: 4
              learning-rate: 0.01
              evaluate-every: 4
              checkpoint-every: 2
            """.formatted(folder.resolve(run), folder.resolve("corpus"));
        return RunConfig.parse(yaml, List.of(overrides));
    }

    static TrainingRun.Outcome train(RunConfig config, Callback callback) {
        return new TrainingRun(config, Backends.tested(), callback).train();
    }

    /// Remembers what it was told; ends or kills the run after some steps.
    static final class Watcher implements Callback {
        final List<StepReport> steps = new ArrayList<>();
        final List<Long> checkpoints = new ArrayList<>();
        final List<Evaluation> evaluations = new ArrayList<>();
        final List<String> warnings = new ArrayList<>();
        TrainingRun.Summary summary;
        private final long stopAfter;
        private final long killAfter;

        Watcher() {
            this(Long.MAX_VALUE, Long.MAX_VALUE);
        }

        private Watcher(long stopAfter, long killAfter) {
            this.stopAfter = stopAfter;
            this.killAfter = killAfter;
        }

        /// Asks for the end after step `step`, as Ctrl-C does.
        static Watcher stopAfter(long step) {
            return new Watcher(step, Long.MAX_VALUE);
        }

        /// Leaves step `step` by an exception: nothing after it is saved, as after kill −9.
        static Watcher killAfter(long step) {
            return new Watcher(Long.MAX_VALUE, step);
        }

        @Override
        public void onStart(TrainingRun.Summary given) {
            summary = given;
        }

        @Override
        public void onStep(StepReport report) {
            steps.add(report);
            if (report.step() == killAfter) {
                throw new IngotException("killed");
            }
        }

        @Override
        public void onCheckpoint(long step) {
            checkpoints.add(step);
        }

        @Override
        public void onEvaluate(long step, Evaluation evaluation) {
            evaluations.add(evaluation);
        }

        @Override
        public void onWarning(String message) {
            warnings.add(message);
        }

        @Override
        public boolean stop() {
            return !steps.isEmpty() && steps.getLast().step() >= stopAfter;
        }
    }
}
