package ingot.formats;

import ingot.ir.DType;
import ingot.ir.Type;
import ingot.store.Safetensors;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.SequencedMap;

/// The tensors of one safetensors file.
final class SafetensorsWeights implements WeightSource {
    private final Safetensors file;
    private final SequencedMap<String, Type> stored;

    SafetensorsWeights(Path path) {
        file = Safetensors.open(path);
        stored = file.tensors();
    }

    @Override
    public SequencedMap<String, Type> types() {
        SequencedMap<String, Type> types = new LinkedHashMap<>();
        stored.forEach((name, type) -> types.put(name, type.dtype().isFloating() ? type.with(DType.F32) : type));
        return types;
    }

    @Override
    public SequencedMap<String, Type> stored() {
        return stored;
    }

    @Override
    public void read(String name, MemorySegment target) {
        Type type = stored.get(name);
        if (type == null || type.dtype() == DType.F32 || !type.dtype().isFloating()) {
            file.readInto(name, target);
        } else {
            file.readInto(name, HalfPrecision.upper(target));
            HalfPrecision.widen(type.dtype(), target);
        }
    }

    @Override
    public void close() {
        file.close();
    }
}
