package ingot.formats;

import ingot.ir.Type;
import java.lang.foreign.MemorySegment;
import java.util.Collection;
import java.util.Map;
import java.util.SequencedMap;

/// The tensors of a Keras model as a file has them.
interface KerasTensors extends AutoCloseable {
    /// Shapes by the names of the file; everything is read as F32.
    SequencedMap<String, Type> types();

    void read(String name, MemorySegment target);

    /// For every slot that is found, by its name, the name of the tensor in the file.
    Map<String, String> match(Collection<KerasSlot> slots);

    @Override
    void close();
}
