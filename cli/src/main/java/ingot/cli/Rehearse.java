package ingot.cli;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import picocli.CommandLine.Command;

/// A small training and a small generation, for the launcher: Java records which classes and code they need, and every
/// later command starts with them (JEP 483, JEP 515).
@Command(name = "rehearse", hidden = true, description = "Runs small commands, to be recorded for a faster start.")
final class Rehearse implements Callable<Integer> {
    private static final String SETTINGS = """
        run: %s
        model: {layers: 2, width: 64, heads: 2, context: 64}
        data: {corpus: %s, include: ["**/*.txt"], held-out: 0.2}
        tokenizer: {vocabulary: 300}
        train: {steps: 4, batch: 2, evaluate-every: 4}
        """;

    @Override
    public Integer call() throws IOException {
        Path folder = Files.createTempDirectory("ingot-rehearsal");
        try {
            Path texts = Files.createDirectory(folder.resolve("texts"));
            for (int i = 0; i < 8; i++) {
                Files.writeString(texts.resolve(i + ".txt"), ("How many tokens does page " + i + " have? ").repeat(80));
            }
            Path run = folder.resolve("run");
            Path settings = Files.writeString(folder.resolve("rehearsal.yaml"), SETTINGS.formatted(run, texts));
            PrintStream silent = new PrintStream(OutputStream.nullOutputStream(), false, StandardCharsets.UTF_8);
            Screen screen = new Screen(silent, silent, false, false, System::nanoTime);
            for (List<String> command : List.of(
                    List.of("train", settings.toString()),
                    List.of("generate", run.toString(), "--prompt", "How many tokens", "--max-tokens", "24"))) {
                int status = Main.run(screen, Map.of(), command.toArray(String[]::new));
                if (status != 0) {
                    return status;
                }
            }
            return 0;
        } finally {
            delete(folder);
        }
    }

    private static void delete(Path folder) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            files.sorted(Comparator.reverseOrder()).forEach(file -> {
                try {
                    Files.delete(file);
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            });
        }
    }
}
