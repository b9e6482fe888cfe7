package ingot.formats;

import ingot.ir.IngotException;
import ingot.ir.Type;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.SequencedMap;

/// The tensors that an ONNX file holds, whatever its nodes do with them.
final class OnnxTensors implements WeightSource {
    private final OnnxModel model;
    private final SequencedMap<String, OnnxTensor> tensors = new LinkedHashMap<>();

    OnnxTensors(OnnxModel model) {
        this.model = model;
        for (OnnxTensor tensor : model.graph().initializers()) {
            if (tensor.type() != OnnxType.STRING) {
                tensors.put(tensor.name(), tensor);
            }
        }
    }

    @Override
    public SequencedMap<String, Type> types() {
        SequencedMap<String, Type> types = new LinkedHashMap<>();
        tensors.forEach((name, tensor) -> types.put(name, tensor.valueType()));
        return types;
    }

    @Override
    public void read(String name, MemorySegment target) {
        OnnxTensor tensor = tensors.get(name);
        if (tensor == null) {
            throw new IngotException(model.path() + ": no tensor " + name + "; it has " + tensors.size());
        }
        tensor.read(target, model);
    }

    @Override
    public void close() {
        model.close();
    }
}
