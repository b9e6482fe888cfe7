package ingot.cpu;

/// The workers of a backend: the pool that runs tiles, and a workspace for each worker.
final class Crew {
    /// Bytes a tile should move: large against the cost of claiming it, small against a second-level cache.
    private static final int TILE_BYTES = 1 << 16;

    /// A tile never has fewer elements than this, however many threads there are.
    private static final int LEAST = 2048;

    private final TilePool pool;
    private final Workspace[] workspaces;

    Crew(TilePool pool) {
        this.pool = pool;
        workspaces = new Workspace[pool.threads()];
        for (int w = 0; w < workspaces.length; w++) {
            workspaces[w] = new Workspace();
        }
    }

    TilePool pool() {
        return pool;
    }

    int threads() {
        return workspaces.length;
    }

    Workspace workspace(int worker) {
        return workspaces[worker];
    }

    /// Room for passes of `operands` operands in every workspace.
    void grow(int operands) {
        for (Workspace workspace : workspaces) {
            workspace.grow(operands);
        }
    }

    /// Elements per tile of a job over `elements` that moves `bytes` for each: enough tiles for all threads to finish
    /// together.
    long tileElements(long elements, long bytes) {
        long balanced = elements / (4L * threads());
        return Math.max(1, Math.min(TILE_BYTES / bytes, Math.max(LEAST, balanced)));
    }
}
