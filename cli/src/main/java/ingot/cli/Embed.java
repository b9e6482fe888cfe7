package ingot.cli;

import ingot.compiler.Backend;
import ingot.cpu.Autotuner;
import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.formats.ModelFile;
import ingot.train.OnnxEmbedder;
import ingot.train.TextEmbedder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
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
        footer = {"", "Example:", "  ingot embed models/all-MiniLM-L6-v2 --text 'A man is eating.' --text 'Food!'"})
final class Embed implements Callable<Integer> {
    private final Screen screen;

    @Parameters(
            index = "0",
            paramLabel = "MODEL",
            description = "A Hugging Face folder of a text encoder, or an ONNX file beside its tokenizer.json.")
    private String folder = "";

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
        Path path = ConfigFile.folder(folder);
        if (ModelFile.detect(path) instanceof ModelFile.Onnx onnx) {
            try (OnnxEmbedder embedder = OnnxEmbedder.open(onnx.path(), backend)) {
                return embedder.embed(texts);
            }
        }
        try (TextEmbedder embedder = TextEmbedder.open(Generate.model(folder), backend)) {
            return embedder.embed(texts);
        }
    }

    private static double cosine(float[] a, float[] b) {
        double sum = 0;
        for (int i = 0; i < a.length; i++) {
            sum += (double) a[i] * b[i];
        }
        return sum;
    }
}
