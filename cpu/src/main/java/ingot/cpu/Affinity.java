package ingot.cpu;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// Which processor a worker runs on: each its own, where a pool has as many workers as the process has processors.
///
/// Left alone, the scheduler of a machine that was idle wakes two workers on one processor more often than not, and
/// moves them apart milliseconds later. Linux only (sched_setaffinity(2)); elsewhere, or where the system refuses,
/// threads stay where the system puts them. Threads that a pinned thread starts are pinned too, so those call
/// [#release] first.
final class Affinity {
    private static final int MASK_BYTES = 1024; // 8,192 processors
    private static final long ANY = 0; // the calling thread

    /// The processors of this process as the system gave them, or null where threads cannot be pinned.
    private static final @Nullable Affinity MACHINE =
            System.getProperty("ingot.pin", "on").equals("off") ? null : find();

    private final MethodHandle set;
    private final MemorySegment all;
    private final int[] processors;

    private Affinity(MethodHandle set, MemorySegment all, int[] processors) {
        this.set = set;
        this.all = all;
        this.processors = processors;
    }

    private static @Nullable Affinity find() {
        if (!System.getProperty("os.name", "").equals("Linux")) {
            return null;
        }
        Linker linker = Linker.nativeLinker();
        var type = FunctionDescriptor.of(
                ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.ADDRESS);
        var get = linker.defaultLookup().find("sched_getaffinity").map(at -> linker.downcallHandle(at, type));
        var set = linker.defaultLookup().find("sched_setaffinity").map(at -> linker.downcallHandle(at, type));
        if (get.isEmpty() || set.isEmpty()) {
            return null;
        }
        MemorySegment mask = Arena.global().allocate(MASK_BYTES, 8);
        if (call(get.get(), mask) != 0) {
            return null;
        }
        int[] processors = new int[8 * MASK_BYTES];
        int count = 0;
        for (int bit = 0; bit < 8 * MASK_BYTES; bit++) {
            if ((mask.get(ValueLayout.JAVA_BYTE, bit / 8) >> (bit % 8) & 1) != 0) {
                processors[count++] = bit;
            }
        }
        return new Affinity(set.get(), mask, Arrays.copyOf(processors, count));
    }

    private static int call(MethodHandle function, MemorySegment mask) {
        try {
            return (int) function.invokeExact((int) ANY, mask.byteSize(), mask);
        } catch (Throwable e) {
            throw new IllegalStateException("affinity", e);
        }
    }

    /// One for a pool of `workers`, or null if its workers shall not be pinned: with fewer of them than processors (or
    /// a quota that allows fewer) the system has better places for them than we could know.
    static @Nullable Affinity of(int workers) {
        boolean whole = MACHINE != null
                && workers > 1
                && MACHINE.processors.length == workers
                && Runtime.getRuntime().availableProcessors() == workers;
        return whole ? MACHINE : null;
    }

    /// Keeps the calling thread on the processor of a worker. Processes begin to count at different processors, so that
    /// the first workers of two do not meet.
    void pin(int worker) {
        int processor = processors[(int) ((worker + ProcessHandle.current().pid()) % processors.length)];
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment mask = arena.allocate(MASK_BYTES, 8);
            mask.set(ValueLayout.JAVA_BYTE, processor / 8, (byte) (1 << processor % 8));
            var _ = call(set, mask);
        }
    }

    /// Lets the calling thread run on any processor of the process again.
    static void release() {
        if (MACHINE != null) {
            var _ = call(MACHINE.set, MACHINE.all);
        }
    }

    /// The number of processors the calling thread may run on; 0 if unknown.
    static int allowed() {
        if (MACHINE == null) {
            return 0;
        }
        @Nullable Affinity now = find();
        return now == null ? 0 : now.processors.length;
    }
}
