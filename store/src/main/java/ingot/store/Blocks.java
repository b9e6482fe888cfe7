package ingot.store;

import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;

/// Whole 4 KiB blocks over a storage: a short transfer is continued at the block where it stopped.
final class Blocks {
    static final int SIZE = Storage.BLOCK;

    private static final int IDLE_LIMIT = 16;

    private Blocks() {}

    static void read(Storage storage, long position, MemorySegment into) throws IOException {
        int idle = 0;
        for (long done = 0; done < into.byteSize(); ) {
            int n = storage.read(position + done, into.asSlice(done));
            if (n < 0) {
                throw new EOFException("the file ends before byte " + (position + into.byteSize()));
            }
            idle = n < SIZE && done + n < into.byteSize() ? idle + 1 : 0;
            done = done + n == into.byteSize() ? done + n : (done + n) & -SIZE;
            checkProgress(idle, "read", position + done);
        }
    }

    static void write(Storage storage, long position, MemorySegment from) throws IOException {
        int idle = 0;
        for (long done = 0; done < from.byteSize(); ) {
            int n = storage.write(position + done, from.asSlice(done));
            idle = n < SIZE && done + n < from.byteSize() ? idle + 1 : 0;
            done = done + n == from.byteSize() ? done + n : (done + n) & -SIZE;
            checkProgress(idle, "write", position + done);
        }
    }

    private static void checkProgress(int idle, String what, long position) throws IOException {
        if (idle >= IDLE_LIMIT) {
            throw new IOException("the file system makes no progress: a " + what + " at byte " + position + " moved "
                    + "less than a block " + idle + " times in a row");
        }
    }
}
