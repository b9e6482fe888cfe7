package ingot.data;

import ingot.ir.IngotException;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.GZIPInputStream;

/// Arrays of bytes in the IDX format of the MNIST data sets, perhaps compressed (`.gz`).
///
///     00 00 08 rank · rank × size (big-endian I32) · bytes, row-major
///
/// @param dims sizes of the axes
record Idx(Path file, List<Integer> dims, byte[] values) {
    /// Reads a file with `rank` axes.
    static Idx read(Path file, int rank) {
        try (InputStream raw = new BufferedInputStream(Files.newInputStream(file));
                DataInputStream in = new DataInputStream(
                        file.toString().endsWith(".gz") ? new GZIPInputStream(raw, 1 << 16) : raw)) {
            int magic = in.readInt();
            if (magic != (0x800 | rank)) {
                throw new IngotException("idx: " + file + " begins with " + Integer.toHexString(magic) + ", expected "
                        + Integer.toHexString(0x800 | rank) + ": bytes on " + rank + " axes");
            }
            List<Integer> dims = new ArrayList<>();
            long elements = 1;
            for (int i = 0; i < rank; i++) {
                int dim = in.readInt();
                if (dim < 1 || elements * dim > Integer.MAX_VALUE - 8) {
                    throw new IngotException("idx: " + file + " says that axis " + i + " has " + dim
                            + " elements; expected at least 1, and at most 2³¹ in all");
                }
                dims.add(dim);
                elements *= dim;
            }
            // readNBytes allocates as bytes come, so a short file cannot ask for much
            byte[] values = in.readNBytes((int) elements);
            if (values.length < elements) {
                throw new IngotException("idx: " + file + " ends after " + values.length + " of the " + elements
                        + " bytes that it declares");
            }
            if (in.read() >= 0) {
                throw new IngotException("idx: " + file + " has more than the " + elements + " bytes it declares");
            }
            return new Idx(file, dims, values);
        } catch (EOFException e) {
            throw new IngotException("idx: " + file + " ends inside of its header or is cut off", e);
        } catch (IOException e) {
            throw new IngotException("idx: cannot read " + file + ": " + e.getMessage(), e);
        }
    }
}
