package ingot.cli;

import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/// Another process that uses the store of a run, as far as its lock tells.
record StoreHolder(Process process) implements AutoCloseable {
    /// The process: holds the lock until its input ends.
    public static void main(String[] arguments) throws IOException {
        try (FileChannel channel =
                FileChannel.open(Path.of(arguments[0]), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
            channel.lock();
            channel.truncate(0);
            channel.write(ByteBuffer.wrap("pid 4711 on host elsewhere\n".getBytes(StandardCharsets.UTF_8)));
            System.out.write('\n');
            System.out.flush();
            while (System.in.read() >= 0) {}
        }
    }

    static StoreHolder hold(Path run) throws IOException {
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        String classes = Path.of(URI.create(
                        StoreHolder.class.getResource("StoreHolder.class").toString()))
                .getParent()
                .getParent()
                .getParent()
                .toString();
        String lock = run.resolve("store").resolve("store.lock").toString();
        Process process = new ProcessBuilder(java, "-Xshare:auto", "-cp", classes, StoreHolder.class.getName(), lock)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        StoreHolder holder = new StoreHolder(process);
        if (process.getInputStream().read() != '\n') {
            holder.close();
            throw new IOException("no process holds " + lock);
        }
        return holder;
    }

    @Override
    public void close() throws IOException {
        process.getOutputStream().close();
        process.destroy();
    }
}
