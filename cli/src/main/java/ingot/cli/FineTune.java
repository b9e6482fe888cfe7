package ingot.cli;

import ingot.compiler.Backend;
import ingot.cpu.Autotuner;
import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.train.Evaluation;
import ingot.train.ImageConfig;
import ingot.train.RunSettings;
import ingot.train.TrainingRun;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `ingot fine-tune`.
@Command(
        name = "fine-tune",
        mixinStandardHelpOptions = true,
        header = "Teaches a model that exists with your own examples, or continues such a run.",
        description = {
            "",
            "Opens a Hugging Face folder or an ONNX text encoder, reads examples (CSV, JSONL,",
            "or a file each, in folders), trains, and measures the model on examples that",
            "it has not seen. The run folder holds the tuned model in the layout of its",
            "origin, its tokenizer, metrics.jsonl, and the state from which the same command",
            "continues: after Ctrl-C, after `kill -9`, with the same bits.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  ingot fine-tune examples/spam.yaml",
            "  ingot fine-tune examples/spam.yaml --compare-scratch",
            "  ingot fine-tune examples/spam.yaml train.freeze='[*embeddings*]' run=runs/frozen"
        })
final class FineTune implements Callable<Integer> {
    private final Screen screen;

    @Parameters(
            index = "0",
            paramLabel = "CONFIG",
            description = "The configuration (YAML), or the folder of a run to continue.")
    private String file = "";

    @Parameters(
            index = "1..*",
            paramLabel = "key=value",
            description = "Settings that win over the file, such as train.epochs=2.")
    private List<String> overrides = List.of();

    @Option(
            names = "--compare-scratch",
            description = "Afterwards train the same model from random weights, in RUN-scratch, and print both.")
    private boolean compare;

    @Mixin
    private MemoryOption memory = new MemoryOption();

    /// How a run that was stopped ends the command.
    private int status;

    /// The command that was given.
    private String verb = "fine-tune";

    FineTune(Screen screen) {
        this.screen = screen;
    }

    /// What `ingot train` does with a configuration that has a `task`.
    static int train(Screen screen, String file, List<String> overrides, MemoryOption memory) {
        FineTune command = new FineTune(screen);
        command.verb = "train";
        command.file = file;
        command.overrides = overrides;
        command.memory = memory;
        return command.call();
    }

    @Override
    public Integer call() {
        RunSettings config = ConfigFile.fineTuning(file, memory.with(overrides));
        try (TilePool pool = new TilePool(Threads.of(config.threads()))) {
            Backend backend = new CpuBackend(pool, Autotuner.ofMachine());
            Evaluation tuned = train(config, backend);
            if (tuned == null) {
                return status;
            }
            next(config);
            if (!compare) {
                return 0;
            }
            List<String> scratch = new ArrayList<>(memory.with(overrides));
            scratch.add("model.weights=random");
            scratch.add("train.freeze=[]"); // nothing random deserves to stay
            scratch.add("run=" + config.run() + "-scratch");
            screen.line("");
            screen.line(screen.bold("The same from random weights"));
            Evaluation random = train(ConfigFile.fineTuning(file, scratch), backend);
            if (random == null) {
                return status;
            }
            screen.line("");
            screen.line("pretrained    " + Words.of(tuned));
            screen.line("from scratch  " + Words.of(random));
            return 0;
        }
    }

    /// Trains to the end; null if it was stopped before, and then `status` says how.
    private @Nullable Evaluation train(RunSettings config, Backend backend) {
        TrainingScreen progress = new TrainingScreen(screen, config, System::nanoTime);
        try (Interrupt interrupt = Interrupt.on(progress::interrupt)) {
            TrainingRun.Outcome outcome =
                    new TrainingRun(config, backend, progress, new Machine(Path.of("/")).available()).train();
            screen.end(!outcome.finished());
            if (!outcome.finished()) {
                screen.line("Stopped after step " + outcome.step() + "; its state is safe. Continue with");
                screen.line("  " + again());
                status = interrupt.received() ? interrupt.status() : 0;
                return null;
            }
            Evaluation evaluation = outcome.evaluation();
            screen.line("");
            if (evaluation != null) {
                screen.line("Held out: " + screen.bold(Words.of(evaluation)));
                if (evaluation instanceof Evaluation.Classes classes) {
                    screen.line("");
                    Words.table(classes.confusion()).forEach(screen::line);
                    screen.line(screen.dim("rows: what it is; columns: what the model says"));
                }
            }
            screen.line("");
            screen.line("Finished " + Quantity.count(outcome.step(), "step") + "; this took "
                    + Quantity.duration(progress.elapsed()) + ".");
            screen.line("SHA-256 of weights, moments and losses: " + outcome.digest());
            return evaluation;
        }
    }

    private void next(RunSettings config) {
        String ingot = Shell.ingot();
        String run = Shell.quote(config.run());
        screen.line("");
        screen.line("What now?");
        screen.line("  predict     " + ingot + " predict " + run + " "
                + (config instanceof ImageConfig ? "image.png" : "FILE …    or --text \"…\""));
        screen.line("  look        tensorboard --logdir " + run + "    or " + config.run() + "/metrics.jsonl");
        screen.line("  resume      a run that was stopped continues with the command that began it:");
        screen.line("              " + again());
    }

    private String again() {
        return Shell.again(verb, file, memory, overrides) + (compare ? " --compare-scratch" : "");
    }
}
