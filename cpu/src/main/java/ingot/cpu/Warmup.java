package ingot.cpu;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Makes vector code hot in the background, on dummy operands, and hands it over when it is faster than scalar code.
///
/// Until HotSpot has compiled it as a whole, Vector API code is hundreds of times slower than scalar code; and
/// sometimes the compiled code still allocates its vectors. So it is timed before it is used: a pass whose vector code
/// never gets fast keeps its scalar code.
final class Warmup {
    /// Elements times ops after which a pass deserves vector code: some milliseconds of scalar work.
    static final long WORTH = 1 << 22;

    /// Calls of 16 elements bring code out of the bytecode interpreter with the least work, calls of 64 elements to the
    /// optimising compiler; after that there is only waiting for its result.
    private static final int FIRST_CALLS = 250;

    private static final int CALLS = 1800;
    private static final int LENGTH = 64;
    private static final int BURST = 100;
    private static final int TIMED_LENGTH = 256;

    /// Bursts after which compiled code has long been installed. HotSpot compiles a fresh class afresh, once.
    private static final int PATIENCE = 400;

    private static final int ATTEMPTS = 2;

    private final int lanes;

    Warmup(int lanes) {
        this.lanes = lanes;
    }

    void request(CompiledPass compiled) {
        Background.run(() -> warm(compiled, ATTEMPTS));
    }

    private void warm(CompiledPass compiled, int attempts) {
        if (attempts > 0) {
            Candidate candidate = new Candidate(compiled, VectorWriter.define(compiled.pass(), lanes));
            candidate.call(16, FIRST_CALLS);
            candidate.call(LENGTH, CALLS);
            poll(candidate, attempts, PATIENCE);
        }
    }

    private void poll(Candidate candidate, int attempts, int patience) {
        if (candidate.isFast()) {
            candidate.compiled.useVectors(candidate.code, candidate.scalar / TIMED_LENGTH);
        } else if (patience == 0) {
            warm(candidate.compiled, attempts - 1);
        } else {
            long start = System.nanoTime();
            candidate.call(LENGTH, BURST);
            long pause = 3 * (System.nanoTime() - start) + 5_000_000;
            Background.later(() -> poll(candidate, attempts, patience - 1), pause);
        }
    }

    /// Vector code with operands to try it on.
    private static final class Candidate {
        final CompiledPass compiled;
        final VectorCode code;
        private final BoundPass pass;
        private final MemorySegment memory;
        private final long[] bases;
        private final Workspace work = new Workspace();
        private double scalar = Double.MAX_VALUE;
        private double vector = Double.MAX_VALUE;

        Candidate(CompiledPass compiled, VectorCode code) {
            this.compiled = compiled;
            this.code = code;
            Pass pass = compiled.pass();
            int operands = pass.operands();
            memory = Arena.ofAuto().allocate(4L * TIMED_LENGTH * operands, 64);
            for (long i = 0; i < (long) TIMED_LENGTH * operands; i++) {
                memory.setAtIndex(ValueLayout.JAVA_FLOAT, i, 1f);
            }
            bases = new long[operands];
            long[] steps = new long[pass.reads().size() + pass.writes().size()];
            for (int k = 0; k < operands; k++) {
                bases[k] = memory.address() + 4L * TIMED_LENGTH * k;
                if (k < steps.length) {
                    steps[k] = k < pass.reads().size() && pass.reads().get(k).kind() == Pass.Kind.COUNT ? 1 : 4;
                }
            }
            this.pass = new BoundPass(compiled, steps);
            work.grow(operands);
        }

        void call(int length, int times) {
            for (int i = 0; i < times; i++) {
                code.run(bases, length);
            }
        }

        boolean isFast() {
            scalar = Math.min(scalar, time(() -> pass.run(null, bases, TIMED_LENGTH, work)));
            vector = Math.min(vector, time(() -> code.run(bases, TIMED_LENGTH)));
            return vector < scalar;
        }

        /// Nanoseconds of a call, the best of a few.
        private static double time(Runnable call) {
            double best = Double.MAX_VALUE;
            for (int round = 0; round < 5; round++) {
                long start = System.nanoTime();
                for (int i = 0; i < 4; i++) {
                    call.run();
                }
                best = Math.min(best, (System.nanoTime() - start) / 4.0);
            }
            return best;
        }
    }
}
