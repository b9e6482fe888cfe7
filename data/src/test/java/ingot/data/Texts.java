package ingot.data;

import java.util.SplittableRandom;

/// Random texts for property tests.
final class Texts {
    private static final String CRITICAL =
            "   \n\t\r'''sstmdrevllaZ09_-{};.,()/*é\u00A0\u0085\u2003\u2028ßΩж中\u0301½²Ⅷ";

    private Texts() {}

    /// Characters at which rules change, and now and then any other.
    static String mixed(SplittableRandom random, int length) {
        var out = new StringBuilder();
        for (int i = 0; i < length; i++) {
            if (random.nextInt(20) == 0) {
                out.appendCodePoint(codePoint(random));
            } else {
                out.append(CRITICAL.charAt(random.nextInt(CRITICAL.length())));
            }
        }
        return out.toString();
    }

    /// Any Unicode scalar values, assigned or not.
    static String unicode(SplittableRandom random, int length) {
        var out = new StringBuilder();
        for (int i = 0; i < length; i++) out.appendCodePoint(codePoint(random));
        return out.toString();
    }

    private static int codePoint(SplittableRandom random) {
        int c = random.nextInt(4) == 0 ? random.nextInt(0x110000) : random.nextInt(0x3000);
        return c >= 0xD800 && c < 0xE000 ? c - 0x800 : c;
    }

    static String latin1(SplittableRandom random, int length) {
        var out = new StringBuilder();
        for (int i = 0; i < length; i++) out.append((char) random.nextInt(256));
        return out.toString();
    }
}
