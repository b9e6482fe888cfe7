package ingot.data;

import ingot.ir.IngotException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// Which examples are held out: a share of every class, as a pure function of the seed and the contents.
///
/// Within a class examples are in the order of a keyed hash of what they contain; the first ones are held out. Equal
/// contents stay together: what is trained on is never measured.
public final class HeldOut {
    private HeldOut() {}

    /// Both parts as indices in ascending order.
    public record Split(int[] training, int[] heldOut) {}

    /// Holds out about `fraction` of every class. A class with a single content is trained on.
    public static Split of(List<String> contents, List<String> classes, double fraction, long seed) {
        if (!(fraction > 0 && fraction < 1)) {
            throw new IngotException("held-out fraction " + fraction + ": expected between 0 and 1, such as 0.1");
        }
        long[] keys = new long[contents.size()];
        Map<String, List<Integer>> byClass = new LinkedHashMap<>();
        for (int i = 0; i < keys.length; i++) {
            keys[i] = Keyed.hash(seed, contents.get(i));
            byClass.computeIfAbsent(classes.get(i), _ -> new ArrayList<>()).add(i);
        }
        List<Integer> training = new ArrayList<>();
        List<Integer> heldOut = new ArrayList<>();
        for (List<Integer> members : byClass.values()) {
            members.sort(Comparator.comparingLong((Integer i) -> keys[i]).thenComparing(i -> i));
            int count = (int) Math.max(1, Math.round(fraction * members.size()));
            while (count < members.size() && keys[members.get(count)] == keys[members.get(count - 1)]) {
                count++;
            }
            if (count == members.size()) {
                count = 0;
            }
            heldOut.addAll(members.subList(0, count));
            training.addAll(members.subList(count, members.size()));
        }
        return new Split(sorted(training), sorted(heldOut));
    }

    private static int[] sorted(List<Integer> indices) {
        return indices.stream().mapToInt(Integer::intValue).sorted().toArray();
    }
}
