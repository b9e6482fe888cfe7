package ingot.cpu;

/// One kernel's work on one tile of its grid; `worker` (0 ≤ worker < threads) names the private scratch to use.
@FunctionalInterface
public interface TileTask {
    void run(int tile, int worker);
}
