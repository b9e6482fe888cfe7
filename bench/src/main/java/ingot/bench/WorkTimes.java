package ingot.bench;

import ingot.cpu.TilePool;
import ingot.runtime.Profile;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/// When each worker of a pool had work.
final class WorkTimes implements TilePool.Observer {
    private final List<List<Span>> workers;

    record Span(long start, long end) {}

    WorkTimes(int threads) {
        workers = IntStream.range(0, threads)
                .<List<Span>>mapToObj(_ -> new ArrayList<>())
                .toList();
    }

    @Override
    public void worked(int worker, long start, long end) {
        workers.get(worker).add(new Span(start, end)); // each worker has a list of its own
    }

    List<List<Span>> workers() {
        return workers;
    }

    /// Nanoseconds of work within each run of a kernel, all workers together; runs do not overlap.
    long[] within(List<Profile.Span> runs) {
        long[] work = new long[runs.size()];
        for (List<Span> spans : workers) {
            int run = 0;
            for (Span span : spans) {
                while (run < runs.size() && runs.get(run).end() <= span.start()) {
                    run++;
                }
                if (run < runs.size()) {
                    long start = Math.max(span.start(), runs.get(run).start());
                    long end = Math.min(span.end(), runs.get(run).end());
                    work[run] += Math.max(0, end - start);
                }
            }
        }
        return work;
    }
}
