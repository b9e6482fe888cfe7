package ingot.store;

import java.lang.foreign.MemorySegment;
import java.util.List;

/// One row's new state, or its new gradient, on its way to free extents. The ledger's lock guards what changes.
final class Write {
    final int row;
    final int firstPart;
    final long generation;
    final List<MemorySegment> sources;
    final long[] blocks;
    final int[] crcs;
    final boolean summed; // the checksums are there already
    final Work work = new Work();
    int left; // parts that are not written yet

    /// `known` are the checksums of the sources; empty: whoever writes them computes them.
    Write(int row, int firstPart, long generation, List<MemorySegment> sources, int[] known) {
        this.row = row;
        this.firstPart = firstPart;
        this.generation = generation;
        this.sources = List.copyOf(sources);
        blocks = new long[sources.size()];
        summed = known.length > 0;
        crcs = summed ? known : new int[sources.size()];
        left = sources.size();
    }

    boolean isUpdate() {
        return firstPart == 0;
    }
}
