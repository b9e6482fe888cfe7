package ingot.store;

/// Learns how far a long work has come.
@FunctionalInterface
public interface Progress {
    /// For those who do not ask.
    Progress NONE = (done, total) -> {};

    void at(long done, long total);
}
