package ingot.store;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import java.nio.file.Path;

/// Linux `fallocate`: reserves the blocks of a file in milliseconds, where writing zeros takes minutes.
final class Fallocate {
    private static final int READ_WRITE = 2;
    private static final int NO_SPACE = 28;
    private static final int QUOTA = 122;

    private Fallocate() {}

    /// Reserves all blocks of an existing file and makes it `bytes` long; false where the system cannot.
    static boolean reserve(Path file, long bytes) throws IOException {
        if (!System.getProperty("os.name").equals("Linux") || ValueLayout.ADDRESS.byteSize() != Long.BYTES) {
            return false;
        }
        int error;
        try {
            error = call(file, bytes);
        } catch (IllegalCallerException e) {
            return false; // native access is forbidden
        } catch (Throwable e) {
            throw new IOException("fallocate cannot be called: " + e, e);
        }
        if (error == NO_SPACE || error == QUOTA) {
            throw new IOException("no space left on the disk for " + bytes + " bytes");
        }
        return error == 0;
    }

    /// The error number of the system, or 0.
    private static int call(Path file, long bytes) throws Throwable {
        Linker linker = Linker.nativeLinker();
        SymbolLookup symbols = linker.defaultLookup();
        var open = symbols.find("open");
        var allocate = symbols.find("fallocate");
        var close = symbols.find("close");
        if (open.isEmpty() || allocate.isEmpty() || close.isEmpty()) {
            return -1;
        }
        MemoryLayout stateLayout = Linker.Option.captureStateLayout();
        VarHandle errno = stateLayout.varHandle(MemoryLayout.PathElement.groupElement("errno"));
        Linker.Option capture = Linker.Option.captureCallState("errno");
        // int open(const char *path, int flags, ...)
        MethodHandle openFile = linker.downcallHandle(
                open.get(),
                FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT),
                capture,
                Linker.Option.firstVariadicArg(2));
        // int fallocate(int fd, int mode, off_t offset, off_t len)
        MethodHandle allocateFile = linker.downcallHandle(
                allocate.get(),
                FunctionDescriptor.of(
                        ValueLayout.JAVA_INT,
                        ValueLayout.JAVA_INT,
                        ValueLayout.JAVA_INT,
                        ValueLayout.JAVA_LONG,
                        ValueLayout.JAVA_LONG),
                capture);
        MethodHandle closeFile = linker.downcallHandle(
                close.get(), FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT), capture);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(stateLayout);
            int descriptor = (int) openFile.invokeExact(state, arena.allocateFrom(file.toString()), READ_WRITE);
            if (descriptor < 0) {
                return (int) errno.get(state, 0L);
            }
            int result = (int) allocateFile.invokeExact(state, descriptor, 0, 0L, bytes);
            int error = result == 0 ? 0 : (int) errno.get(state, 0L);
            int closed = (int) closeFile.invokeExact(state, descriptor);
            return error != 0 || closed == 0 ? error : (int) errno.get(state, 0L);
        }
    }
}
