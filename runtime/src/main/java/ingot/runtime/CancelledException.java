package ingot.runtime;

/// A run was stopped between two kernels on request; the step in flight left no trace in the store.
public final class CancelledException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    CancelledException() {
        super("cancelled");
    }
}
