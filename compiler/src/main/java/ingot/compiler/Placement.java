package ingot.compiler;

import ingot.compiler.Draft.Place;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/// Gives every planned buffer its address: lifetimes, results in place, then a `BufferPlan`.
record Placement(List<Step> steps, BufferPlan plan) {

    static Placement of(List<Draft> drafts, List<Long> bytes) {
        int n = bytes.size();
        int[] first = new int[n];
        int[] last = new int[n];
        Arrays.fill(first, -1);
        for (int t = 0; t < drafts.size(); t++) {
            for (Place place : drafts.get(t).touched()) {
                if (place instanceof Place.Planned planned) {
                    first[planned.id()] = first[planned.id()] < 0 ? t : first[planned.id()];
                    last[planned.id()] = t;
                }
            }
        }
        int[] home = inPlace(drafts, bytes, first, last);
        int[] index = new int[n];
        List<BufferPlan.Life> lives = new ArrayList<>();
        for (int id = 0; id < n; id++) {
            if (home[id] == id && first[id] >= 0) {
                index[id] = lives.size();
                lives.add(new BufferPlan.Life(bytes.get(id), first[id], last[id]));
            }
        }
        BufferPlan plan = BufferPlan.of(lives);
        List<Step> steps = new ArrayList<>();
        for (Draft draft : drafts) {
            steps.add(
                    switch (draft) {
                        case Draft.Ready ready -> ready.step();
                        case Draft.Run run ->
                            new Step.Run(
                                    run.kernel(),
                                    run.places().stream()
                                            .map(place -> operand(place, home, index, plan))
                                            .toList());
                        case Draft.Spill spill ->
                            new Step.Spill(operand(spill.from(), home, index, plan), spill.bytes(), spill.position());
                        case Draft.Fetch fetch ->
                            new Step.Fetch(operand(fetch.to(), home, index, plan), fetch.bytes(), fetch.position());
                        case Draft.Await await ->
                            new Step.Await(operand(await.memory(), home, index, plan), await.position());
                        case Draft.Reduce reduce ->
                            new Step.Reduce(
                                    operand(reduce.left(), home, index, plan),
                                    operand(reduce.right(), home, index, plan),
                                    reduce.elements());
                    });
        }
        return new Placement(steps, plan);
    }

    private static Step.Operand operand(Place place, int[] home, int[] index, BufferPlan plan) {
        return switch (place) {
            case Place.Fixed fixed -> new Step.Operand(fixed.buffer(), fixed.byteOffset());
            case Place.Planned planned -> {
                int life = index[home[planned.id()]];
                yield new Step.Operand(
                        new Buffer.Activation(
                                plan.offset(life), plan.lives().get(life).bytes()),
                        planned.byteOffset());
            }
        };
    }

    /// Lets the write of a map take over the memory of a read that dies there; `first` and `last` of the survivor grow.
    ///
    /// Only for a read of the same layout and buffer size that no other operand of the call touches, so that it is
    /// exactly the in-place case that `Kernel.Map` allows.
    private static int[] inPlace(List<Draft> drafts, List<Long> bytes, int[] first, int[] last) {
        int[] home = new int[bytes.size()];
        Arrays.setAll(home, i -> i);
        for (int t = 0; t < drafts.size(); t++) {
            if (drafts.get(t) instanceof Draft.Run(Kernel.Map map, List<Place> places)) {
                int reads = map.reads().size();
                for (int w = reads; w < places.size(); w++) {
                    if (places.get(w) instanceof Place.Planned(int write, long offset)
                            && offset == 0
                            && home[write] == write
                            && first[write] == t) {
                        for (int r = 0; r < reads; r++) {
                            if (places.get(r) instanceof Place.Planned(int read, long from)
                                    && from == 0
                                    && last[home[read]] == t
                                    && home[read] != write
                                    && Objects.equals(bytes.get(home[read]), bytes.get(write))
                                    && sameSteps(
                                            map.reads().get(r), map.writes().get(w - reads))
                                    && uses(places, home, home[read]) == 1) {
                                last[home[read]] = last[write];
                                home[write] = home[read];
                                break;
                            }
                        }
                    }
                }
            }
        }
        return home;
    }

    private static boolean sameSteps(Layout read, Layout write) {
        return read.dtype().bytes() == write.dtype().bytes()
                && read.shape().equals(write.shape())
                && read.strides().equals(write.strides())
                && read.offset() == write.offset();
    }

    private static int uses(List<Place> places, int[] home, int buffer) {
        int uses = 0;
        for (Place place : places) {
            if (place instanceof Place.Planned planned && home[planned.id()] == buffer) {
                uses++;
            }
        }
        return uses;
    }
}
