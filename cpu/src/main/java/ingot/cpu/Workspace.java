package ingot.cpu;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/// What one worker needs between memory and code: short arrays for scalar code, packed operands for vector code,
/// address lists.
///
/// One per worker and backend, grown when kernels are prepared, so that running allocates nothing.
final class Workspace {
    /// Elements of an operand that pass through the arrays at a time; a multiple of 16.
    static final int CHUNK = 512;

    float[][] floats = new float[0][];
    int[][] ints = new int[0][];
    long[] packed = new long[0];
    long[] bases = new long[0];
    private final List<MemorySegment> memory = new ArrayList<>();

    /// Room for a pass of `operands` operands. What is there stays in use: a kernel may be running.
    void grow(int operands) {
        int had = floats.length;
        if (had >= operands) {
            return;
        }
        MemorySegment more = Arena.ofAuto().allocate((long) (operands - had) * CHUNK * 4, 64);
        memory.add(more);
        float[][] floats = Arrays.copyOf(this.floats, operands);
        int[][] ints = Arrays.copyOf(this.ints, operands);
        long[] packed = Arrays.copyOf(this.packed, operands);
        for (int k = had; k < operands; k++) {
            floats[k] = new float[CHUNK];
            ints[k] = new int[CHUNK];
            packed[k] = more.address() + (long) (k - had) * CHUNK * 4;
        }
        this.floats = floats;
        this.ints = ints;
        this.packed = packed;
        bases = new long[operands];
    }
}
