package ingot.cli;

import ingot.data.Nearest;
import ingot.ir.IngotException;
import ingot.train.FineTuneConfig;
import ingot.train.RunConfig;
import ingot.train.RunSettings;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Finds and reads configurations.
final class ConfigFile {
    private ConfigFile() {}

    /// Reads a YAML file, or the ingot.yaml of a run folder; each override is `key.path=value`.
    static RunConfig read(String name, List<String> overrides) {
        return RunConfig.parse(text(find(name)), overrides);
    }

    /// The same for a run that has a `task`: texts or images.
    static RunSettings fineTuning(String name, List<String> overrides) {
        RunSettings settings = settings(name, overrides);
        // a run without a task is refused, with the tasks that there are
        return settings instanceof RunConfig ? FineTuneConfig.parse(text(find(name)), overrides) : settings;
    }

    /// The same for any run.
    static RunSettings settings(String name, List<String> overrides) {
        return RunSettings.parse(text(find(name)), overrides);
    }

    private static Path find(String name) {
        Path path = path(name);
        if (Files.isDirectory(path)) {
            Path inside = path.resolve("ingot.yaml");
            if (Files.exists(inside)) {
                return inside;
            }
            throw new IngotException(name + ": a folder without ingot.yaml; expected a configuration file (YAML) or the"
                    + " folder of a run" + suggestion(path, path.getFileName()));
        }
        if (Files.exists(path)) {
            return path;
        }
        if (name.contains("=")) {
            throw new IngotException("'" + name + "' stands where the configuration file belongs; write the file first:"
                    + " ingot train FILE.yaml " + name);
        }
        throw new IngotException(name + ": no such configuration file"
                + suggestion(Objects.requireNonNullElse(path.getParent(), Path.of("")), path.getFileName()));
    }

    static Path path(String name) {
        try {
            return Path.of(name);
        } catch (InvalidPathException e) {
            throw new IngotException("'" + name + "' is no path: " + e.getReason(), e);
        }
    }

    /// The folder of a run, which must be there.
    static Path folder(String run) {
        Path folder = path(run);
        if (!Files.exists(folder)) {
            throw new IngotException(
                    run + ": no such folder; expected the folder of a run, which `ingot train` prints");
        }
        return folder;
    }

    private static String text(Path file) {
        try {
            return Files.readString(file);
        } catch (AccessDeniedException e) {
            throw new IngotException(file + ": no permission to read it", e);
        } catch (CharacterCodingException e) {
            throw new IngotException(file + ": no UTF-8 text; expected a configuration file (YAML)", e);
        } catch (IOException e) {
            throw new IngotException(file + ": cannot be read: " + e.getMessage(), e);
        }
    }

    /// The YAML file of a folder with the nearest name, else one of the examples.
    private static String suggestion(Path folder, @Nullable Path name) {
        for (Path place : List.of(folder, Path.of("examples"))) {
            try (Stream<Path> files = Files.list(place)) {
                List<String> found = files.map(file -> file.getFileName().toString())
                        .filter(file -> file.matches(".*\\.ya?ml"))
                        .toList();
                Optional<String> nearest = Nearest.to(String.valueOf(name), found);
                if (nearest.isPresent()) {
                    return "; did you mean " + place.resolve(nearest.get()) + "?";
                }
            } catch (IOException e) {
                continue; // that folder is not there or cannot be listed
            }
        }
        return "";
    }
}
