package ingot.compiler;

import ingot.compiler.Draft.Place;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/// Sends buffers to disk that nobody touches for several visits: the activations between two stages, from their forward
/// to their backward.
///
/// A buffer with such a gap becomes two: the first ends with a `Spill` after its last touch before the gap, the second
/// begins with a `Fetch` before its first touch after it. Both have short lives, so the memory of a deep model does not
/// grow with its depth.
///
///     visit          3                4                    …    12                13
///     in place       compute, Spill Await                                         Fetch Await, compute
///     ahead          compute, Spill   compute … Await      …    Fetch, compute …  Await, compute
final class Spills {
    private static final long PAGE = 4096;

    /// Visits without a touch that are worth a trip to the disk.
    private static final int GAP = 3;

    private final List<Draft> drafts;
    private final List<Long> bytes;
    private final long least;
    private final boolean ahead;
    private final List<Integer> loads = new ArrayList<>(); // draft by visit
    private final Map<Integer, Gap> gaps = new HashMap<>(); // by buffer
    private long file;

    /// @param before the last draft that touches the buffer before the gap
    /// @param written the last draft before which the spill need not be over
    /// @param fetched the draft before which the fetch begins
    /// @param after the first one that touches it after the gap
    private record Gap(int before, int written, int fetched, int after, int home, long position) {}

    private Spills(List<Draft> drafts, List<Long> bytes, long least, boolean ahead) {
        this.ahead = ahead;
        this.drafts = drafts;
        this.bytes = bytes;
        this.least = least;
    }

    /// Rewrites the drafts; `bytes` grows by the new buffers. Buffers below `least` bytes stay. Returns the bytes of
    /// the file.
    static long apply(List<Draft> drafts, List<Long> bytes, long least, boolean ahead) {
        Spills spills = new Spills(drafts, bytes, least, ahead);
        spills.find();
        spills.rewrite();
        return spills.file;
    }

    private void find() {
        Map<Integer, Integer> last = new HashMap<>(); // draft
        Map<Integer, Integer> lastVisit = new HashMap<>();
        Map<Integer, Integer> widest = new HashMap<>();
        Map<Integer, int[]> found = new HashMap<>();
        int visit = -1;
        for (int t = 0; t < drafts.size(); t++) {
            if (drafts.get(t) instanceof Draft.Ready(Step.Load _)) {
                visit++;
                loads.add(t);
            }
            for (Place place : drafts.get(t).touched()) {
                if (place instanceof Place.Planned(int id, long _) && bytes.get(id) >= least) {
                    int gap = visit - lastVisit.getOrDefault(id, visit);
                    if (gap >= GAP && gap > widest.getOrDefault(id, 0)) {
                        widest.put(id, gap);
                        found.put(
                                id, new int[] {last.getOrDefault(id, t), t, lastVisit.getOrDefault(id, visit), visit});
                    }
                    last.put(id, t);
                    lastVisit.put(id, visit);
                }
            }
        }
        found.keySet().stream().sorted().forEach(id -> {
            int[] at = Objects.requireNonNull(found.get(id));
            long size = (bytes.get(id) + PAGE - 1) / PAGE * PAGE;
            bytes.set(id, size);
            bytes.add(size);
            // the end of the visit after the spill, the begin of the one before the first touch
            int written = ahead ? loads.get(at[2] + 2) - 1 : at[0];
            int fetched = ahead ? loads.get(at[3] - 1) + 1 : at[1];
            gaps.put(id, new Gap(at[0], written, fetched, at[1], bytes.size() - 1, file));
            file += size;
        });
    }

    private void rewrite() {
        Map<Integer, List<Draft>> behind = new HashMap<>(); // of a draft
        Map<Integer, List<Draft>> before = new HashMap<>();
        List<Map.Entry<Integer, Gap>> inOrder = new ArrayList<>(gaps.entrySet());
        // of what arrives at one moment, what is needed first comes first
        inOrder.sort(Comparator.comparingInt(
                        (Map.Entry<Integer, Gap> entry) -> entry.getValue().after())
                .thenComparing(Map.Entry::getKey));
        inOrder.forEach(entry -> {
            Gap gap = entry.getValue();
            Place from = new Place.Planned(entry.getKey(), 0);
            Place to = new Place.Planned(gap.home(), 0);
            long size = bytes.get(entry.getKey());
            add(behind, gap.before(), new Draft.Spill(from, size, gap.position()));
            add(behind, gap.written(), new Draft.Await(from, gap.position()));
            add(before, gap.fetched(), new Draft.Fetch(to, size, gap.position()));
            add(before, gap.after(), new Draft.Await(to, gap.position()));
        });
        List<Draft> all = new ArrayList<>();
        for (int t = 0; t < drafts.size(); t++) {
            all.addAll(before.getOrDefault(t, List.of()));
            all.add(moved(drafts.get(t), t));
            all.addAll(behind.getOrDefault(t, List.of()));
        }
        drafts.clear();
        drafts.addAll(all);
    }

    private static void add(Map<Integer, List<Draft>> at, int draft, Draft step) {
        at.computeIfAbsent(draft, k -> new ArrayList<>()).add(step);
    }

    private Draft moved(Draft draft, int t) {
        return switch (draft) {
            case Draft.Run run ->
                new Draft.Run(
                        run.kernel(),
                        run.places().stream().map(place -> moved(place, t)).toList());
            case Draft.Reduce reduce ->
                new Draft.Reduce(moved(reduce.left(), t), moved(reduce.right(), t), reduce.elements());
            case Draft.Ready _, Draft.Spill _, Draft.Fetch _, Draft.Await _ -> draft;
        };
    }

    private Place moved(Place place, int t) {
        if (place instanceof Place.Planned(int id, long offset)) {
            Gap gap = gaps.get(id);
            return gap != null && t >= gap.after() ? new Place.Planned(gap.home(), offset) : place;
        }
        return place;
    }
}
