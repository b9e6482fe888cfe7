package ingot.compiler;

import java.util.List;

/// A step over places that have no address yet.
sealed interface Draft {
    record Ready(Step step) implements Draft {}

    /// `places`: the kernel's reads, then its writes.
    record Run(Kernel kernel, List<Place> places) implements Draft {
        public Run {
            places = List.copyOf(places);
        }
    }

    record Reduce(Place left, Place right, long elements) implements Draft {}

    record Spill(Place from, long bytes, long position) implements Draft {}

    record Fetch(Place to, long bytes, long position) implements Draft {}

    record Await(Place memory, long position) implements Draft {}

    /// Where a value lies.
    sealed interface Place {
        /// A buffer of the caller, the store or the program.
        record Fixed(Buffer buffer, long byteOffset) implements Place {}

        /// Buffer `id` of those that are still to be planned.
        record Planned(int id, long byteOffset) implements Place {}

        default Place plus(long bytes) {
            return switch (this) {
                case Fixed fixed -> new Fixed(fixed.buffer(), fixed.byteOffset() + bytes);
                case Planned planned -> new Planned(planned.id(), planned.byteOffset() + bytes);
            };
        }
    }

    /// The places a step touches.
    default List<Place> touched() {
        return switch (this) {
            case Ready _ -> List.of();
            case Run run -> run.places();
            case Reduce reduce -> List.of(reduce.left(), reduce.right());
            case Spill spill -> List.of(spill.from());
            case Fetch fetch -> List.of(fetch.to());
            case Await await -> List.of(await.memory());
        };
    }
}
