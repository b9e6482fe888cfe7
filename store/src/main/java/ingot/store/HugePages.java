package ingot.store;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;

/// Large pieces of memory in pages of 2 MiB, where the system has them: fewer misses of the TLB in kernels, and a
/// direct transfer holds two pages instead of hundreds.
///
/// Linux only: mmap(2) and madvise(2) with MADV_HUGEPAGE, before anybody touches the memory. Elsewhere, and for small
/// pieces, it is the arena's own memory.
public final class HugePages {
    private static final long SIZE = 2 << 20;
    private static final int READ_WRITE = 3;
    private static final int PRIVATE_ANONYMOUS = 0x22;
    private static final int ADVICE = 14;
    private static final long FAILED = -1;

    /// The system's calls, or null where it has none.
    private static final @Nullable HugePages SYSTEM = find();

    private final MethodHandle map;
    private final MethodHandle unmap;
    private final MethodHandle advise;

    private HugePages(MethodHandle map, MethodHandle unmap, MethodHandle advise) {
        this.map = map;
        this.unmap = unmap;
        this.advise = advise;
    }

    private static @Nullable HugePages find() {
        if (!System.getProperty("os.name", "").equals("Linux") || ValueLayout.ADDRESS.byteSize() != Long.BYTES) {
            return null;
        }
        try {
            Linker linker = Linker.nativeLinker();
            SymbolLookup symbols = linker.defaultLookup();
            // void *mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
            FunctionDescriptor map = FunctionDescriptor.of(
                    ValueLayout.JAVA_LONG,
                    ValueLayout.JAVA_LONG,
                    ValueLayout.JAVA_LONG,
                    ValueLayout.JAVA_INT,
                    ValueLayout.JAVA_INT,
                    ValueLayout.JAVA_INT,
                    ValueLayout.JAVA_LONG);
            // int munmap(void *addr, size_t length)
            FunctionDescriptor unmap =
                    FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG);
            // int madvise(void *addr, size_t length, int advice)
            FunctionDescriptor advise = FunctionDescriptor.of(
                    ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT);
            return new HugePages(
                    linker.downcallHandle(symbols.findOrThrow("mmap"), map),
                    linker.downcallHandle(symbols.findOrThrow("munmap"), unmap),
                    linker.downcallHandle(symbols.findOrThrow("madvise"), advise));
        } catch (IllegalCallerException | java.util.NoSuchElementException e) {
            return null; // native access is forbidden
        }
    }

    /// Zeros, at a multiple of 4 KiB at least, until the arena is closed.
    public static MemorySegment allocate(Arena arena, long bytes) {
        @Nullable MemorySegment huge = SYSTEM == null || bytes < SIZE ? null : SYSTEM.map(arena, bytes);
        return huge == null ? arena.allocate(bytes, Storage.BLOCK) : huge;
    }

    private @Nullable MemorySegment map(Arena arena, long bytes) {
        long length = Storage.roundUp(bytes) + SIZE;
        try {
            long start = (long) map.invokeExact(0L, length, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0L);
            if (start == FAILED) {
                return null;
            }
            long first = (start + SIZE - 1) & -SIZE;
            // the last, incomplete page stays small: what nobody uses takes no memory
            int _ = (int) advise.invokeExact(first, bytes & -SIZE, ADVICE);
            return MemorySegment.ofAddress(first).reinterpret(bytes, arena, segment -> unmap(start, length));
        } catch (Throwable e) {
            throw new IllegalStateException("mmap", e);
        }
    }

    private void unmap(long start, long length) {
        try {
            int _ = (int) unmap.invokeExact(start, length);
        } catch (Throwable e) {
            throw new IllegalStateException("munmap", e);
        }
    }
}
