package ingot.train;

import ingot.compiler.Backend;
import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;

/// The backend of this module's tests: one for all, so that equal kernels are generated once.
final class Backends {
    private static final Backend TESTED = new CpuBackend(new TilePool(2));

    private static final Backend BACKGROUND = TESTED.background();

    private Backends() {}

    static Backend tested() {
        return TESTED;
    }

    static Backend background() {
        return BACKGROUND;
    }
}
