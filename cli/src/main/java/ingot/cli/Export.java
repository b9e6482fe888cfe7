package ingot.cli;

import ingot.compiler.Backend;
import ingot.cpu.Autotuner;
import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.train.RunConfig;
import ingot.train.TrainingRun;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `ingot export`.
@Command(
        name = "export",
        mixinStandardHelpOptions = true,
        header = "Writes the model of a run that streams from disk, as it is now.",
        description = {
            "",
            "The folder gets a Hugging Face GPT-2 checkpoint: config.json,",
            "model.safetensors and tokenizer.json. The update of the last step is applied",
            "first; the run may go on afterwards. A finished run has written its model",
            "already; so has a run in memory, at every checkpoint.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  ingot export runs/gpt-1b --memory 512MiB",
            "  ingot export runs/gpt-1b --to models/after-three-steps"
        })
final class Export implements Callable<Integer> {
    private final Screen screen;

    @Parameters(index = "0", paramLabel = "RUN", description = "The folder of the run.")
    private String run = "";

    @Option(names = "--to", paramLabel = "FOLDER", description = "Where to write; the run folder if not given.")
    private @Nullable Path to;

    @Mixin
    private MemoryOption memory = new MemoryOption();

    Export(Screen screen) {
        this.screen = screen;
    }

    @Override
    public Integer call() {
        RunConfig config = ConfigFile.read(run, memory.with(List.of()));
        Path folder = to == null ? Path.of(config.run()) : to;
        Phases phases = new Phases(screen, System::nanoTime);
        phases.at("writing the model to " + folder, 0, 0);
        try (TilePool pool = new TilePool(Threads.of(config.threads()))) {
            Backend backend = new CpuBackend(pool, Autotuner.ofMachine());
            long steps = new TrainingRun(
                            config,
                            backend,
                            new TrainingScreen(screen, config, System::nanoTime),
                            new Machine(Path.of("/")).available())
                    .export(folder);
            phases.end();
            screen.line("The model after " + Quantity.count(steps, "step") + " is in " + folder + ".");
        }
        return 0;
    }
}
