package ingot.data;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// Reads the files of a tar archive: POSIX ustar and pax, and the long names of GNU tar.
///
/// A header is a block of 512 bytes: name 0–99, size in octal 124–135, checksum 148–155 (the sum of the header's bytes
/// with this field as spaces), type 156, `ustar` 257, name prefix 345–499. The content follows, padded to whole blocks;
/// an empty block ends the archive.
final class Tar {
    private static final int BLOCK = 512;
    private static final int LONGEST_NAME = 1 << 16;

    private Tar() {}

    /// Receives each regular file; `content` may be read to its end or not at all.
    @FunctionalInterface
    interface Receiver {
        void file(String name, Content content) throws IOException;
    }

    /// The bytes of one file.
    @FunctionalInterface
    interface Content {
        byte[] bytes() throws IOException;
    }

    static void read(InputStream in, Receiver receiver) throws IOException {
        @Nullable String longName = null;
        while (true) {
            var header = in.readNBytes(BLOCK);
            if (header.length < BLOCK) throw new EOFException();
            if (isEmpty(header)) return;
            check(header);
            long size = octal(header, 124, 12);
            char type = (char) header[156];
            if (type == 'x' || type == 'L') {
                if (size > LONGEST_NAME) throw new IOException("a name of " + size + " bytes");
                var bytes = content(in, size);
                longName = type == 'L' ? string(bytes, 0, bytes.length) : paxPath(bytes, longName);
            } else if (type == '0' || type == 0) {
                var name = longName != null ? longName : name(header);
                longName = null;
                var taken = new boolean[1];
                receiver.file(name, () -> {
                    taken[0] = true;
                    return content(in, size);
                });
                if (!taken[0]) in.skipNBytes(padded(size));
            } else {
                longName = null;
                in.skipNBytes(padded(size));
            }
        }
    }

    private static byte[] content(InputStream in, long size) throws IOException {
        if (size > Integer.MAX_VALUE - BLOCK) throw new IOException("an entry of " + size + " bytes");
        var bytes = in.readNBytes((int) size);
        if (bytes.length < size) throw new EOFException();
        in.skipNBytes(padded(size) - size);
        return bytes;
    }

    private static long padded(long size) {
        return (size + BLOCK - 1) / BLOCK * BLOCK;
    }

    private static boolean isEmpty(byte[] block) {
        for (byte b : block) {
            if (b != 0) return false;
        }
        return true;
    }

    private static void check(byte[] header) throws IOException {
        int sum = 0;
        for (int i = 0; i < BLOCK; i++) sum += i >= 148 && i < 156 ? ' ' : header[i] & 0xFF;
        if (sum != octal(header, 148, 8)) throw new IOException("the checksum of a header differs");
    }

    private static long octal(byte[] header, int from, int length) throws IOException {
        var digits = string(header, from, from + length).strip();
        try {
            return digits.isEmpty() ? 0 : Long.parseLong(digits, 8);
        } catch (NumberFormatException e) {
            throw new IOException("'" + digits + "' is no octal number", e);
        }
    }

    private static String name(byte[] header) {
        var name = string(header, 0, 100);
        boolean ustar = string(header, 257, 262).equals("ustar");
        var prefix = ustar ? string(header, 345, 500) : "";
        return prefix.isEmpty() ? name : prefix + "/" + name;
    }

    /// `path` of the pax records `length key=value\n`, or the name known so far.
    private static @Nullable String paxPath(byte[] records, @Nullable String known) throws IOException {
        for (int at = 0; at < records.length; ) {
            int space = at;
            while (space < records.length && records[space] != ' ') space++;
            int length;
            try {
                length = Integer.parseInt(string(records, at, space));
            } catch (NumberFormatException e) {
                throw new IOException("a malformed pax header", e);
            }
            int end = at + length;
            if (length <= 0 || end > records.length || space >= end - 1)
                throw new IOException("a malformed pax header");
            var record = new String(Arrays.copyOfRange(records, space + 1, end - 1), StandardCharsets.UTF_8);
            if (record.startsWith("path=")) known = record.substring("path=".length());
            at = end;
        }
        return known;
    }

    /// Bytes up to the first zero.
    private static String string(byte[] bytes, int from, int to) {
        int end = from;
        while (end < to && bytes[end] != 0) end++;
        return new String(bytes, from, end - from, StandardCharsets.UTF_8);
    }
}
