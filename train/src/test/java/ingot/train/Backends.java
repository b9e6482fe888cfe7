package ingot.train;

import ingot.compiler.Backend;
import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;

/// The backend of this module's tests.
final class Backends {
    private static final TilePool POOL = new TilePool(2);

    private Backends() {}

    static Backend tested() {
        return new CpuBackend(POOL);
    }
}
