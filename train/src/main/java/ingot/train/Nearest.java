package ingot.train;

import java.util.Collection;

/// The known name a mistyped one was probably meant to be.
final class Nearest {
    private Nearest() {}

    /// The closest of `names` by edit distance, or an empty text if none is close.
    static String to(String name, Collection<String> names) {
        String best = "";
        int closest = Math.max(2, name.length() / 2) + 1;
        for (String candidate : names) {
            int distance = distance(name.replace('_', '-'), candidate);
            if (distance < closest) {
                closest = distance;
                best = candidate;
            }
        }
        return best;
    }

    /// Levenshtein distance.
    private static int distance(String a, String b) {
        int[] row = new int[b.length() + 1];
        for (int j = 0; j <= b.length(); j++) {
            row[j] = j;
        }
        for (int i = 1; i <= a.length(); i++) {
            int diagonal = row[0];
            row[0] = i;
            for (int j = 1; j <= b.length(); j++) {
                int above = row[j];
                int change = a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1;
                row[j] = Math.min(Math.min(row[j] + 1, row[j - 1] + 1), diagonal + change);
                diagonal = above;
            }
        }
        return row[b.length()];
    }
}
