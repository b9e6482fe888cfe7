package ingot.cpu;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/// Makes vector code hot in the background, on dummy operands, and hands it over when it is faster than scalar code.
///
/// Until HotSpot has compiled it as a whole, Vector API code is hundreds of times slower than scalar code; and
/// sometimes the compiled code still allocates its vectors. So it is timed before it is used: a pass whose vector code
/// never gets fast keeps its scalar code.
final class Warmup {
    /// Elements times ops after which a pass deserves vector code: some milliseconds of scalar work.
    static final long WORTH = 1 << 22;

    /// Short calls reach the compilation thresholds with the least work.
    private static final int FIRST_CALLS = 250;

    private static final int CALLS = 6000;
    private static final int LENGTH = 64;
    private static final int TIMED_LENGTH = 256;
    private static final long PATIENCE_NANOS = 20_000_000_000L;

    private final int lanes;
    private final ThreadPoolExecutor executor;

    Warmup(int lanes) {
        this.lanes = lanes;
        executor = new ThreadPoolExecutor(1, 1, 1, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), task -> {
            Thread thread = new Thread(task, "ingot-warmup");
            thread.setDaemon(true);
            thread.setPriority(Thread.MIN_PRIORITY);
            return thread;
        });
        executor.allowCoreThreadTimeOut(true);
    }

    void request(CompiledPass compiled) {
        executor.execute(() -> warm(compiled));
    }

    /// Two attempts: HotSpot compiles a fresh class afresh.
    private void warm(CompiledPass compiled) {
        for (int attempt = 0; attempt < 2; attempt++) {
            VectorCode code = VectorWriter.define(compiled.pass(), lanes);
            if (isFast(compiled, code)) {
                compiled.useVectors(code);
                return;
            }
        }
    }

    private static boolean isFast(CompiledPass compiled, VectorCode code) {
        Pass pass = compiled.pass();
        int operands = pass.operands();
        try (Arena arena = Arena.ofConfined()) {
            long[] bases = new long[operands];
            for (int k = 0; k < operands; k++) {
                var memory = arena.allocate(4L * TIMED_LENGTH, 64);
                for (int i = 0; i < TIMED_LENGTH; i++) {
                    memory.set(ValueLayout.JAVA_FLOAT, 4L * i, 1f);
                }
                bases[k] = memory.address();
            }
            for (int call = 0; call < FIRST_CALLS; call++) {
                code.run(bases, 16);
            }
            for (int call = 0; call < CALLS; call++) {
                code.run(bases, LENGTH);
            }
            var arrays = new Workspace();
            arrays.grow(operands);
            double scalar = Double.MAX_VALUE;
            double vector = Double.MAX_VALUE;
            long start = System.nanoTime();
            while (System.nanoTime() - start < PATIENCE_NANOS) {
                scalar = Math.min(scalar, time(() -> compiled.scalar().run(arrays.floats, arrays.ints, TIMED_LENGTH)));
                vector = Math.min(vector, time(() -> code.run(bases, TIMED_LENGTH)));
                if (vector < scalar) {
                    return true;
                }
                Thread.sleep(10);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return false;
    }

    /// Nanoseconds of a call, the best of a few.
    private static double time(Runnable call) {
        double best = Double.MAX_VALUE;
        for (int round = 0; round < 5; round++) {
            long start = System.nanoTime();
            for (int i = 0; i < 10; i++) {
                call.run();
            }
            best = Math.min(best, (System.nanoTime() - start) / 10.0);
        }
        return best;
    }
}
