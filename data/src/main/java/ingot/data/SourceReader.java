package ingot.data;

import ingot.ir.IngotException;
import java.io.ByteArrayInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemLoopException;
import java.nio.file.FileVisitOption;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.zip.GZIPInputStream;
import java.util.zip.ZipException;
import java.util.zip.ZipInputStream;

/// Collects the documents of one source: a file, a folder, or an archive (zip, jar, tar, gz, tgz), also nested.
///
/// An entry of an archive inside a folder is named `folder/archive.jar!/entry`. Without globs every text file
/// counts: one that has a zero byte near its start is binary and is left out.
final class SourceReader {
    private static final int SNIFFED = 8000; // as Git does

    private final String source;
    private final List<String> include;
    private final List<Glob> globs;
    private final List<Document> documents = new ArrayList<>();
    private final List<String> passedOver = new ArrayList<>();
    private int files;

    private SourceReader(String source, List<String> include) {
        this.source = source;
        this.include = List.copyOf(include);
        this.globs = include.stream().map(Glob::of).toList();
    }

    /// The documents below `root` that pass the globs; `source` is what the user wrote, for messages.
    static List<Document> read(String source, Path root, List<String> include) {
        var reader = new SourceReader(source, include);
        if (Files.isDirectory(root)) {
            reader.folder(root);
        } else if (isArchive(root.toString())) {
            reader.archive("", root.getFileName().toString(), reader.bytesOf(root, root.toString()));
        } else {
            reader.document(root.getFileName().toString(), reader.bytesOf(root, root.toString()));
        }
        return reader.result();
    }

    private List<Document> result() {
        documents.sort(Comparator.comparing(Document::name));
        if (!documents.isEmpty()) return List.copyOf(documents);
        if (files == 0) throw new IngotException(source + ": there is no file in it");
        if (include.isEmpty() || passedOver.isEmpty()) {
            throw new IngotException(source + ": no text in " + files + " files (empty and binary files do not count); "
                    + "name the wanted ones with a glob such as **/*.txt");
        }
        var shape = include.getFirst().substring(include.getFirst().lastIndexOf('/') + 1);
        var nearest = passedOver.stream()
                .min(Comparator.comparingInt((String n) -> Nearest.distance(shape, n.substring(n.lastIndexOf('/') + 1)))
                        .thenComparing(n -> n))
                .orElseThrow();
        throw new IngotException("%s: no file matches %s; %d files are there (%s), the nearest name is %s"
                .formatted(source, String.join(", ", include), files, extensions(), nearest));
    }

    /// The most frequent extensions: `.java 240, .html 7`.
    private String extensions() {
        Map<String, Long> counts = passedOver.stream()
                .collect(Collectors.groupingBy(SourceReader::extension, TreeMap::new, Collectors.counting()));
        return counts.entrySet().stream()
                .sorted(Map.Entry.<String, Long>comparingByValue().reversed())
                .limit(5)
                .map(e -> e.getKey() + " " + e.getValue())
                .collect(Collectors.joining(", "));
    }

    private static String extension(String name) {
        int dot = name.lastIndexOf('.');
        return dot > name.lastIndexOf('/') ? name.substring(dot) : "no extension";
    }

    private void folder(Path root) {
        try {
            Files.walkFileTree(
                    root, EnumSet.of(FileVisitOption.FOLLOW_LINKS), Integer.MAX_VALUE, new SimpleFileVisitor<>() {
                        @Override
                        public FileVisitResult preVisitDirectory(Path dir, BasicFileAttributes attributes) {
                            boolean hidden = !dir.equals(root)
                                    && dir.getFileName().toString().startsWith(".");
                            return hidden ? FileVisitResult.SKIP_SUBTREE : FileVisitResult.CONTINUE;
                        }

                        @Override
                        public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
                            if (attributes.isOther()) return FileVisitResult.CONTINUE;
                            var name = relative(root, file);
                            if (isArchive(name)) {
                                archive(name, name, bytesOf(file, source + ": " + name));
                            } else if (wanted(name)) {
                                document(name, bytesOf(file, source + ": " + name));
                            }
                            return FileVisitResult.CONTINUE;
                        }

                        @Override
                        public FileVisitResult visitFileFailed(Path file, IOException failure) {
                            var name = relative(root, file);
                            if (Glob.accepts(globs, name)) throw unreadable(source + ": " + name, failure);
                            return FileVisitResult.CONTINUE;
                        }
                    });
        } catch (IOException e) {
            throw unreadable(source, e);
        }
    }

    private static String relative(Path root, Path file) {
        return root.relativize(file).toString().replace(file.getFileSystem().getSeparator(), "/");
    }

    private boolean wanted(String name) {
        files++;
        if (Glob.accepts(globs, name.replace("!/", "/"))) return true;
        passedOver.add(name);
        return false;
    }

    private void document(String name, byte[] bytes) {
        files = Math.max(files, 1);
        if (bytes.length == 0 || (globs.isEmpty() && isBinary(bytes))) return;
        documents.add(Utf8.document(name, bytes));
    }

    private static boolean isBinary(byte[] bytes) {
        for (int i = 0; i < Math.min(bytes.length, SNIFFED); i++) {
            if (bytes[i] == 0) return true;
        }
        return false;
    }

    private static boolean isArchive(String name) {
        var lower = name.toLowerCase(Locale.ROOT);
        return lower.endsWith(".zip")
                || lower.endsWith(".jar")
                || lower.endsWith(".gz")
                || lower.endsWith(".tgz")
                || lower.endsWith(".tar");
    }

    /// Reads the entries of the archive `file`; `name` is what their names begin with (empty: nothing).
    private void archive(String name, String file, byte[] bytes) {
        var prefix = name.isEmpty() ? "" : name + "!/";
        var lower = file.toLowerCase(Locale.ROOT);
        try {
            if (lower.endsWith(".tar")) {
                tar(prefix, new ByteArrayInputStream(bytes));
            } else if (lower.endsWith(".tgz") || lower.endsWith(".tar.gz")) {
                tar(prefix, new GZIPInputStream(new ByteArrayInputStream(bytes)));
            } else if (lower.endsWith(".gz")) {
                gzip(name.isEmpty() ? file : name, bytes);
            } else {
                zip(prefix, bytes);
            }
        } catch (IOException e) {
            var inner = name.isEmpty() || name.equals(source) ? "" : " " + name;
            throw new IngotException(
                    source + ": the archive" + inner + " is damaged (" + reason(e) + "); delete it and fetch it again",
                    e);
        }
    }

    /// Streams the entries, each checked against its CRC, and compares their number with the directory at the end:
    /// a download that was cut off between two entries has none.
    private void zip(String prefix, byte[] bytes) throws IOException {
        int listed = listedEntries(bytes);
        int found = 0;
        try (var zip = new ZipInputStream(new ByteArrayInputStream(bytes))) {
            for (var entry = zip.getNextEntry(); entry != null; entry = zip.getNextEntry()) {
                found++;
                if (entry.isDirectory()) continue;
                var name = prefix + entry.getName();
                if (isArchive(name) || wanted(name)) entry(name, zip.readAllBytes());
            }
        } catch (IllegalArgumentException malformedName) {
            throw new ZipException("a name is not in UTF-8");
        }
        if (found != listed && listed != 0xFFFF) {
            throw new ZipException(found + " of " + listed + " entries are there");
        }
    }

    /// Entries according to the end of the central directory: `PK 05 06`, then at 10 their number, little-endian.
    private static int listedEntries(byte[] zip) throws ZipException {
        for (int at = zip.length - 22; at >= Math.max(0, zip.length - 22 - 0xFFFF); at--) {
            if (zip[at] == 'P' && zip[at + 1] == 'K' && zip[at + 2] == 5 && zip[at + 3] == 6) {
                return zip[at + 10] & 0xFF | (zip[at + 11] & 0xFF) << 8;
            }
        }
        throw new ZipException("it has no directory at its end");
    }

    private void tar(String prefix, InputStream in) throws IOException {
        Tar.read(in, (entry, content) -> {
            var name = prefix + entry;
            if (isArchive(name) || wanted(name)) entry(name, content.bytes());
        });
    }

    private void entry(String name, byte[] bytes) {
        if (isArchive(name)) {
            archive(name, name, bytes);
        } else {
            document(name, bytes);
        }
    }

    /// `notes.txt.gz` is the document `notes.txt`; globs see that name.
    private void gzip(String name, byte[] bytes) throws IOException {
        var inner = name.substring(0, name.length() - ".gz".length());
        if (!isArchive(inner) && !wanted(inner)) return;
        try (var in = new GZIPInputStream(new ByteArrayInputStream(bytes))) {
            entry(inner, in.readAllBytes());
        }
    }

    private byte[] bytesOf(Path file, String where) {
        try {
            long size = Files.size(file);
            if (size > Integer.MAX_VALUE - 16) {
                throw new IngotException(where + ": " + size + " bytes; one file may have up to 2 GiB, split it");
            }
            return Files.readAllBytes(file);
        } catch (IOException e) {
            throw unreadable(where, e);
        }
    }

    private static IngotException unreadable(String where, IOException e) {
        return new IngotException(where + ": cannot be read (" + reason(e) + ")", e);
    }

    static String reason(IOException e) {
        return switch (e) {
            case NoSuchFileException missing -> "no such file";
            case AccessDeniedException denied -> "permission denied";
            case FileSystemLoopException loop -> "a link leads back to its own folder";
            case EOFException end -> "it ends too early";
            default -> e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
        };
    }
}
