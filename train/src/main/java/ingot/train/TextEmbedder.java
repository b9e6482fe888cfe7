package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Compiler;
import ingot.data.TextTokenizer;
import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.TextEncoder;
import ingot.runtime.Executor;
import ingot.runtime.PackedWeights;
import ingot.runtime.StageUpdates;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// Texts as vectors of length 1: the mean of an encoder's hidden states over a text's tokens (Reimers and Gurevych
/// 2019).
///
/// The cosine of two texts is the sum of the products of their vectors. A program is compiled for each length, rounded
/// up to a multiple of 16 tokens; what is padding adds nothing.
///
/// ```java
/// try (var embedder = TextEmbedder.open(Path.of("all-MiniLM-L6-v2"), backend)) {
///     float[] vector = embedder.embed("A man is eating food.");
/// }
/// ```
public final class TextEmbedder implements AutoCloseable {
    private static final int LENGTH_STEP = 16;

    private final EncoderFolder folder;
    private final TextTokenizer tokenizer;
    private final Backend backend;
    private final PackedWeights packed = new PackedWeights();
    private final Map<Integer, Executor> executors = new LinkedHashMap<>();

    private TextEmbedder(EncoderFolder folder, TextTokenizer tokenizer, Backend backend) {
        this.folder = folder;
        this.tokenizer = tokenizer;
        this.backend = backend;
    }

    /// Opens a Hugging Face folder of a text encoder (config.json, model.safetensors, tokenizer.json), or the run of a
    /// fine-tuning.
    public static TextEmbedder open(Path path, Backend backend) {
        EncoderFolder folder = EncoderFolder.open(path);
        try {
            TextTokenizer tokenizer = TextTokenizer.open(path, folder.encoder().context());
            folder.checkTokens(tokenizer.vocabularySize());
            return new TextEmbedder(folder, tokenizer, backend);
        } catch (RuntimeException e) {
            folder.close();
            throw e;
        }
    }

    /// Size of a vector.
    public int width() {
        return folder.encoder().width();
    }

    public List<float[]> embed(List<String> texts) {
        List<float[]> vectors = new ArrayList<>();
        texts.forEach(text -> vectors.add(embed(text)));
        return vectors;
    }

    public float[] embed(String text) {
        TextTokenizer.Encoded encoded = tokenizer.encode(text);
        int count = Math.max(1, encoded.ids().length);
        int length = Math.min(folder.encoder().context(), (count + LENGTH_STEP - 1) / LENGTH_STEP * LENGTH_STEP);
        TextTokenizer.Batch batch = tokenizer.batch(List.of(encoded), length);
        Executor executor = executors.computeIfAbsent(
                length,
                time -> new Executor(
                        Compiler.inference(graph(folder.encoder(), time)), backend, folder.weights(), packed));
        MemorySegment mask = executor.input("mask");
        for (int i = 0; i < length; i++) {
            executor.input("tokens").setAtIndex(ValueLayout.JAVA_INT, i, batch.ids()[i]);
            mask.set(ValueLayout.JAVA_BYTE, i, (byte) (batch.mask()[i] || i == 0 ? 1 : 0));
            if (folder.encoder().tokenTypes() > 1) {
                executor.input("types").setAtIndex(ValueLayout.JAVA_INT, i, batch.types()[i]);
            }
        }
        executor.run(StageUpdates.NONE);
        float[] vector = new float[width()];
        MemorySegment.copy(executor.output("vector"), ValueLayout.JAVA_FLOAT, 0, vector, 0, vector.length);
        return vector;
    }

    /// Inputs `tokens`, `mask` and perhaps `types` of one text; output `vector` [1, width].
    private static Graph graph(TextEncoder model, int time) {
        GraphBuilder b = new GraphBuilder("embedding");
        Value tokens = b.input("tokens", Type.i32(1, time));
        Value mask = b.input("mask", Type.bool(1, time));
        Value types = model.tokenTypes() > 1 ? b.input("types", Type.i32(1, time)) : null;
        Value hidden = model.hidden(b, new TextEncoder.Text(tokens, mask, types, null)); // [1, time, width]
        Value real = b.convert(mask, DType.F32);
        Value sum = b.sum(b.multiply(hidden, b.broadcast(real, hidden.shape(), List.of(0, 1))), 1);
        Value mean = b.divide(sum, b.reduceKeep(ReduceKind.SUM, real, 1)); // [1, width]
        Value length = b.sqrt(b.add(b.reduceKeep(ReduceKind.SUM, b.multiply(mean, mean), 1), 1e-24));
        b.output("vector", b.divide(mean, length));
        return b.build();
    }

    @Override
    public void close() {
        executors.values().forEach(Executor::close);
        packed.close();
        tokenizer.close();
        folder.close();
    }
}
