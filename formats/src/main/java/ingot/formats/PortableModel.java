package ingot.formats;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Value;
import ingot.nn.Head;
import ingot.nn.LanguageModel;
import ingot.nn.Network;
import ingot.nn.TextEncoder;
import ingot.store.Safetensors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedMap;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// A model in anybody's files, to be written in another layout.
///
/// ```java
/// try (var model = PortableModel.open(Path.of("models/bert"))) {
///     model.writeOnnx(Path.of("bert.onnx"), 128, Map.of());
/// }
/// ```
public final class PortableModel implements AutoCloseable {
    /// What lies beside a model and belongs to it.
    private static final List<String> COMPANIONS = List.of(
            "tokenizer.json",
            "tokenizer_config.json",
            "special_tokens_map.json",
            "vocab.txt",
            "vocab.json",
            "merges.txt",
            "spiece.model",
            "generation_config.json",
            "preprocessor_config.json");

    private static final int MOST = 1 << 20;

    private final ModelFile file;
    private final WeightSource weights;
    private final @Nullable HuggingFace folder;
    private final @Nullable SizedGraph graph;
    private final Runnable end;

    private PortableModel(
            ModelFile file, WeightSource weights, @Nullable HuggingFace folder, @Nullable SizedGraph graph) {
        this(file, weights, folder, graph, weights::close);
    }

    private PortableModel(
            ModelFile file,
            WeightSource weights,
            @Nullable HuggingFace folder,
            @Nullable SizedGraph graph,
            Runnable end) {
        this.file = file;
        this.weights = weights;
        this.folder = folder;
        this.graph = graph;
        this.end = end;
    }

    /// A model that somebody else has put together of what lies in a folder.
    ///
    /// @param tensors the safetensors file with its weights
    /// @param end what is to be closed with it
    public static PortableModel of(Path folder, Network model, Path tensors, Runnable end) {
        WeightSource weights = new SafetensorsWeights(tensors);
        return new PortableModel(new ModelFile.Folder(folder), weights, null, ExportGraphs.of(model), () -> {
            weights.close();
            end.run();
        });
    }

    /// Opens a model of any kind that `ModelFile` tells apart.
    public static PortableModel open(Path path) {
        ModelFile file = ModelFile.detect(path);
        return switch (file) {
            case ModelFile.Adapter adapter -> adapted(adapter);
            case ModelFile.Onnx onnx -> {
                OnnxModel model = OnnxModel.open(onnx.path());
                yield new PortableModel(file, new OnnxTensors(model), null, sized(model));
            }
            case ModelFile.Folder folder -> {
                HuggingFace opened = HuggingFace.open(folder.path());
                yield new PortableModel(file, opened.weights(), opened, ExportGraphs.of(opened.model()));
            }
            case ModelFile.Tensors tensors -> new PortableModel(file, new SafetensorsWeights(path), null, null);
            case ModelFile.Keras keras -> keras(keras);
            case ModelFile.Saved saved ->
                throw new IngotException(
                        saved.path() + ": " + SavedModel.report(saved.path()).problem());
            case ModelFile.Pickled pickled -> new PortableModel(file, StateDict.open(path), null, null);
        };
    }

    private static PortableModel keras(ModelFile.Keras file) {
        KerasModel model = KerasModel.open(file.path());
        try {
            KerasImport trial = KerasImport.of(model, KerasImport.trial(model));
            return new PortableModel(file, trial, null, KerasImport.sized(model));
        } catch (RuntimeException e) {
            model.close();
            throw e;
        }
    }

    /// The model that an adapter was made for, with the adapter in its matrices.
    private static PortableModel adapted(ModelFile.Adapter file) {
        PeftAdapter adapter = PeftAdapter.open(file.path());
        try {
            Path place = Path.of(adapter.base());
            if (adapter.base().isEmpty() || !Files.exists(place)) {
                throw new IngotException(file.path() + ": the adapter is of the model '" + adapter.base()
                        + "', which is not there; write its folder into base_model_name_or_path of "
                        + PeftAdapter.CONFIG);
            }
            PortableModel base = open(place);
            try {
                return new PortableModel(base.file, adapter.merged(base.weights), base.folder, base.graph);
            } catch (RuntimeException e) {
                base.close();
                throw e;
            }
        } catch (RuntimeException e) {
            adapter.close();
            throw e;
        }
    }

    /// The graph of an ONNX file, with its symbols as sizes.
    private static SizedGraph sized(OnnxModel model) {
        SequencedMap<String, Integer> symbols = new LinkedHashMap<>();
        for (OnnxGraph.Port port : model.graph().freeInputs()) {
            List<OnnxGraph.Dim> dims = port.dims() == null ? List.of() : port.dims();
            for (int i = 0; i < dims.size(); i++) {
                if (!dims.get(i).isKnown()) {
                    String symbol = dims.get(i).symbol();
                    symbols.put(symbol.isEmpty() ? port.name() + "." + i : symbol, MOST);
                }
            }
        }
        return new SizedGraph(
                symbols, sizes -> OnnxImport.of(model, OnnxBinding.sizes(sizes)).graph());
    }

    public ModelFile file() {
        return file;
    }

    public WeightSource weights() {
        return weights;
    }

    /// True if it can be computed; weights alone cannot.
    public boolean hasGraph() {
        return graph != null;
    }

    /// A loss over the model for so many rows of so many tokens, or as many as it takes, to see what training it takes:
    /// next tokens or classes where the model is made for them, else the sum of the squares of what comes out.
    ///
    /// Sizes of an ONNX file that are not given are guessed by their names: batches, and lengths.
    public Graph lossGraph(int batch, int length, Map<String, Integer> sizes) {
        if (graph == null) {
            throw new IngotException(file.path() + ": weights without a model");
        }
        if (folder != null) {
            switch (folder.model()) {
                case LanguageModel m -> {
                    return m.lossGraph(batch, Math.min(length, m.context()), false);
                }
                case TextEncoder m -> {
                    boolean headless = m.head().kind() == Head.Kind.NONE;
                    TextEncoder whole = headless ? m.withHead(Head.of(Head.Kind.CLASS, 2)) : m;
                    return whole.lossGraph(batch, Math.min(length, m.context()), false);
                }
                default -> {}
            }
        }
        SequencedMap<String, Integer> all = new LinkedHashMap<>();
        graph.most().keySet().forEach(name -> all.put(name, guess(name, batch, length)));
        all.putAll(sizes);
        return squares(graph.of(all));
    }

    private static int guess(String name, int batch, int length) {
        String lower = name.toLowerCase(java.util.Locale.ROOT);
        boolean rows = lower.contains("batch") || lower.endsWith(".0") || lower.equals("n");
        return rows ? batch : length;
    }

    private static Graph squares(Graph graph) {
        GraphBuilder b = new GraphBuilder("loss");
        List<Value> inputs = graph.inputs().stream()
                .map(input -> b.input(((Op.Input) input.op()).name(), input.type()))
                .toList();
        Value loss = b.constant(0f);
        for (Value output : b.inline(graph, inputs)) {
            if (output.dtype() == DType.F32) {
                int[] axes = IntStream.range(0, output.shape().rank()).toArray();
                loss = b.add(loss, axes.length == 0 ? output : b.sum(b.multiply(output, output), axes));
            }
        }
        b.output("loss", loss);
        return b.build();
    }

    /// Writes an ONNX file; its data are in a second one beside it if they are very many.
    ///
    /// @param otherwise what a size becomes that cannot stay open
    /// @param sizes sizes that shall not stay open
    public OnnxWriter.Written writeOnnx(Path to, int otherwise, Map<String, Integer> sizes) {
        if (graph == null) {
            throw new IngotException(file.path() + ": weights without a model, so there is nothing to compute; expected"
                    + " a Hugging Face folder with a config.json, or an ONNX file");
        }
        for (String name : sizes.keySet()) {
            if (!graph.most().containsKey(name)) {
                throw new IngotException("export: the model has no size " + name + "; it has "
                        + String.join(", ", graph.most().keySet()));
            }
        }
        parent(to);
        OnnxWriter.Written written = OnnxWriter.write(to, graph.with(sizes), otherwise, weights);
        companions(folderOf(to));
        return written;
    }

    /// Writes the weights alone, under their names; floating ones as F32.
    public void writeTensors(Path to) {
        parent(to);
        Safetensors.write(to, Map.of("format", "pt"), weights.types(), weights.contents());
    }

    /// Writes a Hugging Face folder, if the model has a configuration, else `model.safetensors` alone.
    public void writeFolder(Path to) {
        if (folder == null) {
            writeTensors(to.resolve("model.safetensors"));
        } else if (isHere(to)) {
            throw new IngotException("export: " + to + " is where the model lies already; name another folder");
        } else {
            folder.save(to, weights.contents());
        }
        companions(to);
    }

    private boolean isHere(Path to) {
        try {
            return Files.exists(to) && Files.isSameFile(to, file.path());
        } catch (IOException e) {
            throw new IngotException("export: cannot look at " + to + ": " + e.getMessage(), e);
        }
    }

    private static Path folderOf(Path file) {
        return Objects.requireNonNull(file.toAbsolutePath().getParent(), "a file lies in a folder");
    }

    private static void parent(Path to) {
        try {
            Files.createDirectories(folderOf(to));
        } catch (IOException e) {
            throw new IngotException("export: cannot write to " + to + ": " + e.getMessage(), e);
        }
    }

    /// Copies tokenizer and settings to where they are not yet.
    private void companions(Path to) {
        Path from = Files.isDirectory(file.path()) ? file.path() : folderOf(file.path());
        try {
            for (String name : COMPANIONS) {
                if (Files.isRegularFile(from.resolve(name)) && !Files.exists(to.resolve(name))) {
                    Files.copy(from.resolve(name), to.resolve(name));
                }
            }
        } catch (IOException e) {
            throw new IngotException("export: cannot copy the tokenizer to " + to + ": " + e.getMessage(), e);
        }
    }

    @Override
    public void close() {
        end.run();
    }
}
