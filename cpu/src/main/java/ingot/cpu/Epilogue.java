package ingot.cpu;

import static ingot.cpu.Memory.getFloat;
import static ingot.cpu.Memory.putFloat;

/// What happens to a finished block of a matmul on its way to C: `r = r + bias`, then `C = r` or `C = C + r`.
///
/// @param accumulate add to what C holds, one rounded addition
/// @param bias add a bias along n
record Epilogue(boolean accumulate, boolean bias) {
    static final Epilogue NONE = new Epilogue(false, false);

    /// Moves rows × columns of a staged block to C. `biasRow` and `biasColumn` are the byte steps of the bias: the one
    /// along m is 0, or the one along n where the matmul runs transposed.
    void finish(
            RowMath math,
            long block,
            long blockStride,
            int rows,
            int columns,
            long c,
            long cRow,
            long cColumn,
            long biasAt,
            long biasRow,
            long biasColumn) {
        for (int i = 0; i < rows; i++) {
            long from = block + i * blockStride;
            long to = c + i * cRow;
            if (bias) {
                addBias(math, from, columns, biasAt + i * biasRow, biasColumn);
            }
            if (cColumn != 4) {
                scatter(from, to, cColumn, columns);
            } else if (accumulate) {
                math.add(to, from, columns);
            } else {
                math.copy(from, to, columns);
            }
        }
    }

    /// The way back: a row of C, whatever its step, to `row`.
    static void fetch(long c, long cColumn, long row, int columns) {
        for (int j = 0; j < columns; j++) {
            Memory.putInt(row + 4L * j, Memory.getInt(c + j * cColumn));
        }
    }

    /// `row[j] = row[j] + bias[j]`
    static void addBias(RowMath math, long row, int columns, long biasAt, long biasColumn) {
        if (biasColumn == 0) {
            math.add(row, getFloat(biasAt), columns);
        } else {
            math.add(row, biasAt, columns);
        }
    }

    private void scatter(long from, long to, long cColumn, int columns) {
        for (int j = 0; j < columns; j++) {
            float r = getFloat(from + 4L * j);
            putFloat(to + j * cColumn, accumulate ? getFloat(to + j * cColumn) + r : r);
        }
    }
}
