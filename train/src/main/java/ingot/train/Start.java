package ingot.train;

import ingot.data.Nearest;
import ingot.ir.IngotException;
import ingot.nn.Parameter;
import ingot.store.BaseWeights;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Where weights begin, and which of them stay as they begin.
///
/// A frozen weight has no gradient, no moments and no update: nothing about it is stored, it is read from its base
/// whenever it is needed.
///
/// @param base files with first values; where it has none for a weight, or is null, the seed decides them
/// @param frozen names of the weights that stay
public record Start(@Nullable BaseWeights base, Set<String> frozen) {
    /// All weights begin at random and learn.
    public static final Start SEEDED = new Start(null, Set.of());

    public Start {
        frozen = Set.copyOf(frozen);
    }

    /// The start of a model: its base has every weight, and patterns say what is frozen.
    ///
    /// In a pattern `*` is any part of a name, also across dots, and `?` one character: `h.*`, `*.ln_?.weight`. A
    /// pattern that begins with `!` takes names out again; the last pattern that fits a name decides. A leading
    /// `transformer.` of names may be left out.
    static Start of(List<Parameter> parameters, @Nullable BaseWeights base, List<String> patterns) {
        if (base != null) {
            parameters.forEach(parameter -> base.check(parameter.name(), parameter.type()));
        }
        return grown(parameters, base, patterns);
    }

    /// The same for a model that may have more weights than its base: a new head.
    static Start grown(List<Parameter> parameters, @Nullable BaseWeights base, List<String> patterns) {
        Set<String> frozen = frozen(parameters.stream().map(Parameter::name).toList(), patterns);
        if (frozen.size() == parameters.size()) {
            throw new IngotException("train.freeze: " + String.join(", ", patterns) + " freezes all "
                    + parameters.size() + " weights, so there is nothing to train; take some out, such as !ln_f.*");
        }
        return new Start(base, frozen);
    }

    static Set<String> frozen(List<String> names, List<String> patterns) {
        Set<String> frozen = new HashSet<>();
        for (String text : patterns) {
            boolean out = text.startsWith("!");
            Pattern pattern = pattern(out ? text.substring(1) : text);
            List<String> found = new ArrayList<>(names);
            found.removeIf(name -> !pattern.matcher(name).matches()
                    && !pattern.matcher(plain(name)).matches());
            if (found.isEmpty()) {
                throw new IngotException("train.freeze: the pattern " + text + " fits none of the " + names.size()
                        + " weights" + suggestion(text, names) + "; they are called "
                        + names.stream().limit(4).map(Start::plain).collect(Collectors.joining(", "))
                        + (names.size() > 4 ? ", …" : ""));
            }
            if (out) {
                found.forEach(frozen::remove);
            } else {
                frozen.addAll(found);
            }
        }
        return frozen;
    }

    private static String suggestion(String text, List<String> names) {
        return Nearest.close(text, names.stream().map(Start::plain).toList())
                .map(name -> ", did you mean " + name + "?")
                .orElse("");
    }

    private static String plain(String name) {
        return name.startsWith("transformer.") ? name.substring("transformer.".length()) : name;
    }

    private static Pattern pattern(String text) {
        return Pattern.compile(text.chars()
                .mapToObj(c -> c == '*' ? ".*" : c == '?' ? "." : Pattern.quote(Character.toString(c)))
                .collect(Collectors.joining()));
    }

    /// The parameters that learn.
    List<Parameter> trained(List<Parameter> parameters) {
        return parameters.stream()
                .filter(parameter -> !frozen.contains(parameter.name()))
                .toList();
    }
}
