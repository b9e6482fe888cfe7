package ingot.store;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;

/// Files that are either old or new after a crash, never half: write beside, flush, rename, flush the folder.
public final class Durable {
    private Durable() {}

    /// Replaces a file's content atomically.
    public static void write(Path path, String content) throws IOException {
        Path partial = path.resolveSibling(path.getFileName() + ".partial");
        try (FileChannel out = FileChannel.open(
                partial, StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.TRUNCATE_EXISTING)) {
            var bytes = StandardCharsets.UTF_8.encode(content);
            while (bytes.hasRemaining()) {
                out.write(bytes);
            }
            out.force(true);
        }
        Files.move(partial, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        flushFolderOf(path);
    }

    /// Flushes the entries of a file's folder, so that a rename survives a power cut.
    static void flushFolderOf(Path file) throws IOException {
        Path folder = file.toAbsolutePath().getParent();
        if (folder != null) {
            flush(folder);
        }
    }

    /// Flushes a folder's entries.
    public static void flush(Path folder) throws IOException {
        try (FileChannel channel = FileChannel.open(folder, StandardOpenOption.READ)) {
            channel.force(true);
        }
    }
}
