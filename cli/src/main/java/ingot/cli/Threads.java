package ingot.cli;

import ingot.ir.IngotException;

/// How many threads compute.
final class Threads {
    private static final int MOST = 1024;

    private Threads() {}

    /// 0: one per core that this process may use.
    static int of(int wanted) {
        if (wanted < 0 || wanted > MOST) {
            throw new IngotException("threads expected 0 (one per core) to " + MOST + ", got " + wanted);
        }
        return wanted == 0 ? Runtime.getRuntime().availableProcessors() : wanted;
    }
}
