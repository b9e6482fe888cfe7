package ingot.runtime;

import java.lang.foreign.MemorySegment;
import java.util.List;

/// What training does with state that passes through memory.
public interface StateUpdates {
    /// For programs that only read.
    StateUpdates NONE = new StateUpdates() {
        @Override
        public void begin() {}

        @Override
        public void apply(
                String tensor,
                long start,
                int elements,
                MemorySegment weight,
                List<MemorySegment> moments,
                MemorySegment gradient) {
            throw new IllegalStateException(tensor + ": an update is pending, expected none");
        }

        @Override
        public void complete(String tensor, long start, MemorySegment gradient) {
            throw new IllegalStateException(tensor + ": a gradient is complete, expected none");
        }
    };

    /// A run begins: all gradients will be complete anew.
    void begin();

    /// Applies the pending optimizer update to elements `start`, `start` + 1, … of a weight, in place; called by the
    /// thread that streams.
    ///
    /// @param moments in the order of the store's layout
    void apply(
            String tensor,
            long start,
            int elements,
            MemorySegment weight,
            List<MemorySegment> moments,
            MemorySegment gradient);

    /// The gradient of the elements of a weight from `start` on is complete; called by the thread that runs the
    /// program, before the gradient leaves.
    void complete(String tensor, long start, MemorySegment gradient);
}
