package ingot.data;

import java.io.ByteArrayOutputStream;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// The GPT-2 alphabet: one printable character for each byte, so that tokens of raw bytes can stand in JSON.
///
/// Printable Latin-1 bytes are themselves; the other 68 become U+0100, U+0101, … in ascending order (space is Ġ).
final class ByteAlphabet {
    private static final char[] CHARACTER = new char[256];
    private static final int[] BYTE = new int[256 + 68]; // -1: not a letter of the alphabet

    static {
        Arrays.fill(BYTE, -1);
        int next = 256;
        for (int b = 0; b < 256; b++) {
            boolean printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
            CHARACTER[b] = (char) (printable ? b : next++);
            BYTE[CHARACTER[b]] = b;
        }
    }

    private ByteAlphabet() {}

    static char character(int value) {
        return CHARACTER[value & 0xFF];
    }

    /// The bytes in the order of their characters: the order of a new vocabulary.
    static int[] bytesInOrder() {
        return Arrays.stream(BYTE).filter(b -> b >= 0).toArray();
    }

    /// The bytes a token spells, or null when it has a character outside the alphabet.
    static byte @Nullable [] bytes(String token) {
        var out = new ByteArrayOutputStream(token.length());
        for (int i = 0; i < token.length(); i++) {
            char c = token.charAt(i);
            if (c >= BYTE.length || BYTE[c] < 0) return null;
            out.write(BYTE[c]);
        }
        return out.toByteArray();
    }
}
