package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Compiler;
import ingot.data.TextTokenizer;
import ingot.formats.OnnxBinding;
import ingot.formats.OnnxImport;
import ingot.formats.OnnxModel;
import ingot.ir.Graph;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.runtime.Executor;
import ingot.runtime.PackedWeights;
import ingot.runtime.StageUpdates;
import ingot.store.RamStore;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/// Texts as vectors of length 1 by an ONNX file and its tokenizer: the mean of its hidden states over a
/// text's tokens.
///
/// A program is compiled for each number of tokens: a quantised file takes the range of all it sees, so padding would
/// change its numbers.
public final class OnnxEmbedder implements AutoCloseable {
    private static final int MOST_TOKENS = 512;

    private final OnnxModel model;
    private final TextTokenizer tokenizer;
    private final Backend backend;
    private final RamStore store = new RamStore();
    private final PackedWeights packed = new PackedWeights();
    private final Map<Integer, Executor> executors = new LinkedHashMap<>();

    private OnnxEmbedder(OnnxModel model, TextTokenizer tokenizer, Backend backend) {
        this.model = model;
        this.tokenizer = tokenizer;
        this.backend = backend;
    }

    /// @param tokenizer a tokenizer.json
    public static OnnxEmbedder open(Path file, Path tokenizer, Backend backend) {
        OnnxModel model = OnnxModel.open(file);
        try {
            return new OnnxEmbedder(model, TextTokenizer.open(tokenizer, MOST_TOKENS), backend);
        } catch (RuntimeException e) {
            model.close();
            throw e;
        }
    }

    public List<float[]> embed(List<String> texts) {
        List<float[]> vectors = new ArrayList<>();
        texts.forEach(text -> vectors.add(embed(text)));
        return vectors;
    }

    public float[] embed(String text) {
        TextTokenizer.Encoded encoded = tokenizer.encode(text);
        int count = encoded.ids().length;
        if (count == 0) {
            throw new IngotException("embed: the text has no tokens");
        }
        Executor executor = executors.computeIfAbsent(count, this::executor);
        executor.program()
                .inputs()
                .forEach((name, type) -> fill(Tensor.over(type, executor.input(name)), name, encoded));
        executor.run(StageUpdates.NONE);
        String output = hidden(executor.program().outputs());
        Tensor states = executor.outputTensor(output);
        int width = states.shape().dim(2);
        double[] sum = new double[width];
        for (int i = 0; i < count * width; i++) {
            sum[i % width] += states.getFloat(i);
        }
        double length = 0;
        for (double value : sum) {
            length += value * value;
        }
        float[] vector = new float[width];
        for (int i = 0; i < width; i++) {
            vector[i] = (float) (sum[i] / Math.sqrt(Math.max(length, 1e-24)));
        }
        return vector;
    }

    private static void fill(Tensor input, String name, TextTokenizer.Encoded encoded) {
        String lower = name.toLowerCase(Locale.ROOT);
        for (int i = 0; i < encoded.ids().length; i++) {
            input.setLong(
                    i, lower.contains("mask") ? 1 : lower.contains("type") ? encoded.types()[i] : encoded.ids()[i]);
        }
    }

    /// The output with a state per token.
    private String hidden(Map<String, Type> outputs) {
        return outputs.entrySet().stream()
                .filter(output -> output.getValue().shape().rank() == 3)
                .map(Map.Entry::getKey)
                .findFirst()
                .orElseThrow(() -> new IngotException("onnx: " + model.path() + " is no text encoder: its outputs are "
                        + outputs + "; expected a hidden state per token, [batch, tokens, width]"));
    }

    private Executor executor(int count) {
        OnnxBinding binding = OnnxBinding.NONE;
        for (String input : model.inputs()) {
            String lower = input.toLowerCase(Locale.ROOT);
            if (!lower.contains("id") && !lower.contains("mask") && !lower.contains("type")) {
                throw new IngotException("onnx: " + model.path() + " is no text encoder: it has the input " + input
                        + "; expected input_ids, attention_mask and token_type_ids");
            }
            binding = binding.shape(input, Shape.of(1, count));
        }
        OnnxImport imported = OnnxImport.of(model, binding);
        Graph graph = imported.graph();
        if (executors.isEmpty()) {
            vocabulary(graph);
        }
        imported.load(store);
        return new Executor(Compiler.inference(graph), backend, store, packed);
    }

    /// Refuses a tokenizer that has more tokens than the largest table of the file.
    private void vocabulary(Graph graph) {
        int rows = 0;
        for (Value value : graph.values()) {
            if (value.op() instanceof Op.Gather gather && gather.x().op() instanceof Op.Weight) {
                rows = Math.max(rows, gather.x().shape().dim(gather.axis()));
            }
        }
        if (rows > 0 && tokenizer.vocabularySize() > rows) {
            throw new IngotException("model: the tokenizer.json beside " + model.path() + " has "
                    + tokenizer.vocabularySize() + " tokens, but the model knows " + rows
                    + "; they do not belong together");
        }
    }

    @Override
    public void close() {
        executors.values().forEach(Executor::close);
        packed.close();
        tokenizer.close();
        model.close();
        store.close();
    }
}
