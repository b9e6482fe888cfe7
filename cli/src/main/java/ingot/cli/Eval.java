package ingot.cli;

import ingot.cpu.Autotuner;
import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.train.Callback;
import ingot.train.Evaluation;
import ingot.train.Evaluator;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `ingot eval`.
@Command(
        name = "eval",
        mixinStandardHelpOptions = true,
        header = "Measures a trained model on a text.",
        description = {
            "",
            "Prints bits per byte, which compares across tokenizers, and the loss and the",
            "perplexity per token. All of the text counts: name one that the model was not",
            "trained on.",
            ""
        },
        footer = {"", "Example:", "  ingot eval runs/quickstart --data src --include '**/*.java'"})
final class Eval implements Callable<Integer> {
    private final Screen screen;

    @Parameters(
            index = "0",
            paramLabel = "RUN",
            description = "A run folder, or any Hugging Face folder of a causal language model.")
    private String run = "";

    @Option(
            names = "--data",
            paramLabel = "SOURCE",
            description = "A file, a folder, maven:group:artifact:version:jar:sources or npm:name@version. "
                    + "Without it: the text that this run held out.")
    private String data = "";

    @Option(
            names = "--include",
            paramLabel = "GLOB",
            description = "Only files like this, such as '**/*.java'; !GLOB leaves out. May be repeated.")
    private List<String> include = List.of();

    @Option(names = "--threads", paramLabel = "N", description = "0: one per core. Never changes the result.")
    private int threads = 0;

    Eval(Screen screen) {
        this.screen = screen;
    }

    @Override
    public Integer call() {
        Path folder = Generate.model(run);
        Phases phases = new Phases(screen, System::nanoTime);
        Callback progress = new Callback() {
            @Override
            public void onPhase(String phase, long done, long total) {
                phases.at(phase, done, total);
            }

            @Override
            public void onWarning(String message) {
                screen.warn("warning: " + message);
            }
        };
        try (TilePool pool = new TilePool(Threads.of(threads))) {
            Evaluation.Text result =
                    Evaluator.evaluate(folder, data, include, new CpuBackend(pool, Autotuner.ofMachine()), progress);
            phases.end();
            screen.line(screen.bold(TrainingScreen.evaluation(result)) + ", over " + Quantity.count(result.tokens())
                    + " tokens");
        }
        return 0;
    }
}
