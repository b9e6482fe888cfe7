package ingot.formats;

import ingot.ir.Type;
import java.lang.foreign.MemorySegment;
import java.util.SequencedMap;

/// The weights of a model in somebody's files: names and types at once, bytes when they are asked for.
///
/// Opening one reads no weights, so it costs little however large the model is.
public interface WeightSource extends AutoCloseable {
    /// Types by name, as the model uses them: F16 and BF16 files give F32.
    SequencedMap<String, Type> types();

    /// Writes the elements of a tensor, row-major and little-endian, to `target`, which has exactly their size.
    void read(String name, MemorySegment target);

    @Override
    void close();
}
