package ingot.store;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/// Another process that holds the lock of a store until its input ends; it knows nothing but the file.
final class LockHolder {
    private LockHolder() {}

    public static void main(String[] args) throws IOException {
        try (FileChannel channel = FileChannel.open(
                Path.of(args[0]), StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.READ)) {
            channel.lock();
            channel.truncate(0);
            channel.write(
                    ByteBuffer.wrap("pid 4711 on host elsewhere since yesterday\n".getBytes(StandardCharsets.UTF_8)));
            System.out.println("locked");
            System.out.flush();
            while (System.in.read() >= 0) {}
        }
    }
}
