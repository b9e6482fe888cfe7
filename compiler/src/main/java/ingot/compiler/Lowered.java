package ingot.compiler;

import ingot.ir.Tensor;
import ingot.ir.Type;
import java.util.List;

/// A graph as kernels: calls in order over numbered slots. It mentions no names, so equal graphs share one `Lowered`.
///
/// `inputs` are the types of the graph's `Input` and `Weight` values in graph order, used or not; `outputs` those of its results in the
/// order they were declared; `constants` the tensors that kernels read from memory (scalars and repeated scalars live
/// in the code). Temporaries live from their first to their last call; a temporary may be written by several calls,
/// each its own part.
///
/// `results` tells where each result lies when the calls are done, row-major from the operand's offset: usually OUTPUT slot i for
/// result i, an INPUT or CONSTANT slot when the result is a view of one, the OUTPUT slot of another result when both
/// are the same memory. Every OUTPUT slot that `results` or a call names has the bytes of its own type.
public record Lowered(
        List<Type> inputs,
        List<Type> outputs,
        List<Tensor> constants,
        List<Long> temporaryBytes,
        List<Call> calls,
        List<Operand> results) {
    public Lowered {
        inputs = List.copyOf(inputs);
        outputs = List.copyOf(outputs);
        constants = List.copyOf(constants);
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
        /// Input or weight `index` of the graph.
        INPUT,
        /// Result `index` of the graph.
        OUTPUT,
        /// Memory of the calls.
        TEMPORARY,
        /// Tensor `index` of `constants`.
        CONSTANT
    }

    /// One line per call, then the bodies: what `ingot explain` shows.
    public String describe() {
        return Listing.of(this);
    }

    /// Element 0 of a layout: `byteOffset` into a slot. With negative strides elements lie before it.
    public record Operand(Slot slot, int index, long byteOffset) {}
}
