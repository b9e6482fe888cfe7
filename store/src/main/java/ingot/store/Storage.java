package ingot.store;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.function.LongConsumer;

/// A device that keeps bytes at positions: what lies below a store on disk. Used by several threads at once.
///
/// Positions, sizes and memory addresses of transfers are multiples of 4 KiB.
public interface Storage extends AutoCloseable {
    /// Bytes of a block.
    int BLOCK = 4096;

    /// Bytes of the blocks that so many bytes take.
    static long roundUp(long bytes) {
        return (bytes + BLOCK - 1) & -BLOCK;
    }

    /// Reads as many bytes as it likes; their number, or -1 behind the end.
    int read(long position, MemorySegment into) throws IOException;

    /// Writes as many bytes as it likes; their number. They are safe after the next `flush`, not before.
    int write(long position, MemorySegment from) throws IOException;

    /// Returns when everything written before is on the medium.
    void flush() throws IOException;

    /// Makes the device `bytes` long and reserves the room, so that no later write can find it full; `progress` learns
    /// how many bytes are reserved.
    void allocate(long bytes, LongConsumer progress) throws IOException;

    long size() throws IOException;

    @Override
    void close() throws IOException;

    /// Finds the device of a file.
    interface Opener {
        /// Files with direct access where the file system has it; `note` learns where it has not.
        static Opener files(java.util.function.Consumer<String> note) {
            return new FileStorage.Files(note);
        }

        /// Opens a file for reading and writing; makes it when `create` is set and it is missing.
        Storage open(Path file, boolean create) throws IOException;

        boolean exists(Path file);

        void delete(Path file) throws IOException;

        /// Bytes a folder's disk has free for us.
        long freeBytes(Path folder) throws IOException;
    }
}
