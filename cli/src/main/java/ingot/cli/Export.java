package ingot.cli;

import ingot.compiler.Backend;
import ingot.cpu.Autotuner;
import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.formats.OnnxWriter;
import ingot.formats.PortableModel;
import ingot.ir.IngotException;
import ingot.train.RunConfig;
import ingot.train.TrainingRun;
import ingot.train.TunedOnnx;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `ingot export`.
@Command(
        name = "export",
        mixinStandardHelpOptions = true,
        header = "Writes a model as ONNX, safetensors or a Hugging Face folder.",
        description = {
            "",
            "Of a run, a Hugging Face folder, an ONNX file, or weights alone. A name that",
            "ends in .onnx becomes an ONNX file, with standard operators and open batch and",
            "sequence sizes where the model allows it; one in .safetensors the weights; any",
            "other a folder in the layout of Hugging Face. Without --to, the model of a run",
            "that streams is written into its folder; its last update is applied first, and",
            "the run may go on.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  ingot export runs/quickstart --to onnx",
            "  ingot export models/all-MiniLM-L6-v2 --to minilm.onnx --size sequence=128",
            "  ingot export model.onnx --to safetensors",
            "  ingot export runs/gpt-1b --memory 512MiB --to models/after-three-steps"
        })
final class Export implements Callable<Integer> {
    private final Screen screen;

    @Parameters(
            index = "0",
            paramLabel = "MODEL",
            description = "The folder of a run or of a model, or a file of ONNX, safetensors or PyTorch.")
    private String run = "";

    @Option(
            names = "--to",
            paramLabel = "FORMAT|PATH",
            description = "onnx or safetensors: model.onnx (tuned.onnx, where that is the model it was made of) or"
                    + " model.safetensors beside the model; FILE.onnx,"
                    + " FILE.safetensors, or a folder.")
    private @Nullable String to;

    @Option(
            names = "--size",
            paramLabel = "NAME=N",
            description = "ONNX: a size that is not left open, such as batch=1 or sequence=128.")
    private Map<String, Integer> sizes = new LinkedHashMap<>();

    @Mixin
    private MemoryOption memory = new MemoryOption();

    Export(Screen screen) {
        this.screen = screen;
    }

    /// Where to, and in which layout.
    private record Target(Kind kind, Path path) {
        enum Kind {
            ONNX,
            TENSORS,
            FOLDER
        }

        static Target of(@Nullable String to, Path source) {
            Path folder = Files.isDirectory(source) ? source : folderOf(source);
            if (to == null) {
                return new Target(Kind.FOLDER, folder);
            }
            String lower = to.toLowerCase(Locale.ROOT);
            return switch (lower) {
                case "onnx" ->
                    new Target(Kind.ONNX, folder.resolve(TunedOnnx.isIn(folder) ? "tuned.onnx" : "model.onnx"));
                case "safetensors" -> new Target(Kind.TENSORS, folder.resolve("model.safetensors"));
                default ->
                    new Target(
                            lower.endsWith(".onnx")
                                    ? Kind.ONNX
                                    : lower.endsWith(".safetensors") ? Kind.TENSORS : Kind.FOLDER,
                            ConfigFile.path(to));
            };
        }
    }

    private static Path folderOf(Path file) {
        return Objects.requireNonNull(file.toAbsolutePath().getParent(), "a file lies in a folder");
    }

    @Override
    public Integer call() throws IOException {
        Path source = ConfigFile.folder(run);
        Target target = Target.of(to, source);
        if (!Files.isDirectory(source.resolve("store"))) {
            write(source, target);
        } else if (target.kind() == Target.Kind.FOLDER || target.path().equals(source.resolve("model.safetensors"))) {
            streamed(target.kind() == Target.Kind.FOLDER ? target.path() : source);
        } else {
            Files.createDirectories(folderOf(target.path()));
            Path between = Files.createTempDirectory(folderOf(target.path()), ".export");
            try {
                streamed(between);
                write(between, target);
            } finally {
                delete(between);
            }
        }
        return 0;
    }

    /// Writes the model of a run whose state is on disk into a folder.
    private void streamed(Path folder) {
        RunConfig config = ConfigFile.read(run, memory.with(List.of()));
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
    }

    private void write(Path source, Target target) throws IOException {
        if (to == null) {
            throw new IngotException("export: " + source
                    + " has no store of a streamed run; name a layout with --to onnx, safetensors or a folder");
        }
        try (PortableModel model = TunedOnnx.open(source).orElseGet(() -> PortableModel.open(source))) {
            if (isModel(target.path(), model.file().path())) {
                throw new IngotException("export: " + target.path() + " is the model itself; name another place");
            }
            switch (target.kind()) {
                case ONNX -> onnx(model, target.path());
                case TENSORS -> {
                    if (Files.isDirectory(source) && isWeights(source, target.path())) {
                        screen.line("The weights are in " + target.path() + " already.");
                        return;
                    }
                    model.writeTensors(target.path());
                    screen.line(Quantity.count(model.weights().types().size(), "tensor") + " are in " + target.path()
                            + ", " + Quantity.bytes(Files.size(target.path())) + ".");
                }
                case FOLDER -> {
                    model.writeFolder(target.path());
                    screen.line("The model is in " + target.path() + ".");
                }
            }
        }
    }

    /// True if a file or folder is the model, or the graph that a tuned model was made of.
    private static boolean isModel(Path target, Path model) throws IOException {
        return Files.exists(target)
                && (Files.isSameFile(target, model)
                        || (target.endsWith("model.onnx")
                                && Files.isSameFile(folderOf(target), model)
                                && TunedOnnx.isIn(model)));
    }

    private static boolean isWeights(Path source, Path target) throws IOException {
        return Files.exists(target)
                && Files.exists(source.resolve("model.safetensors"))
                && Files.isSameFile(source.resolve("model.safetensors"), target);
    }

    private void onnx(PortableModel model, Path file) throws IOException {
        OnnxWriter.Written written = model.writeOnnx(file, LENGTH, sizes);
        screen.line("The model is in " + file + ", " + Quantity.bytes(Files.size(file)) + ".");
        if (!written.open().isEmpty()) {
            screen.line("Open sizes: " + String.join(", ", written.open()) + ".");
        }
        if (!written.fixed().isEmpty()) {
            screen.line("Fixed sizes, because the graph depends on them: "
                    + written.fixed().entrySet().stream()
                            .map(entry -> entry.getKey() + " = " + entry.getValue())
                            .collect(Collectors.joining(", "))
                    + "; choose others with --size.");
        }
    }

    /// What a size becomes that cannot stay open.
    private static final int LENGTH = 128;

    private static void delete(Path folder) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }
}
