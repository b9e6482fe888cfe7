package ingot.train;

import ingot.data.Nearest;
import ingot.ir.IngotException;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.TreeSet;

/// The classes of examples, in the order of the model's outputs.
record Labels(List<String> names) {
    Labels {
        names = List.copyOf(names);
        if (names.stream().distinct().count() < names.size()) {
            throw new IngotException("labels: two are the same among " + String.join(", ", names));
        }
    }

    /// Those that are said, else those that are found: numbers by size, names by the alphabet.
    static Labels of(Collection<String> said, Collection<String> found) {
        if (!said.isEmpty()) {
            return new Labels(List.copyOf(said));
        }
        TreeSet<String> distinct = new TreeSet<>(found);
        boolean numbers = distinct.stream().allMatch(name -> name.matches("-?\\d{1,9}"));
        Comparator<String> order =
                numbers ? Comparator.comparingInt(Integer::parseInt) : Comparator.<String>naturalOrder();
        return new Labels(distinct.stream().sorted(order).toList());
    }

    int size() {
        return names.size();
    }

    /// The number of a label; `where` is the example that has it.
    int index(String name, String where) {
        int index = names.indexOf(name);
        if (index < 0) {
            throw new IngotException(where + ": the label '" + name + "' is none of " + String.join(", ", names)
                    + Nearest.close(name, names)
                            .map(near -> "; did you mean " + near + "?")
                            .orElse("")
                    + " (data.labels says which there are)");
        }
        return index;
    }
}
