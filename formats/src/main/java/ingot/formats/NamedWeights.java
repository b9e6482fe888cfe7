package ingot.formats;

import ingot.ir.IngotException;
import ingot.ir.Type;
import ingot.nn.Parameter;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedMap;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Weights of a folder under the names that the model has for them.
final class NamedWeights implements WeightSource {
    private final WeightSource files;
    private final SequencedMap<String, Type> types = new LinkedHashMap<>();
    private final Map<String, String> stored = new LinkedHashMap<>();
    private List<String> ignored = List.of();

    private NamedWeights(WeightSource files) {
        this.files = files;
    }

    /// Finds every parameter; says at once what is missing, of another shape, or left over.
    static NamedWeights of(Path folder, Architecture architecture, List<Parameter> parameters, WeightSource files) {
        NamedWeights weights = new NamedWeights(files);
        Map<String, Type> found = files.types();
        Set<String> left = new HashSet<>(found.keySet());
        List<String> missing = new ArrayList<>();
        List<String> misshaped = new ArrayList<>();
        for (Parameter parameter : parameters) {
            String name = stored(architecture, parameter.name(), found);
            Type type = name == null ? null : found.get(name);
            if (type == null) {
                missing.add(parameter.name() + " " + parameter.type());
            } else if (!type.equals(parameter.type())) {
                misshaped.add(name + " is " + type + " where config.json makes it " + parameter.type());
            }
            if (name != null) {
                left.remove(name);
                weights.stored.put(parameter.name(), name);
                weights.types.put(parameter.name(), parameter.type());
            }
        }
        List<String> unexpected = left.stream()
                .filter(name -> !architecture.ignores(name))
                .sorted()
                .toList();
        weights.ignored = left.stream().filter(architecture::ignores).sorted().toList();
        List<String> wrong = new ArrayList<>();
        note(wrong, missing, "missing");
        note(wrong, misshaped, "of another type");
        note(wrong, unexpected, "unexpected");
        if (!wrong.isEmpty()) {
            throw new IngotException(folder + ": the weights do not fit config.json (" + architecture.type() + "): "
                    + String.join("; ", wrong));
        }
        return weights;
    }

    private static void note(List<String> wrong, List<String> names, String what) {
        if (!names.isEmpty()) {
            wrong.add(names.size() + " " + what + ": " + Listing.of(names));
        }
    }

    /// The name in the file: as the model has it, without the prefix of the model's body, or with it; old BERT files
    /// call the two vectors of a norm gamma and beta.
    static @Nullable String stored(Architecture architecture, String name, Map<String, Type> found) {
        String prefix = architecture.prefix();
        String other = name.startsWith(prefix) ? name.substring(prefix.length()) : prefix + name;
        for (String candidate : List.of(name, other)) {
            String old = candidate
                    .replace("LayerNorm.weight", "LayerNorm.gamma")
                    .replace("LayerNorm.bias", "LayerNorm.beta");
            for (String spelled : List.of(candidate, old)) {
                if (found.containsKey(spelled)) {
                    return spelled;
                }
            }
        }
        return null;
    }

    @Override
    public SequencedMap<String, Type> types() {
        return new LinkedHashMap<>(types);
    }

    /// Tensors of the files that the model has no use for.
    List<String> ignored() {
        return ignored;
    }

    @Override
    public SequencedMap<String, Type> stored() {
        Map<String, Type> found = files.stored();
        SequencedMap<String, Type> types = new LinkedHashMap<>();
        stored.forEach((name, in) -> types.put(name, Objects.requireNonNull(found.get(in))));
        return types;
    }

    @Override
    public void read(String name, MemorySegment target) {
        if (!stored.containsKey(name)) {
            throw new IngotException("weights: the model has no weight " + name + "; it has " + stored.size());
        }
        files.read(Objects.requireNonNull(stored.get(name)), target);
    }

    @Override
    public void close() {
        files.close();
    }
}
