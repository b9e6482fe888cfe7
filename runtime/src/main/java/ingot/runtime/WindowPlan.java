package ingot.runtime;

import ingot.compiler.BufferPlan;
import ingot.ir.IngotException;
import ingot.store.Storage;
import ingot.store.WeightStore.Key;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// What of the training state is in memory when: which arrays stay there for good, and where the others lie while they
/// pass by.
///
/// An array that is not pinned has a stay for every run of visits that touch it. A weight arrives one visit early (it
/// is read, and updated, while the stage before it computes), a gradient leaves one visit late (it is written while the
/// next stage computes). If that does not fit, the window works without this overlap: slower, and as small as it gets.
/// With more memory arrays are pinned, in a fixed order: weights, which are read twice per step, then gradients and
/// moments, which are read once. A least-recently-used cache would have no hits: the order of a step is a cycle.
///
/// @param stays in the order in which they begin
/// @param pinned offset of every pinned array
/// @param pinnedBytes the part of the window that they take
/// @param bytes size of the window
/// @param overlap reading, computing and writing at the same time
public record WindowPlan(List<Stay> stays, Map<Key, Long> pinned, long pinnedBytes, long bytes, boolean overlap) {
    /// Arrays that do not fit and are left out, while later ones are still tried.
    private static final int MOST_SKIPPED = 8;

    public WindowPlan {
        stays = List.copyOf(stays);
    }

    /// One array in memory from visit `start` to `end`, touched by visits from `first` to `last`.
    ///
    /// @param bytes a multiple of 4 KiB
    /// @param offset its place in the window
    public record Stay(Key key, long bytes, int first, int last, int start, int end, long offset) {
        boolean gradient() {
            return key.part().equals(Key.GRADIENT);
        }

        boolean shares(Stay other) {
            return offset < other.offset + other.bytes && other.offset < offset + bytes;
        }
    }

    /// The best plan within `windowBytes`; refuses less than the minimum.
    ///
    /// @param moments the optimizer's arrays per weight
    public static WindowPlan of(List<Visit> visits, List<String> moments, long windowBytes) {
        Map<Key, Long> sizes = sizes(visits, moments);
        List<Key> candidates = candidates(visits, sizes);
        boolean overlap = place(visits, sizes, Set.of(), true).bytes() <= windowBytes;
        WindowPlan best = place(visits, sizes, Set.of(), overlap);
        if (best.bytes() > windowBytes) {
            throw new IngotException("memory: the weights and gradients of the largest stage need a window of "
                    + best.bytes() + " bytes, the budget leaves " + windowBytes);
        }
        Set<Key> pinned = Set.of();
        for (int skipped = 0; skipped < MOST_SKIPPED && !candidates.isEmpty(); skipped++) {
            int low = 0;
            int high = candidates.size();
            while (low < high) {
                int middle = (low + high + 1) / 2;
                Set<Key> more = new HashSet<>(pinned);
                more.addAll(candidates.subList(0, middle));
                WindowPlan plan = place(visits, sizes, more, overlap);
                if (plan.bytes() <= windowBytes) {
                    best = plan;
                    low = middle;
                } else {
                    high = middle - 1;
                }
            }
            pinned = best.pinned().keySet();
            long free = windowBytes - best.bytes();
            candidates = candidates.subList(Math.min(low + 1, candidates.size()), candidates.size()).stream()
                    .filter(key -> sizes.getOrDefault(key, 0L) <= free)
                    .toList();
        }
        return best;
    }

    /// The least window with which a step can be done.
    public static long minimum(List<Visit> visits) {
        return place(visits, sizes(visits, List.of()), Set.of(), false).bytes();
    }

    /// The least window with which a step reads and writes while it computes.
    public static long overlapping(List<Visit> visits) {
        return place(visits, sizes(visits, List.of()), Set.of(), true).bytes();
    }

    private static WindowPlan place(List<Visit> visits, Map<Key, Long> sizes, Set<Key> pinned, boolean overlap) {
        Map<Key, Long> offsets = new LinkedHashMap<>();
        long at = 0;
        for (Map.Entry<Key, Long> size : sizes.entrySet()) {
            if (pinned.contains(size.getKey())) {
                offsets.put(size.getKey(), at);
                at += size.getValue();
            }
        }
        List<Stay> passing = stays(visits, sizes, pinned, overlap);
        BufferPlan plan = BufferPlan.of(passing.stream()
                .map(stay -> new BufferPlan.Life(stay.bytes(), stay.start(), stay.end()))
                .toList());
        List<Stay> stays = new ArrayList<>();
        for (int i = 0; i < passing.size(); i++) {
            Stay stay = passing.get(i);
            long offset = at + plan.offset(i);
            stays.add(new Stay(stay.key(), stay.bytes(), stay.first(), stay.last(), stay.start(), stay.end(), offset));
        }
        stays.sort(Comparator.comparingInt(Stay::start).thenComparingInt(Stay::first));
        return new WindowPlan(stays, offsets, at, at + Storage.roundUp(plan.peak()), overlap);
    }

    private static List<Stay> stays(List<Visit> visits, Map<Key, Long> sizes, Set<Key> pinned, boolean overlap) {
        Map<Key, List<Integer>> touches = new LinkedHashMap<>();
        for (Visit visit : visits) {
            for (Visit.Touch touch : visit.touches()) {
                if (!pinned.contains(touch.key())) {
                    touches.computeIfAbsent(touch.key(), k -> new ArrayList<>()).add(visit.index());
                }
            }
        }
        int early = overlap ? 1 : 0;
        List<Stay> stays = new ArrayList<>();
        touches.forEach((key, at) -> {
            boolean gradient = key.part().equals(Key.GRADIENT);
            int first = at.getFirst();
            int last = first;
            for (int i = 1; i <= at.size(); i++) {
                // a gradient is a sum in the making until its last touch
                if (i == at.size() || (!gradient && at.get(i) - early > last + 1)) {
                    int start = gradient ? first : Math.max(0, first - early);
                    int end = gradient ? Math.min(visits.size() - 1, last + early) : last;
                    stays.add(new Stay(key, sizes.getOrDefault(key, 0L), first, last, start, end, 0));
                    first = i < at.size() ? at.get(i) : 0;
                }
                last = i < at.size() ? at.get(i) : 0;
            }
        });
        return stays;
    }

    /// What may be pinned, the most useful first.
    private static List<Key> candidates(List<Visit> visits, Map<Key, Long> sizes) {
        Map<Key, Integer> reads = new LinkedHashMap<>();
        for (Stay stay : stays(visits, sizes, Set.of(), true)) {
            reads.merge(stay.key(), 1, Integer::sum);
        }
        List<Key> candidates = new ArrayList<>(sizes.keySet());
        candidates.sort(Comparator.comparingInt((Key key) ->
                        key.part().equals(Key.WEIGHT) ? 0 : key.part().equals(Key.GRADIENT) ? 1 : 2)
                .thenComparingInt(key -> -reads.getOrDefault(key, 0)));
        return candidates;
    }

    /// Bytes of every array in whole pages, weights in the order of their first use.
    private static Map<Key, Long> sizes(List<Visit> visits, List<String> moments) {
        Map<Key, Long> sizes = new LinkedHashMap<>();
        for (Visit visit : visits) {
            for (Visit.Touch touch : visit.touches()) {
                sizes.putIfAbsent(touch.key(), Storage.roundUp(touch.bytes()));
            }
            for (String weight : visit.updated()) {
                long bytes = sizes.getOrDefault(Key.weight(weight), 0L);
                moments.forEach(moment -> sizes.put(new Key(weight, moment), bytes));
            }
        }
        return sizes;
    }
}
