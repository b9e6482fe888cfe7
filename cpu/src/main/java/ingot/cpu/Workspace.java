package ingot.cpu;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

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
    private MemorySegment memory = MemorySegment.NULL;

    /// Room for a pass of `operands` operands.
    void grow(int operands) {
        if (floats.length >= operands) {
            return;
        }
        floats = new float[operands][CHUNK];
        ints = new int[operands][CHUNK];
        bases = new long[operands];
        packed = new long[operands];
        memory = Arena.ofAuto().allocate((long) operands * CHUNK * 4, 64);
        for (int k = 0; k < operands; k++) {
            packed[k] = memory.address() + (long) k * CHUNK * 4;
        }
    }
}
