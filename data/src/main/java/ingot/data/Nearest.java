package ingot.data;

import java.util.Collection;
import java.util.Comparator;
import java.util.Optional;

/// Finds what the user probably meant.
public final class Nearest {
    private Nearest() {}

    /// The candidate with the smallest edit distance to `word`; ties go to the first in alphabetical order.
    public static Optional<String> to(String word, Collection<String> candidates) {
        return candidates.stream()
                .min(Comparator.comparingInt((String c) -> distance(word, c)).thenComparing(c -> c));
    }

    /// The same, if it may be a mistyped `word`: at most half of it, or two letters, are different.
    public static Optional<String> close(String word, Collection<String> candidates) {
        return to(word, candidates).filter(c -> distance(word, c) <= Math.max(2, word.length() / 2));
    }

    /// Levenshtein distance.
    static int distance(String a, String b) {
        int[] row = new int[b.length() + 1];
        for (int j = 0; j <= b.length(); j++) row[j] = j;
        for (int i = 1; i <= a.length(); i++) {
            int diagonal = row[0];
            row[0] = i;
            for (int j = 1; j <= b.length(); j++) {
                int change = diagonal + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
                diagonal = row[j];
                row[j] = Math.min(change, Math.min(row[j], row[j - 1]) + 1);
            }
        }
        return row[b.length()];
    }
}
