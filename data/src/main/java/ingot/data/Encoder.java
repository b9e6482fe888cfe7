package ingot.data;

import ai.djl.huggingface.tokenizers.HuggingFaceTokenizer;
import java.util.Arrays;
import java.util.concurrent.ConcurrentHashMap;

/// Encodes with Hugging Face tokenizers, and asks them only once for each distinct word.
///
/// A tokenizer whose words are those of the GPT-2 expression gives a word the same ids wherever it stands. The native
/// call dominates the cost of encoding, and text repeats its words: source code about thirty times. Pieces with
/// characters whose Unicode class may be newer than the native library, or with added tokens, go to it whole.
final class Encoder implements AutoCloseable {
    private static final int PIECE = 1 << 15;
    private static final int REMEMBERED = 1 << 18;

    private final HuggingFaceTokenizer library;
    private final Vocabulary vocabulary;
    private final ConcurrentHashMap<String, int[]> words = new ConcurrentHashMap<>();

    Encoder(HuggingFaceTokenizer library, Vocabulary vocabulary) {
        this.library = library;
        this.vocabulary = vocabulary;
    }

    private static final class Ids {
        int[] values = new int[1 << 10];
        int size;

        void add(int[] more) {
            if (size + more.length > values.length) {
                values = Arrays.copyOf(values, Math.max(size + more.length, values.length + values.length / 2));
            }
            System.arraycopy(more, 0, values, size, more.length);
            size += more.length;
        }
    }

    int[] encode(String text) {
        if (!vocabulary.splitsAsGpt2() || vocabulary.mentionsAdded(text)) return ask(text);
        var ids = new Ids();
        for (int from = 0; from < text.length(); ) {
            int to = cut(text, from);
            var piece = text.substring(from, to);
            if (piece.chars().allMatch(Encoder::isLongSettled)) {
                Words.split(piece, (start, end) -> ids.add(word(piece.substring(start, end))));
            } else {
                ids.add(ask(piece));
            }
            from = to;
        }
        return Arrays.copyOf(ids.values, ids.size);
    }

    /// The first place to cut after at least a piece: where white space follows something else a word begins, and no
    /// word reaches back over that place.
    private static int cut(String text, int from) {
        for (int at = from + PIECE; at < text.length(); at++) {
            if (Words.isWhiteSpace(text.charAt(at)) && !Words.isWhiteSpace(text.charAt(at - 1))) return at;
        }
        return text.length();
    }

    /// Latin, Greek, Cyrillic and general punctuation: no character there is younger than Unicode 7.
    private static boolean isLongSettled(int c) {
        return c < 0x530 || (c >= 0x2000 && c < 0x2070);
    }

    private int[] word(String word) {
        var known = words.get(word);
        if (known != null) return known;
        var ids = ask(word);
        if (words.size() < REMEMBERED) words.put(word, ids);
        return ids;
    }

    private int[] ask(String text) {
        return Arrays.stream(library.encode(text, false, false).getIds())
                .mapToInt(Math::toIntExact)
                .toArray();
    }

    @Override
    public void close() {
        library.close();
    }
}
