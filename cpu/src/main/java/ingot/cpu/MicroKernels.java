package ingot.cpu;

import java.lang.foreign.Arena;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/// The micro-kernels of this process, one per tile, layout and start.
///
/// How HotSpot compiles a kernel depends on how it was first run: warmed by several threads at once, or inlined
/// halfway, one has been seen at a thirtieth of its speed. So [#warm] runs a kernel alone until it is compiled and
/// fast, and defines a slow one afresh.
final class MicroKernels {
    private record Key(int rows, int vectors, int lanes, MicroKernel.Layout layout, MicroKernel.Start start) {}

    private static final double SLOW = 0.25; // of the fma peak
    private static final long PATIENCE = 400_000_000; // CPU ns for one try
    private static final int WAIT_AFTER = 12; // batches of calls, by which time the kernel is queued for compilation
    private static final int TRIES = 3;
    private static final int STEPS = 32;
    private static final int CALLS = 64;

    private static final ConcurrentHashMap<Key, MicroKernel> KERNELS = new ConcurrentHashMap<>();
    private static final ConcurrentHashMap<Key, Boolean> WARM = new ConcurrentHashMap<>();
    private static final Set<Key> REQUESTED = ConcurrentHashMap.newKeySet();

    private MicroKernels() {}

    static MicroKernel of(Tiling tiling, MicroKernel.Layout layout, MicroKernel.Start start) {
        return KERNELS.computeIfAbsent(key(tiling, layout, start), MicroKernels::define);
    }

    private static Key key(Tiling tiling, MicroKernel.Layout layout, MicroKernel.Start start) {
        return new Key(tiling.rows(), tiling.vectors(), tiling.lanes(), layout, start);
    }

    /// The kernel if it is hot; else, for now, scalar code with the same bits, while the kernel is made hot in the
    /// background.
    static MicroKernel soon(Tiling tiling, MicroKernel.Layout layout, MicroKernel.Start start) {
        var key = key(tiling, layout, start);
        if (isHot(key)) {
            return of(tiling, layout, start);
        }
        if (REQUESTED.add(key)) {
            Background.run(() -> warm(tiling, layout, start));
        }
        return new ScalarKernel(key.rows, key.vectors * key.lanes, layout, start);
    }

    static boolean isHot(Tiling tiling, MicroKernel.Layout layout, MicroKernel.Start start) {
        return isHot(key(tiling, layout, start));
    }

    private static boolean isHot(Key key) {
        return key.lanes == 1 || WARM.containsKey(key);
    }

    private static MicroKernel define(Key key) {
        return key.lanes == 1
                ? new ScalarKernel(key.rows, key.vectors, key.layout, key.start)
                : MicroKernelCode.define(key.rows, key.vectors, key.lanes, key.layout, key.start);
    }

    /// Runs the kernel until it is fast; false if it never becomes so. Plans made before keep the kernel they have.
    static boolean warm(Tiling tiling, MicroKernel.Layout layout, MicroKernel.Start start) {
        return tiling.lanes() == 1 || WARM.computeIfAbsent(key(tiling, layout, start), MicroKernels::compile);
    }

    /// Checks a kernel again that [#warm] found fast.
    static boolean warmAgain(Tiling tiling, MicroKernel.Layout layout, MicroKernel.Start start) {
        WARM.remove(key(tiling, layout, start));
        return warm(tiling, layout, start);
    }

    private static boolean compile(Key key) {
        try (var arena = Arena.ofConfined()) {
            int columns = key.vectors * key.lanes;
            long a = floats(arena, key.rows * STEPS);
            long b = floats(arena, columns * STEPS);
            long c = floats(arena, key.rows * columns);
            long aStride = key.layout == MicroKernel.Layout.ROWS ? 4L * STEPS : 4L * key.rows;
            double enough = SLOW * Peaks.fmaOfOneThread();
            double flops = 2.0 * key.rows * columns * STEPS * CALLS;
            for (int attempt = 0; attempt < TRIES; attempt++) {
                if (attempt > 0) {
                    KERNELS.put(key, define(key));
                }
                var kernel = KERNELS.computeIfAbsent(key, MicroKernels::define);
                int fast = 0;
                long spent = 0;
                for (int batch = 0; spent < PATIENCE && batch < 1000; batch++) {
                    if (batch > WAIT_AFTER && fast == 0) {
                        LockSupport.parkNanos(2_000_000); // leaves the core to the compiler
                    }
                    long start = CpuClock.now();
                    for (int i = 0; i < CALLS; i++) {
                        kernel.run(a, aStride, b, 4L * columns, c, 4L * columns, STEPS);
                    }
                    long time = CpuClock.now() - start;
                    spent += time;
                    fast = flops / time >= enough ? fast + 1 : 0;
                    if (fast == 3) {
                        return true;
                    }
                }
            }
            return false;
        }
    }

    private static long floats(Arena arena, int count) {
        return arena.allocate(4L * count, 64).address();
    }
}
