package ingot.store;

/// Work that a store does on its own threads.
public interface Transfer {
    /// True when it is over, well or not.
    boolean done();

    /// Waits for the end, also when the thread is interrupted; what failed is thrown as an `IngotException`.
    void await();
}
