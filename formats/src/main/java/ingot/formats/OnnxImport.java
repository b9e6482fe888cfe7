package ingot.formats;

import ingot.ir.Graph;
import ingot.ir.Type;
import ingot.store.BaseWeights;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.SequencedMap;

/// An ONNX model as a graph: inputs, weights and outputs have the names of the file.
///
/// Weights are the floating initializers, and integer ones that are large; the others are constants. The graph works on
/// fixed shapes: symbolic sizes are bound by the `OnnxBinding`.
public final class OnnxImport implements WeightSource {
    private final OnnxModel model;
    private final Graph graph;
    private final SequencedMap<String, OnnxTensor> weights;

    private OnnxImport(OnnxModel model, Graph graph, SequencedMap<String, OnnxTensor> weights) {
        this.model = model;
        this.graph = graph;
        this.weights = weights;
    }

    /// Builds the graph. All operators without a meaning here are named in one error. The model stays the caller's, who
    /// closes it when the weights have been read.
    public static OnnxImport of(OnnxModel model, OnnxBinding binding) {
        OnnxImporter importer = new OnnxImporter(model, binding);
        Graph graph = importer.build();
        SequencedMap<String, OnnxTensor> weights = new LinkedHashMap<>();
        for (ingot.ir.Value weight : graph.weights()) {
            String name = ((ingot.ir.Op.Weight) weight.op()).name();
            weights.put(name, importer.weight(name));
        }
        return new OnnxImport(model, graph, weights);
    }

    public Graph graph() {
        return graph;
    }

    @Override
    public SequencedMap<String, Type> types() {
        SequencedMap<String, Type> types = new LinkedHashMap<>();
        weights.forEach((name, tensor) -> types.put(name, tensor.valueType()));
        return types;
    }

    @Override
    public void read(String name, MemorySegment target) {
        OnnxTensor tensor = weights.get(name);
        if (tensor == null) {
            throw new ingot.ir.IngotException(
                    "onnx: " + model.path() + " has no weight " + name + "; it has " + weights.size());
        }
        tensor.read(target, model);
    }

    /// Where the weights lie, of those that are written as a file of weights would have them: f32, f16 or bf16, without
    /// gaps.
    public SequencedMap<String, BaseWeights.Region> regions() {
        SequencedMap<String, BaseWeights.Region> regions = new LinkedHashMap<>();
        weights.forEach((name, tensor) -> {
            BaseWeights.Region region = tensor.region(model);
            if (region != null) {
                regions.put(name, region);
            }
        });
        return regions;
    }

    /// Closes the model.
    @Override
    public void close() {
        model.close();
    }
}
