package ingot.cpu;

import java.util.ArrayList;
import java.util.List;

/// A run of positions whose elements lie in pieces: in each piece they follow each other at the same distance.
///
/// @param starts the first position of each piece, counted from the first of the run
/// @param offsets where it lies, in bytes
record Pieces(int[] starts, int[] lengths, long[] offsets) {
    /// Positions [from, to) of a table of byte offsets, in pieces with `step` bytes from element to element.
    static Pieces of(long[] table, int from, int to, long step) {
        List<int[]> found = new ArrayList<>();
        int begin = from;
        for (int i = from + 1; i <= to; i++) {
            if (i == to || table[i] != table[i - 1] + step) {
                found.add(new int[] {begin - from, i - begin});
                begin = i;
            }
        }
        int[] starts = new int[found.size()];
        int[] lengths = new int[found.size()];
        long[] offsets = new long[found.size()];
        for (int i = 0; i < starts.length; i++) {
            starts[i] = found.get(i)[0];
            lengths[i] = found.get(i)[1];
            offsets[i] = table[from + starts[i]];
        }
        return new Pieces(starts, lengths, offsets);
    }

    /// The byte offset of every element of an index space, row-major.
    static long[] table(int[] dims, long[] strides) {
        int count = 1;
        for (int dim : dims) {
            count = Math.multiplyExact(count, dim);
        }
        long[] table = new long[count];
        int block = count;
        for (int axis = 0; axis < dims.length && count > 0; axis++) {
            block /= dims[axis];
            for (int i = 0; i < count; i++) {
                table[i] += 4 * strides[axis] * (i / block % dims[axis]);
            }
        }
        return table;
    }
}
