package ingot.formats;

import java.util.List;

/// A list in a message: the first few, and how many more there are.
final class Listing {
    private static final int SHOWN = 12;

    private Listing() {}

    static String of(List<String> items) {
        String shown = String.join(", ", items.subList(0, Math.min(SHOWN, items.size())));
        return items.size() > SHOWN ? shown + " and " + (items.size() - SHOWN) + " more" : shown;
    }
}
