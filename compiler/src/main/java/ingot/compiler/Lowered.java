package ingot.compiler;

import ingot.ir.Type;
import java.util.List;

/// A graph as kernels: calls in order over numbered slots. It mentions no names, so equal graphs share one `Lowered`.
///
/// `outputs` tells where each result of the graph lies when the calls are done, row-major from the operand's offset: usually an OUTPUT slot,
/// an INPUT slot when the result is only a view of an input. Temporaries live from their first to their last call.
public record Lowered(List<Type> inputs, List<Type> outputs, List<Long> temporaryBytes, List<Call> calls, List<Operand> results) {
    public Lowered {
        inputs = List.copyOf(inputs);
        outputs = List.copyOf(outputs);
        temporaryBytes = List.copyOf(temporaryBytes);
        calls = List.copyOf(calls);
        results = List.copyOf(results);
    }

    /// A kernel applied to operands: its reads, then its writes.
    public record Call(Kernel kernel, List<Operand> operands) {
        public Call {
            operands = List.copyOf(operands);
        }
    }

    public enum Slot {
        /// Input `index` of the graph (weights first or in graph order, as listed in `inputs`).
        INPUT,
        OUTPUT,
        TEMPORARY
    }

    public record Operand(Slot slot, int index, long byteOffset) {}
}
