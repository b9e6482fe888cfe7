package ingot.data;

/// Told how far a long piece of work has come; called from one thread at a time, rarely enough to draw a bar.
@FunctionalInterface
public interface Progress {
    /// `done` of `total` units (bytes, merges) are finished.
    void at(long done, long total);

    /// Listens to nothing.
    Progress NONE = (done, total) -> {};
}
