package ingot.cpu;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.Op;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

/// One loop over an index i: what it reads, the pointwise ops between, what it writes and what it reduces over i.
///
/// The body is a graph of scalars, the work at one i: its inputs are named `0`, `1`, … after `reads`, its outputs after
/// `writes` and then
/// `reductions`. Nothing here depends on lengths or addresses, so that kernels of many shapes share the code of a pass.
record Pass(Graph body, List<Port> reads, List<Port> writes, List<ReduceKind> reductions) {
    Pass {
        reads = List.copyOf(reads);
        writes = List.copyOf(writes);
        reductions = List.copyOf(reductions);
    }

    /// An operand of a loop: one element per i, or the same element for all.
    record Port(DType dtype, Kind kind) {}

    enum Kind {
        /// Element i.
        EACH,
        /// Element 0 for every i.
        SAME,
        /// No memory: the operand's address is an I32 number, the value is that number plus i.
        COUNT,
        /// No memory: the value is the operand's address.
        NUMBER
    }

    /// Operands in the order of the base addresses: reads, writes, then 16 lanes for each reduction.
    int operands() {
        return reads.size() + writes.size() + reductions.size();
    }

    int laneOperand(int reduction) {
        return reads.size() + writes.size() + reduction;
    }

    Value output(int index) {
        return body.output(Integer.toString(index));
    }

    Value reduced(int reduction) {
        return output(writes.size() + reduction);
    }

    /// The values that outputs depend on, in an order that can be executed.
    List<Value> live() {
        BitSet needed = new BitSet();
        body.outputs().values().forEach(value -> needed.set(value.id()));
        List<Value> values = body.values();
        for (int id = values.size() - 1; id >= 0; id--) {
            if (needed.get(id)) {
                values.get(id).op().operands().forEach(operand -> needed.set(operand.id()));
            }
        }
        List<Value> live = new ArrayList<>();
        needed.stream().forEach(id -> live.add(values.get(id)));
        return live;
    }

    static int port(Op.Input input) {
        return Integer.parseInt(input.name());
    }
}
