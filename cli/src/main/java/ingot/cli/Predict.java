package ingot.cli;

import ingot.compiler.Backend;
import ingot.cpu.Autotuner;
import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.ir.IngotException;
import ingot.train.ImageLabeler;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `ingot predict`.
@Command(
        name = "predict",
        mixinStandardHelpOptions = true,
        header = "Says what a fine-tuned model makes of files.",
        description = {"", "Prints the likeliest classes of every image with their probabilities.", ""},
        footer = {"", "Example:", "  ingot predict runs/fashion-mnist coat.png boot.jpg"})
final class Predict implements Callable<Integer> {
    private final Screen screen;

    @Parameters(index = "0", paramLabel = "RUN", description = "The folder of a run, or a Hugging Face folder.")
    private String run = "";

    @Parameters(index = "1..*", paramLabel = "FILE", description = "What to look at.")
    private List<String> files = new ArrayList<>();

    @Option(names = "--top", paramLabel = "N", description = "How many classes are printed.", defaultValue = "3")
    private int top = 3;

    @Option(names = "--threads", paramLabel = "N", description = "0: one per core. Never changes a prediction.")
    private int threads = 0;

    Predict(Screen screen) {
        this.screen = screen;
    }

    @Override
    public Integer call() {
        Path folder = ConfigFile.folder(run);
        try (TilePool pool = new TilePool(Threads.of(threads))) {
            Backend backend = new CpuBackend(pool, Autotuner.ofMachine());
            if (ImageLabeler.fits(folder)) {
                return images(folder, backend);
            }
        }
        throw new IngotException(run + ": no model of images (it has no preprocessor_config.json)");
    }

    private int images(Path folder, Backend backend) {
        if (files.isEmpty()) {
            throw new IngotException("predict: name an image, such as ingot predict " + run + " image.png");
        }
        try (ImageLabeler labeler = ImageLabeler.open(folder, backend)) {
            for (String file : files) {
                String guesses = labeler.guess(ConfigFile.path(file)).stream()
                        .limit(Math.max(1, top))
                        .map(guess ->
                                String.format(Locale.ROOT, "%s %.1f %%", guess.label(), 100 * guess.probability()))
                        .collect(Collectors.joining("   "));
                screen.line((files.size() == 1 ? "" : file + "   ") + guesses);
            }
        }
        return 0;
    }
}
