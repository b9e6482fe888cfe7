package ingot.store;

import java.lang.foreign.MemorySegment;

/// The first values of every weight, as a pure function of name and position: what was never updated needs no disk.
@FunctionalInterface
public interface Initial {
    /// Writes the values of a tensor at positions `start` and on, as many as `into` holds (f32). Called by several
    /// threads at once.
    void fill(String tensor, long start, MemorySegment into);

    /// The file that a tensor's values are read from: what a chunk of it was at the first read, it must be at every
    /// later one. Empty: they are computed.
    default String source(String tensor) {
        return "";
    }
}
