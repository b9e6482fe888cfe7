package ingot.data;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;

/// UTF-8 with malformed input made visible instead of dropped.
final class Utf8 {
    private Utf8() {}

    static CharsetDecoder decoder() {
        return StandardCharsets.UTF_8
                .newDecoder()
                .onMalformedInput(CodingErrorAction.REPLACE)
                .onUnmappableCharacter(CodingErrorAction.REPLACE);
    }

    /// The document of these bytes; each malformed sequence becomes U+FFFD and is counted.
    static Document document(String name, byte[] bytes) {
        try {
            var strict = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes));
            return new Document(name, strict.toString(), 0);
        } catch (CharacterCodingException malformed) {
            var text = new String(bytes, StandardCharsets.UTF_8);
            return new Document(name, text, count(text) - countEncoded(bytes));
        }
    }

    private static int count(String text) {
        return (int) text.chars().filter(c -> c == '\uFFFD').count();
    }

    /// Genuine U+FFFD in the input: EF BF BD.
    private static int countEncoded(byte[] bytes) {
        int n = 0;
        for (int i = 0; i + 2 < bytes.length; i++) {
            if (bytes[i] == (byte) 0xEF && bytes[i + 1] == (byte) 0xBF && bytes[i + 2] == (byte) 0xBD) n++;
        }
        return n;
    }

    /// Bytes the text takes in UTF-8; an unpaired surrogate counts as the three bytes of U+FFFD.
    static long length(String text) {
        long n = 0;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c < 0x80) {
                n++;
            } else if (c < 0x800) {
                n += 2;
            } else if (Character.isHighSurrogate(c)
                    && i + 1 < text.length()
                    && Character.isLowSurrogate(text.charAt(i + 1))) {
                n += 4;
                i++;
            } else {
                n += 3;
            }
        }
        return n;
    }

    /// The text with unpaired surrogates, which UTF-8 cannot hold, replaced by U+FFFD.
    static String wellFormed(String text) {
        for (int i = 0; i < text.length(); i++) {
            if (!Character.isSurrogate(text.charAt(i))) continue;
            if (Character.charCount(text.codePointAt(i)) == 2) {
                i++;
                continue;
            }
            return text.codePoints()
                    .map(c -> c >= Character.MIN_SURROGATE && c <= Character.MAX_SURROGATE ? 0xFFFD : c)
                    .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append)
                    .toString();
        }
        return text;
    }
}
