package ingot.compiler;

import ingot.compiler.Draft.Place;
import ingot.ir.Type;
import java.util.List;
import java.util.Map;

/// Makes it safe to pass the same memory for an output and an input.
///
/// Safe as it is: the first kernel that writes the output is a map with the input at the same layout, and nothing reads
/// the input later. Otherwise the output is computed elsewhere and copied over the input at the end, when all inputs
/// are read.
final class InPlace {
    private InPlace() {}

    static void protect(List<Draft> drafts, List<Long> planned, Map<String, String> inPlace, Map<String, Type> types) {
        int steps = drafts.size();
        inPlace.forEach((output, input) -> {
            Buffer to = new Buffer.Output(output);
            Buffer from = new Buffer.Input(input);
            Type type = types.get(output);
            if (type == null || safe(drafts.subList(0, steps), to, from)) {
                return;
            }
            planned.add(type.bytes());
            int id = planned.size() - 1;
            for (int t = 0; t < steps; t++) {
                if (drafts.get(t) instanceof Draft.Run run) {
                    drafts.set(
                            t,
                            new Draft.Run(
                                    run.kernel(),
                                    run.places().stream()
                                            .map(place -> place instanceof Place.Fixed fixed
                                                            && fixed.buffer().equals(to)
                                                    ? new Place.Planned(id, fixed.byteOffset())
                                                    : place)
                                            .toList()));
                }
            }
            drafts.add(new Draft.Run(Copies.copy(type), List.of(new Place.Planned(id, 0), new Place.Fixed(to, 0))));
        });
    }

    private static boolean safe(List<Draft> drafts, Buffer output, Buffer input) {
        boolean written = false;
        for (Draft draft : drafts) {
            if (!(draft instanceof Draft.Run run)) {
                continue;
            }
            int reads = run.kernel().reads().size();
            boolean readsInput = run.places().subList(0, reads).stream().anyMatch(place -> at(place, input));
            if (written && readsInput) {
                return false;
            }
            for (int w = reads; w < run.places().size(); w++) {
                if (at(run.places().get(w), output)) {
                    if (readsInput && !exact(run, w - reads, input)) {
                        return false;
                    }
                    written = true;
                }
            }
        }
        return true;
    }

    /// Every read of `input` has the layout of write `index`, in a map, from the start of both buffers.
    private static boolean exact(Draft.Run run, int index, Buffer input) {
        if (!(run.kernel() instanceof Kernel.Map map)) {
            return false;
        }
        Layout write = map.writes().get(index);
        Place target = run.places().get(map.reads().size() + index);
        for (int r = 0; r < map.reads().size(); r++) {
            if (at(run.places().get(r), input)) {
                boolean same = map.reads().get(r).shape().equals(write.shape())
                        && map.reads().get(r).strides().equals(write.strides())
                        && map.reads().get(r).dtype().bytes() == write.dtype().bytes()
                        && ((Place.Fixed) run.places().get(r)).byteOffset() == ((Place.Fixed) target).byteOffset();
                if (!same) {
                    return false;
                }
            }
        }
        return true;
    }

    private static boolean at(Place place, Buffer buffer) {
        return place instanceof Place.Fixed fixed && fixed.buffer().equals(buffer);
    }
}
