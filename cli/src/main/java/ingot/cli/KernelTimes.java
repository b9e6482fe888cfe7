package ingot.cli;

import ingot.compiler.Backend;
import ingot.compiler.Kernel;
import ingot.compiler.Layout;
import ingot.compiler.Program;
import ingot.compiler.Step;
import ingot.cpu.Autotuner;
import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.ir.Shape;
import ingot.ir.Type;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/// How long a step computes on this machine: each of its kernels timed alone, times how often it runs.
///
/// Kernels that cost most come first, until the time is up; of those that are too large for it a smaller one of the
/// same kind is timed. The rest is taken to be as fast as what was timed: products by their operations, others by their
/// bytes.
///
/// @param forward seconds
/// @param backward seconds
/// @param flops of all products
/// @param timed part of the seconds that comes from kernels that were timed as they are
/// @param scaling how much faster the products are on all threads than on one
record KernelTimes(double forward, double backward, double flops, double timed, double scaling) {
    private static final long NANOSECONDS = 1_500_000_000L;
    private static final long START = 300_000_000L;
    private static final long WARM = 200_000_000L; // for a product that is not one of the run
    private static final long MEMORY = 192L << 20;
    private static final double LARGE = 2e10; // operations of a product
    private static final double SAMPLE = 6e8; // of one that stands for a larger one
    private static final double LEAST_RATE = 5e9; // operations per second, of a guess
    private static final double LEAST_BYTES = 2e9;

    /// A kernel of the step.
    private static final class Work {
        private final Kernel kernel;
        private final double flops;
        private final double bytes;
        private long forward;
        private long backward;
        private double seconds = Double.NaN; // of one run
        private boolean asItIs;

        Work(Kernel kernel) {
            this.kernel = kernel;
            flops = Explain.flops(kernel);
            bytes = ingot.compiler.Explain.bytes(kernel);
        }

        long runs() {
            return forward + backward;
        }

        /// What a slow machine would need.
        double guess() {
            return runs() * (flops / LEAST_RATE + bytes / LEAST_BYTES);
        }
    }

    /// Measures later than it begins: kernels are slow until their vector code is compiled, which happens meanwhile.
    static final class Probe implements AutoCloseable {
        private final Arena arena = Arena.ofShared();
        private final MemorySegment memory = arena.allocate(MEMORY, 4096);
        private final List<Work> works;
        private final Backend backend;
        private final Backend plain;
        private final TilePool pool;

        Probe(Program program, Backend backend, TilePool pool) {
            this.backend = backend;
            this.pool = pool;
            plain = new CpuBackend(pool, Autotuner.off());
            works = works(program);
            try (Backend.Session _ = pool.session()) {
                time(false, START, 1);
                time(true, NANOSECONDS / 2, 2);
            }
        }

        /// Some milliseconds of computation on all threads.
        void busy() {
            Kernel kernel = square();
            try (Backend.Session _ = pool.session()) {
                plain.prepare(kernel).run(addresses(kernel, memory), end(kernel, memory));
            }
        }

        KernelTimes measure() {
            // as a step runs: the caller has its processor, the pool's threads have theirs
            try (Backend.Session _ = pool.session()) {
                double scaling = scaling(pool, memory);
                time(true, NANOSECONDS, 3);
                time(false, START, 4);
                return of(works, scaling);
            }
        }

        /// Times products, or the others, until the time is up.
        private void time(boolean products, long nanoseconds, int runs) {
            long end = System.nanoTime() + nanoseconds;
            for (Work work : works) {
                if (System.nanoTime() < end && (work.flops > 0) == products) {
                    KernelTimes.time(work, backend, plain, memory, runs);
                }
            }
        }

        @Override
        public void close() {
            arena.close();
        }
    }

    private static KernelTimes of(List<Work> works, double scaling) {
        double flops = 0;
        double flopSeconds = 0;
        double bytes = 0;
        double byteSeconds = 0;
        for (Work work : works) {
            if (!Double.isNaN(work.seconds) && work.flops > 0) {
                flops += work.runs() * work.flops;
                flopSeconds += work.runs() * work.seconds;
            } else if (!Double.isNaN(work.seconds)) {
                bytes += work.runs() * work.bytes;
                byteSeconds += work.runs() * work.seconds;
            }
        }
        double forward = 0;
        double backward = 0;
        double all = 0;
        double timed = 0;
        for (Work work : works) {
            double seconds = !Double.isNaN(work.seconds)
                    ? work.seconds
                    : work.flops > 0
                            ? work.flops * (flops > 0 ? flopSeconds / flops : 1 / LEAST_RATE)
                            : work.bytes * (bytes > 0 ? byteSeconds / bytes : 1 / LEAST_BYTES);
            forward += work.forward * seconds;
            backward += work.backward * seconds;
            all += work.runs() * work.flops;
            timed += work.asItIs ? work.runs() * seconds : 0;
        }
        double part = Math.min(1, timed / (forward + backward)); // the sums may round apart
        return new KernelTimes(forward, backward, all, part, scaling);
    }

    /// The distinct kernels, the most expensive first.
    private static List<Work> works(Program program) {
        Map<Kernel, Work> works = new LinkedHashMap<>();
        long loads = program.steps().stream()
                .filter(step -> step instanceof Step.Load)
                .count();
        long visit = -1;
        for (Step step : program.steps()) {
            if (step instanceof Step.Load) {
                visit++;
            } else if (step instanceof Step.Run run) {
                Work work = works.computeIfAbsent(run.kernel(), Work::new);
                if (visit <= loads / 2) {
                    work.forward++;
                } else {
                    work.backward++;
                }
            }
        }
        return works.values().stream()
                .sorted(Comparator.comparingDouble(Work::guess).reversed())
                .toList();
    }

    private static void time(Work work, Backend backend, Backend plain, MemorySegment memory, int runs) {
        Kernel kernel = work.kernel;
        boolean small = work.flops <= LARGE;
        Backend by = backend;
        double scale = 1;
        if ((!small || !fits(kernel)) && kernel instanceof Kernel.Matmul matmul) {
            Kernel.Matmul sample = smaller(matmul);
            scale = work.flops / Explain.flops(sample);
            kernel = sample;
            by = plain;
        }
        if (!fits(kernel)) {
            return;
        }
        Backend.Executable code = by.prepare(kernel);
        long[] addresses = addresses(kernel, memory);
        long scratch = end(kernel, memory);
        if (scratch + code.scratchBytes() > memory.address() + memory.byteSize()) {
            return;
        }
        double best = Double.POSITIVE_INFINITY;
        long warm = System.nanoTime() + (scale == 1 ? 0 : WARM);
        for (int i = 0; i < runs || System.nanoTime() < warm; i++) {
            long start = System.nanoTime();
            code.run(addresses, scratch);
            best = Math.min(best, (System.nanoTime() - start) / 1e9);
        }
        work.seconds = best * scale;
        work.asItIs = scale == 1;
    }

    private static List<Layout> operands(Kernel kernel) {
        List<Layout> operands = new ArrayList<>(kernel.reads());
        operands.addAll(kernel.writes());
        return operands;
    }

    private static boolean fits(Kernel kernel) {
        double bytes = 0;
        for (Layout layout : operands(kernel)) {
            bytes += span(layout) + 128.0;
        }
        return bytes < MEMORY * 0.75;
    }

    /// Bytes from the first to the last element.
    private static double span(Layout layout) {
        double elements = 1;
        for (int axis = 0; axis < layout.shape().rank(); axis++) {
            elements += Math.max(0, layout.shape().dim(axis) - 1.0) * Math.abs(layout.stride(axis));
        }
        return elements * layout.dtype().bytes();
    }

    /// One operand behind the other.
    private static long[] addresses(Kernel kernel, MemorySegment memory) {
        List<Layout> operands = operands(kernel);
        long[] addresses = new long[operands.size()];
        long at = memory.address();
        for (int i = 0; i < addresses.length; i++) {
            Layout layout = operands.get(i);
            long before = 0;
            for (int axis = 0; axis < layout.shape().rank(); axis++) {
                before += Math.max(0, -layout.stride(axis))
                        * Math.max(0, layout.shape().dim(axis) - 1);
            }
            addresses[i] = at + before * layout.dtype().bytes();
            at += align((long) span(layout));
        }
        return addresses;
    }

    private static long end(Kernel kernel, MemorySegment memory) {
        return memory.address()
                + operands(kernel).stream()
                        .mapToLong(layout -> align((long) span(layout)))
                        .sum();
    }

    private static long align(long bytes) {
        return (bytes + 63) / 64 * 64;
    }

    /// A product of the same kind that is soon done: fewer batches, rows, columns, and only then shorter sums.
    private static Kernel.Matmul smaller(Kernel.Matmul kernel) {
        int rank = kernel.c().shape().rank();
        int[] c = kernel.c().shape().dims();
        int k = kernel.a().shape().dim(-1);
        int segments = kernel.segments();
        while (2.0 * product(c) * k > SAMPLE
                || 4.0 * (product(c) + (double) k * (c[rank - 2] + c[rank - 1])) > MEMORY / 4.0) {
            int largest = IntStream.range(0, rank - 2)
                    .filter(axis -> c[axis] > 1)
                    .findFirst()
                    .orElse(-1);
            if (largest >= 0) {
                c[largest] = 1;
            } else if (Math.max(c[rank - 2], c[rank - 1]) > 256) {
                int axis = c[rank - 2] > c[rank - 1] ? rank - 2 : rank - 1;
                c[axis] = Math.ceilDiv(c[axis], 2);
            } else {
                segments = Math.max(1, segments / 2);
                k = Math.max(1, k / segments / 2) * segments;
            }
        }
        int[] a = c.clone();
        a[rank - 1] = k;
        int[] b = c.clone();
        b[rank - 2] = k;
        Layout bias = kernel.bias();
        return new Kernel.Matmul(
                dense(kernel.a(), a),
                dense(kernel.b(), b),
                bias == null ? null : dense(bias, new int[] {c[rank - 1]}),
                dense(kernel.c(), c),
                segments,
                kernel.old());
    }

    private static double product(int[] dims) {
        double product = 1;
        for (int dim : dims) {
            product *= dim;
        }
        return product;
    }

    /// Another size with its axes in the same order in memory, without gaps; what is repeated stays so.
    private static Layout dense(Layout layout, int[] dims) {
        Long[] strides = new Long[dims.length];
        List<Integer> axes = IntStream.range(0, dims.length)
                .boxed()
                .sorted(Comparator.comparingLong(axis -> Math.abs(layout.stride(axis))))
                .toList();
        long at = 1;
        for (int axis : axes) {
            strides[axis] = layout.stride(axis) == 0 ? 0 : at;
            at *= layout.stride(axis) == 0 ? 1 : dims[axis];
        }
        return new Layout(layout.dtype(), Shape.of(dims), 0, List.of(strides));
    }

    private static Kernel square() {
        Layout layout = Layout.rowMajor(Type.f32(384, 384));
        return new Kernel.Matmul(layout, layout, null, layout, 1, Kernel.Matmul.Old.REPLACED);
    }

    /// How much faster one product is on all threads than on one.
    private static double scaling(TilePool pool, MemorySegment memory) {
        if (pool.threads() == 1) {
            return 1;
        }
        Kernel kernel = square();
        for (long i = 0; i < 1 << 20; i += 4) {
            memory.set(ValueLayout.JAVA_FLOAT, i, 1);
        }
        try (TilePool one = new TilePool(1)) {
            Backend.Executable alone = new CpuBackend(one, Autotuner.off()).prepare(kernel);
            Backend.Executable together = new CpuBackend(pool, Autotuner.off()).prepare(kernel);
            double ratio = best(alone, kernel, memory) / best(together, kernel, memory);
            return Math.clamp(ratio, 1, pool.threads());
        }
    }

    private static double best(Backend.Executable code, Kernel kernel, MemorySegment memory) {
        double best = Double.POSITIVE_INFINITY;
        for (int i = 0; i < 8; i++) {
            long start = System.nanoTime();
            code.run(addresses(kernel, memory), end(kernel, memory));
            best = Math.min(best, (System.nanoTime() - start) / 1e9);
        }
        return best;
    }
}
