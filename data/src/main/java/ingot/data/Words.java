package ingot.data;

/// Splits text as GPT-2 does, before byte pairs are merged inside each word:
/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`.
///
/// A hand-written scanner of that expression: the first alternative that matches wins. Radford et al.: Language
/// Models are Unsupervised Multitask Learners, 2019.
final class Words {
    private static final int SPACE = 0;
    private static final int LETTER = 1;
    private static final int NUMBER = 2;
    private static final int OTHER = 3;

    private static final byte[] ASCII = new byte[128];

    static {
        for (int c = 0; c < 128; c++) ASCII[c] = (byte) classify(c);
    }

    private Words() {}

    /// Receives `text[from, to)`.
    @FunctionalInterface
    interface Receiver {
        void word(int from, int to);
    }

    static void split(String text, Receiver receiver) {
        int at = 0;
        while (at < text.length()) {
            int end = end(text, at);
            receiver.word(at, end);
            at = end;
        }
    }

    /// The end of the word that begins at `at`.
    private static int end(String text, int at) {
        int contraction = contraction(text, at);
        if (contraction > 0) return at + contraction;
        int first = text.codePointAt(at);
        int kind = kind(first);
        if (kind != SPACE) return run(text, at, kind);
        if (first == ' ' && at + 1 < text.length()) {
            int next = kind(text.codePointAt(at + 1));
            if (next != SPACE) return run(text, at + 1, next);
        }
        int end = run(text, at, SPACE);
        // \s+(?!\S): white space leaves its last character to the word that follows.
        return end < text.length() && end - at > 1 ? end - 1 : end;
    }

    private static int run(String text, int at, int kind) {
        while (at < text.length()) {
            int c = text.codePointAt(at);
            if (kind(c) != kind) break;
            at += Character.charCount(c);
        }
        return at;
    }

    private static int contraction(String text, int at) {
        if (text.charAt(at) != '\'' || at + 1 >= text.length()) return 0;
        char second = text.charAt(at + 1);
        if (second == 's' || second == 't' || second == 'm' || second == 'd') return 2;
        if (at + 2 >= text.length()) return 0;
        char third = text.charAt(at + 2);
        boolean two =
                (second == 'r' && third == 'e') || (second == 'v' && third == 'e') || (second == 'l' && third == 'l');
        return two ? 3 : 0;
    }

    private static int kind(int c) {
        return c < 128 ? ASCII[c] : classify(c);
    }

    private static int classify(int c) {
        if (isWhiteSpace(c)) return SPACE;
        return switch (Character.getType(c)) {
            case Character.UPPERCASE_LETTER,
                    Character.LOWERCASE_LETTER,
                    Character.TITLECASE_LETTER,
                    Character.MODIFIER_LETTER,
                    Character.OTHER_LETTER -> LETTER;
            case Character.DECIMAL_DIGIT_NUMBER, Character.LETTER_NUMBER, Character.OTHER_NUMBER -> NUMBER;
            default -> OTHER;
        };
    }

    /// The Unicode property White_Space.
    static boolean isWhiteSpace(int c) {
        return (c >= 0x09 && c <= 0x0D)
                || c == 0x20
                || c == 0x85
                || c == 0xA0
                || c == 0x1680
                || (c >= 0x2000 && c <= 0x200A)
                || c == 0x2028
                || c == 0x2029
                || c == 0x202F
                || c == 0x205F
                || c == 0x3000;
    }
}
