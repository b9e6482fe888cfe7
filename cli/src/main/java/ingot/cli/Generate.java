package ingot.cli;

import ingot.cpu.Autotuner;
import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.ir.IngotException;
import ingot.train.Sampling;
import ingot.train.TextGenerator;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Help.Visibility;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `ingot generate`.
@Command(
        name = "generate",
        mixinStandardHelpOptions = true,
        showDefaultValues = true,
        header = "Continues a text with a trained model, token by token.",
        description = {"", "The same command prints the same text on any machine; another --seed another.", ""},
        footer = {"", "Example:", "  ingot generate runs/quickstart --prompt 'public static' --temperature 0.7"})
final class Generate implements Callable<Integer> {
    private final Screen screen;

    @Parameters(
            index = "0",
            paramLabel = "RUN",
            showDefaultValue = Visibility.NEVER,
            description = "A run folder, or any Hugging Face folder of a causal language model.")
    private String run = "";

    @Option(
            names = "--prompt",
            paramLabel = "TEXT",
            showDefaultValue = Visibility.NEVER,
            description = "The text to continue; without it a new one.")
    private String prompt = "";

    @Option(
            names = "--temperature",
            paramLabel = "T",
            description = "0 takes the likeliest token always; higher is more varied.")
    private double temperature = 0.8;

    @Option(names = "--top-k", paramLabel = "K", description = "Choose among the K likeliest tokens; 0: all.")
    private int topK = 40;

    @Option(
            names = "--top-p",
            paramLabel = "P",
            description = "Choose among the likeliest tokens that together have this probability; 1: all.")
    private double topP = 1;

    @Option(names = "--seed", paramLabel = "N", description = "Decides every choice.")
    private long seed = 1;

    @Option(names = "--max-tokens", paramLabel = "N", description = "How many tokens to add at most.")
    private int maxTokens = 200;

    @Option(names = "--threads", paramLabel = "N", description = "0: one per core. Never changes the text.")
    private int threads = 0;

    Generate(Screen screen) {
        this.screen = screen;
    }

    @Override
    public Integer call() {
        Sampling sampling = new Sampling(temperature, topK, topP, seed, maxTokens);
        try (TilePool pool = new TilePool(Threads.of(threads));
                TextGenerator generator = TextGenerator.open(model(run), new CpuBackend(pool, Autotuner.known()))) {
            screen.print(screen.bold(prompt));
            generator.generate(prompt, sampling, screen::print);
            screen.line("");
        }
        return 0;
    }

    /// The folder of a model, which must have one.
    static Path model(String run) {
        Path folder = ConfigFile.folder(run);
        if (!Files.exists(folder.resolve("config.json"))) {
            throw new IngotException(
                    run + ": no model in it (config.json, model.safetensors); expected the folder of a run that"
                            + " has written a checkpoint, or a Hugging Face folder of a language model");
        }
        return folder;
    }
}
