package ingot.train;

import ingot.runtime.Visit;
import ingot.runtime.WindowPlan;
import ingot.store.WeightStore.Key;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.ToLongFunction;

/// Bytes that a step moves between disk and memory, in its forward and in its backward.
///
/// @param late bytes of the weights whose update may be written in the backward instead of the forward
/// @param moments arrays of the optimizer per weight
public record Traffic(
        long forwardRead, long forwardWritten, long backwardRead, long backwardWritten, long late, int moments) {

    /// What a plan moves if all updates are written in the forward.
    ///
    /// @param arriving bytes that are read for one stay of a weight
    static Traffic of(
            WindowPlan window,
            List<Visit> visits,
            List<String> moments,
            long spilled,
            ToLongFunction<WindowPlan.Stay> arriving) {
        long forwardRead = 0;
        long backwardRead = spilled;
        long backwardWritten = 0;
        long late = 0;
        Set<Key> seen = new HashSet<>();
        Set<String> trained = new HashSet<>();
        visits.forEach(visit -> trained.addAll(visit.stage().owns()));
        for (WindowPlan.Stay stay : window.stays()) {
            if (stay.key().part().equals(Key.WEIGHT)) {
                if (stay.first() <= visits.size() / 2) {
                    forwardRead += arriving.applyAsLong(stay);
                } else {
                    backwardRead += arriving.applyAsLong(stay);
                    boolean again = seen.contains(stay.key())
                            && trained.contains(stay.key().tensor());
                    late += again ? stay.bytes() : 0;
                }
                seen.add(stay.key());
            }
        }
        long forwardWritten = spilled;
        for (Visit visit : visits) {
            for (Visit.Touch touch : visit.touches()) {
                Key key = touch.key();
                if (key.part().equals(Key.GRADIENT)) {
                    backwardWritten += touch.bytes();
                } else if (visit.updates() && visit.stage().owns().contains(key.tensor())) {
                    forwardWritten += touch.bytes() * (1 + moments.size());
                    forwardRead += window.pinned().containsKey(Key.gradient(key.tensor())) ? 0 : touch.bytes();
                    for (String moment : moments) {
                        forwardRead += window.pinned().containsKey(new Key(key.tensor(), moment)) ? 0 : touch.bytes();
                    }
                }
            }
        }
        return new Traffic(forwardRead, forwardWritten, backwardRead, backwardWritten, late, moments.size());
    }

    /// The same with a part of the late weights' updates written in the backward.
    public Traffic later(double part) {
        long bytes = (long) (part * late * (1 + moments));
        return new Traffic(
                forwardRead, forwardWritten - bytes, backwardRead + bytes, backwardWritten + bytes, late, moments);
    }

    public long read() {
        return forwardRead + backwardRead;
    }

    public long written() {
        return forwardWritten + backwardWritten;
    }

    /// Seconds of a step whose forward computes for `forward` seconds and whose backward for `backward` seconds, with a
    /// disk that moves `rate` bytes per second: each half takes as long as the slower of the two.
    public double seconds(double forward, double backward, double rate) {
        return Math.max(forward, (forwardRead + forwardWritten) / rate)
                + Math.max(backward, (backwardRead + backwardWritten) / rate);
    }
}
