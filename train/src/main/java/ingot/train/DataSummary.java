package ingot.train;

import java.util.List;

/// What a run learns from, in numbers.
public sealed interface DataSummary {
    /// Text of a language model.
    ///
    /// @param trainTokens tokens of the training text
    /// @param heldOutBytes bytes of the held-out text
    record Text(int trainFiles, int heldOutFiles, long trainTokens, double bytesPerToken, long heldOutBytes)
            implements DataSummary {}

    /// Examples with what is expected of each.
    ///
    /// @param unit what an example is: `text`, `pair`, `image` …
    /// @param groups how many there are of each label; one group without a name where there are no labels
    /// @param size of one example, such as `128 tokens`
    /// @param cut examples that have that size at least: what was longer lost its end
    /// @param model what is trained, in words
    record Examples(String unit, List<Group> groups, String size, int cut, String model) implements DataSummary {
        public Examples {
            groups = List.copyOf(groups);
        }

        public int training() {
            return groups.stream().mapToInt(Group::training).sum();
        }

        public int heldOut() {
            return groups.stream().mapToInt(Group::heldOut).sum();
        }
    }

    /// Examples of one label.
    record Group(String label, int training, int heldOut) {}
}
