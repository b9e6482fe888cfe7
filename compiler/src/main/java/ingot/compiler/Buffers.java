package ingot.compiler;

import ingot.ir.Op;
import ingot.ir.Tensor;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The memory of a graph being lowered: buffers by number, each in the end a slot.
final class Buffers {
    private final List<Long> bytes = new ArrayList<>();
    private final List<Lowered.@Nullable Operand> slots = new ArrayList<>();
    private final List<Tensor> constants = new ArrayList<>();
    private final List<Long> temporaries = new ArrayList<>();
    private int inputs;

    int add(long size) {
        bytes.add(size);
        slots.add(null);
        return bytes.size() - 1;
    }

    /// The buffer of an input, weight or constant; to be called in graph order.
    int leaf(Value value) {
        int buffer = add(value.type().bytes());
        if (value.op() instanceof Op.Constant constant) {
            slots.set(buffer, new Lowered.Operand(Lowered.Slot.CONSTANT, constants.size(), 0));
            constants.add(constant.data());
        } else {
            slots.set(buffer, new Lowered.Operand(Lowered.Slot.INPUT, inputs++, 0));
        }
        return buffer;
    }

    long bytes(int buffer) {
        return bytes.get(buffer);
    }

    boolean isBound(int buffer) {
        return slots.get(buffer) != null;
    }

    void bindOutput(int buffer, int index) {
        slots.set(buffer, new Lowered.Operand(Lowered.Slot.OUTPUT, index, 0));
    }

    /// The operand at a byte of a buffer; a buffer without a slot becomes a temporary.
    Lowered.Operand operand(int buffer, long byteOffset) {
        Lowered.Operand slot = slots.get(buffer);
        if (slot == null) {
            slot = new Lowered.Operand(Lowered.Slot.TEMPORARY, temporaries.size(), 0);
            temporaries.add(bytes.get(buffer));
            slots.set(buffer, slot);
        }
        return new Lowered.Operand(slot.slot(), slot.index(), byteOffset);
    }

    List<Tensor> constants() {
        return constants;
    }

    List<Long> temporaries() {
        return temporaries;
    }
}
