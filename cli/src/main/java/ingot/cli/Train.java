package ingot.cli;

import ingot.compiler.Backend;
import ingot.cpu.Autotuner;
import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.ir.IngotException;
import ingot.train.MemoryBudget;
import ingot.train.RunConfig;
import ingot.train.Sampling;
import ingot.train.TextGenerator;
import ingot.train.TrainingRun;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

/// `ingot train`.
@Command(
        name = "train",
        mixinStandardHelpOptions = true,
        header = "Trains a language model on a corpus, or continues a run that was stopped.",
        description = {
            "",
            "Reads the corpus (a file, a folder, a Maven artifact or an npm package), trains",
            "a byte-pair tokenizer and a GPT, and measures it on text that it has not seen;",
            "or goes on from a model that exists (model.base, tokenizer.file).",
            "A configuration with a task, such as image-classification, is one of",
            "`ingot fine-tune`; both commands run it.",
            "The run folder is a Hugging Face GPT-2 checkpoint (config.json,",
            "model.safetensors, tokenizer.json) beside metrics.jsonl, TensorBoard event",
            "files and the state from which the same command continues: after Ctrl-C, after",
            "`kill -9`, after a power cut, with the same bits as a run that nothing stopped.",
            "A run that streams from disk keeps its state in RUN/store, saves every step and",
            "writes the model when it has finished; `ingot export` writes it before.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  ingot train examples/quickstart.yaml",
            "  ingot train examples/quickstart.yaml train.steps=200 run=runs/short",
            "  ingot train examples/gpt-1b.yaml --memory 512MiB",
            "  ingot train examples/quickstart.yaml data.corpus=notes run=runs/notes"
        })
final class Train implements Callable<Integer> {
    private static final int COMPLETION_TOKENS = 60;

    /// The part of the memory that the weights may take: caches and activations need the rest.
    private static final double ROOM = 0.8;

    private final Screen screen;

    @Parameters(
            index = "0",
            paramLabel = "CONFIG",
            description = "The configuration (YAML), or the folder of a run to continue.")
    private String file = "";

    @Parameters(
            index = "1..*",
            paramLabel = "key=value",
            description = "Settings that win over the file, such as train.steps=200.")
    private List<String> overrides = List.of();

    @Mixin
    private MemoryOption memory = new MemoryOption();

    Train(Screen screen) {
        this.screen = screen;
    }

    @Override
    public Integer call() {
        if (!(ConfigFile.settings(file, memory.with(overrides)) instanceof RunConfig config)) {
            return FineTune.train(screen, file, overrides, memory);
        }
        TrainingScreen progress = new TrainingScreen(screen, config, System::nanoTime);
        try (TilePool pool = new TilePool(Threads.of(config.threads()));
                Interrupt interrupt = Interrupt.on(progress::interrupt)) {
            Backend backend = new CpuBackend(pool, Autotuner.ofMachine());
            TrainingRun.Outcome outcome =
                    new TrainingRun(config, backend, progress, new Machine(Path.of("/")).available()).train();
            screen.end(!outcome.finished());
            if (!outcome.finished()) {
                screen.line("Stopped after step " + outcome.step() + "; its state is safe. Continue with");
                screen.line("  " + again());
                return interrupt.received() ? interrupt.status() : 0;
            }
            report(config, backend, outcome, progress.elapsed());
            return 0;
        }
    }

    private void report(RunConfig config, Backend backend, TrainingRun.Outcome outcome, double seconds) {
        screen.line("");
        if (outcome.evaluation() != null) {
            screen.line("Held-out text: " + screen.bold(TrainingScreen.evaluation(outcome.evaluation())));
        }
        screen.line("Finished " + Quantity.count(outcome.step(), "step") + "; this command took "
                + Quantity.duration(seconds) + ".");
        List<String> prompts = Prompts.of(config);
        if (fits(config)) {
            complete(Path.of(config.run()), backend, prompts);
        }
        screen.line("");
        screen.line("SHA-256 of weights, moments and losses: " + outcome.digest());
        next(config, prompts.getFirst());
    }

    /// True if the memory that the run may use has room for the whole model, which completions need.
    private boolean fits(RunConfig config) {
        Path model = Path.of(config.run()).resolve("model.safetensors");
        try {
            long bytes = Files.size(model);
            long available = config.memory().isEmpty()
                    ? new Machine(Path.of("/")).available()
                    : MemoryBudget.of(MemoryBudget.parse(config.memory())).available();
            if (bytes > available * ROOM) {
                screen.line("No completions here: the model of " + Quantity.bytes(bytes) + " does not fit into "
                        + Quantity.bytes(available) + ", and generating needs all of it.");
                return false;
            }
            return true;
        } catch (IOException e) {
            throw new IngotException("train: cannot read " + model + ": " + e.getMessage(), e);
        }
    }

    private void complete(Path folder, Backend backend, List<String> prompts) {
        screen.line("");
        screen.line(Quantity.count(prompts.size(), "completion") + ":");
        try (TextGenerator generator = TextGenerator.open(folder, backend)) {
            long seed = 1;
            for (String prompt : prompts) {
                screen.line(screen.dim("────"));
                screen.print(screen.bold(prompt));
                generator.generate(prompt, new Sampling(0.7, 40, 0.95, seed++, COMPLETION_TOKENS), screen::print);
                screen.line("");
            }
        }
        screen.line(screen.dim("────"));
    }

    private void next(RunConfig config, String prompt) {
        String run = config.run();
        String ingot = Shell.ingot();
        screen.line("");
        screen.line("What now?");
        screen.line("  generate    " + ingot + " generate " + Shell.quote(run) + " --prompt "
                + Shell.quote(prompt.strip()));
        screen.line("  measure     " + ingot + " eval " + Shell.quote(run) + " --data FILE_OR_FOLDER");
        screen.line("  look        tensorboard --logdir " + Shell.quote(run) + "    or " + run + "/metrics.jsonl");
        screen.line("  export      the folder is a Hugging Face GPT-2 checkpoint already; in Python:");
        screen.line("              GPT2LMHeadModel.from_pretrained(\"" + run + "\")");
        screen.line("              PreTrainedTokenizerFast(tokenizer_file=\"" + run + "/tokenizer.json\")");
        screen.line("  resume      a run that was stopped continues with the command that began it:");
        screen.line("              " + again());
        screen.line("  another     " + again() + " run=runs/another train.learning-rate=5e-4");
    }

    private String again() {
        return Shell.again("train", file, memory, overrides);
    }
}
