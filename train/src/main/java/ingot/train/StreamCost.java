package ingot.train;

import ingot.compiler.Backend;
import ingot.ir.Type;
import ingot.nn.Initializer;
import ingot.nn.Parameter;
import ingot.store.Storage;
import ingot.store.StoreLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;

/// What streaming asks of one processor beside the computation, measured in some tenths of a second.
///
/// @param update seconds per element of the optimizer's update
/// @param checksum seconds per byte
public record StreamCost(double update, double checksum) {
    /// Chunks that together are far larger than the caches, as those that come from a disk.
    private static final int CHUNKS = 16;

    private static final long NANOSECONDS = 150_000_000;

    /// Measures later than it begins: what it runs is slow until its code is compiled, which happens meanwhile.
    public static final class Probe implements AutoCloseable {
        private final Arena arena = Arena.ofConfined();
        private final List<MemorySegment> arrays = new ArrayList<>();
        private final int elements = StoreLayout.CHUNK_ELEMENTS;
        private final int moments;
        private final UpdateRule rule;

        public Probe(Optimizer optimizer, Backend background) {
            Parameter parameter = new Parameter("w", Type.f32(elements), new Initializer.Constant(0), true);
            rule = new UpdateRule(optimizer, List.of(parameter), elements, background);
            moments = optimizer.moments().size();
            for (int i = 0; i < CHUNKS; i++) {
                arrays.add(arena.allocate(4L * elements, Storage.BLOCK));
            }
            rule.scalars(0, 1e-3, 1);
            update(0);
        }

        private void update(int round) {
            int at = round * (2 + moments);
            List<MemorySegment> parts = new ArrayList<>();
            for (int part = 0; part < moments; part++) {
                parts.add(arrays.get((at + 2 + part) % CHUNKS));
            }
            rule.apply(elements, Parameter.Rule.DECAY, arrays.get(at % CHUNKS), parts, arrays.get((at + 1) % CHUNKS));
        }

        public StreamCost measure() {
            double checksum =
                    typical(i -> new CRC32C().update(arrays.get(i % CHUNKS).asByteBuffer()));
            return new StreamCost(typical(this::update) / elements, checksum / (4.0 * elements));
        }

        @Override
        public void close() {
            rule.close();
            arena.close();
        }
    }

    private interface Work {
        void run(int round);
    }

    /// Seconds of the typical run among the last ones: the first are slow, until their code is compiled.
    private static double typical(Work work) {
        long start = System.nanoTime();
        List<Long> times = new ArrayList<>();
        for (int i = 0; System.nanoTime() - start < NANOSECONDS || i < 4; i++) {
            long before = System.nanoTime();
            work.run(i);
            times.add(System.nanoTime() - before);
        }
        List<Long> last =
                times.subList(times.size() / 2, times.size()).stream().sorted().toList();
        return last.get(last.size() / 4) / 1e9;
    }
}
