package ingot.compiler;

import ingot.compiler.Draft.Place;
import java.util.ArrayList;
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
final class Spills {
    private static final long PAGE = 4096;

    /// Visits without a touch that are worth a trip to the disk.
    private static final int GAP = 3;

    private final List<Draft> drafts;
    private final List<Long> bytes;
    private final long least;
    private final Map<Integer, Gap> gaps = new HashMap<>(); // by buffer
    private long file;

    /// @param before the last draft that touches the buffer before the gap
    /// @param after the first one after it
    private record Gap(int before, int after, int home, long position) {}

    private Spills(List<Draft> drafts, List<Long> bytes, long least) {
        this.drafts = drafts;
        this.bytes = bytes;
        this.least = least;
    }

    /// Rewrites the drafts; `bytes` grows by the new buffers. Buffers below `least` bytes stay. Returns the bytes of
    /// the file.
    static long apply(List<Draft> drafts, List<Long> bytes, long least) {
        Spills spills = new Spills(drafts, bytes, least);
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
            }
            for (Place place : drafts.get(t).touched()) {
                if (place instanceof Place.Planned(int id, long _) && bytes.get(id) >= least) {
                    int gap = visit - lastVisit.getOrDefault(id, visit);
                    if (gap >= GAP && gap > widest.getOrDefault(id, 0)) {
                        widest.put(id, gap);
                        found.put(id, new int[] {last.getOrDefault(id, t), t});
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
            gaps.put(id, new Gap(at[0], at[1], bytes.size() - 1, file));
            file += size;
        });
    }

    private void rewrite() {
        Map<Integer, List<Draft>> before = new HashMap<>();
        Map<Integer, List<Draft>> after = new HashMap<>();
        gaps.forEach((id, gap) -> {
            after.computeIfAbsent(gap.before(), k -> new ArrayList<>())
                    .add(new Draft.Spill(new Place.Planned(id, 0), bytes.get(id), gap.position()));
            before.computeIfAbsent(gap.after(), k -> new ArrayList<>())
                    .add(new Draft.Fetch(new Place.Planned(gap.home(), 0), bytes.get(id), gap.position()));
        });
        List<Draft> all = new ArrayList<>();
        for (int t = 0; t < drafts.size(); t++) {
            all.addAll(before.getOrDefault(t, List.of()));
            all.add(moved(drafts.get(t), t));
            all.addAll(after.getOrDefault(t, List.of()));
        }
        drafts.clear();
        drafts.addAll(all);
    }

    private Draft moved(Draft draft, int t) {
        return switch (draft) {
            case Draft.Run run ->
                new Draft.Run(
                        run.kernel(),
                        run.places().stream().map(place -> moved(place, t)).toList());
            case Draft.Reduce reduce ->
                new Draft.Reduce(moved(reduce.left(), t), moved(reduce.right(), t), reduce.elements());
            case Draft.Ready _, Draft.Spill _, Draft.Fetch _ -> draft;
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
