package ingot.runtime;

import ingot.store.WeightStore;
import java.util.ArrayList;
import java.util.List;

/// How the weights and gradients that a program needs come into memory, visit by visit.
///
/// The executor calls `begin`, then for every visit in order `load`, `stored` (training only) and `free`; whatever ends
/// a run early, it calls `abandon`.
public interface Residency extends AutoCloseable {
    /// A run of the program starts at its first visit.
    void begin();

    /// Waits until everything the visit touches is in memory; gives the addresses in the order of its touches. They
    /// hold until `free`.
    void load(Visit visit, long[] addresses);

    /// The gradients of the visit's stage are complete.
    void stored(Visit visit);

    /// The visit is over.
    void free(Visit visit);

    /// The run ended before its last visit: what is in memory is dropped, nothing is kept.
    void abandon();

    /// Ends what works for it; stores stay open.
    @Override
    void close();

    /// Everything is in memory anyway, pinned in a store.
    static Residency pinned(WeightStore store) {
        return new Pinned(store);
    }

    /// The arrays of a store, pinned from load to free.
    final class Pinned implements Residency {
        private final WeightStore store;
        private final List<Visit> open = new ArrayList<>();

        private Pinned(WeightStore store) {
            this.store = store;
        }

        @Override
        public void begin() {}

        @Override
        public void load(Visit visit, long[] addresses) {
            int pinned = 0;
            try {
                for (; pinned < addresses.length; pinned++) {
                    addresses[pinned] =
                            store.pin(visit.touches().get(pinned).key()).address();
                }
                open.add(visit);
            } finally {
                if (pinned < addresses.length) {
                    visit.touches().subList(0, pinned).forEach(touch -> store.release(touch.key(), false));
                }
            }
        }

        @Override
        public void stored(Visit visit) {}

        @Override
        public void free(Visit visit) {
            open.remove(visit);
            visit.touches().forEach(touch -> store.release(touch.key(), touch.written()));
        }

        @Override
        public void abandon() {
            for (Visit visit : open) {
                visit.touches().forEach(touch -> store.release(touch.key(), false));
            }
            open.clear();
        }

        @Override
        public void close() {}
    }
}
