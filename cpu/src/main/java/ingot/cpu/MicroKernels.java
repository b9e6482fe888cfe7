package ingot.cpu;

import java.util.concurrent.ConcurrentHashMap;

/// The micro-kernels of this process, one per tile, layout and start.
final class MicroKernels {
    private record Key(int rows, int vectors, int lanes, MicroKernel.Layout layout, MicroKernel.Start start) {}

    private static final ConcurrentHashMap<Key, MicroKernel> KERNELS = new ConcurrentHashMap<>();

    private MicroKernels() {}

    static MicroKernel of(Tiling tiling, MicroKernel.Layout layout, MicroKernel.Start start) {
        var key = new Key(tiling.rows(), tiling.vectors(), tiling.lanes(), layout, start);
        return KERNELS.computeIfAbsent(key, MicroKernels::define);
    }

    private static MicroKernel define(Key key) {
        return key.lanes == 1
                ? new ScalarKernel(key.rows, key.vectors, key.layout, key.start)
                : MicroKernelCode.define(key.rows, key.vectors, key.lanes, key.layout, key.start);
    }
}
