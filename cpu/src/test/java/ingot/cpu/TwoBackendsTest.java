package ingot.cpu;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.compiler.Backend;
import ingot.compiler.Kernel;
import ingot.compiler.KernelInterpreter;
import ingot.compiler.Layout;
import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

/// Two backends of one process, each with a caller of its own, prepare and run the same kernels at the same time: while
/// code is defined, made hot and taken over, the bits stay.
class TwoBackendsTest {
    private static final int ROWS = 24;
    private static final int COLUMNS = 500;
    private static final int FRESH = 2; // backends of every caller
    private static final int ROUNDS = 25;

    private static List<Kernel> kernels() {
        Type matrix = Type.f32(ROWS, COLUMNS);
        Layout dense = Layout.rowMajor(matrix);
        Layout indices = Layout.rowMajor(Type.i32(50));
        Layout rows = Layout.rowMajor(Type.f32(50, COLUMNS));
        return List.of(
                KernelCheck.map(Shape.of(ROWS, COLUMNS), List.of(DType.F32, DType.F32), (b, x) -> {
                    Value wave = b.multiply(
                            b.exp(b.negate(b.multiply(x.get(0), x.get(0)))), b.unary(UnaryKind.COS, x.get(1)));
                    return b.add(wave, b.tanh(x.get(1)));
                }),
                softmax(matrix),
                columnSums(matrix),
                new Kernel.Matmul(
                        dense,
                        Layout.rowMajor(Type.f32(COLUMNS, 40)),
                        null,
                        Layout.rowMajor(Type.f32(ROWS, 40)),
                        1,
                        Kernel.Matmul.Old.REPLACED),
                new Kernel.Gather(dense, indices, rows),
                new Kernel.ScatterAdd(indices, rows, dense, 2));
    }

    private static Kernel softmax(Type matrix) {
        GraphBuilder b = new GraphBuilder("softmax");
        Value x = b.input("0", matrix);
        Value e = b.exp(b.subtract(x, b.broadcast(b.reduce(ReduceKind.MAX, x, 1), matrix.shape(), List.of(0))));
        b.output("0", b.divide(e, b.broadcast(b.sum(e, 1), matrix.shape(), List.of(0))));
        Layout dense = Layout.rowMajor(matrix);
        return new Kernel.Row(b.build(), matrix.shape(), List.of(dense), List.of(dense));
    }

    private static Kernel columnSums(Type matrix) {
        GraphBuilder b = new GraphBuilder("column");
        Value x = b.input("0", matrix);
        b.output("0", b.add(new Op.Reduce(ReduceKind.SUM, b.multiply(x, x), List.of(0), 1)));
        return new Kernel.Column(
                b.build(),
                matrix.shape(),
                List.of(Layout.rowMajor(matrix)),
                List.of(Layout.rowMajor(Type.f32(COLUMNS))));
    }

    /// A kernel with operands and what it must leave in the last of them.
    private record Job(Kernel kernel, long[] addresses, MemorySegment result, MemorySegment expected) {
        static Job of(Kernel kernel, Arena arena) {
            Random random = new Random(7);
            List<MemorySegment> memory = new ArrayList<>();
            for (Layout read : kernel.reads()) {
                MemorySegment segment = operand(read, arena);
                for (long i = 0; i < segment.byteSize() / 4; i++) {
                    if (read.dtype() == DType.I32) {
                        segment.setAtIndex(ValueLayout.JAVA_INT, i, random.nextInt(ROWS));
                    } else {
                        segment.setAtIndex(ValueLayout.JAVA_FLOAT, i, (float) random.nextGaussian());
                    }
                }
                memory.add(segment);
            }
            MemorySegment result = operand(kernel.writes().getFirst(), arena);
            memory.add(result);
            long[] addresses = memory.stream().mapToLong(MemorySegment::address).toArray();
            KernelInterpreter.run(kernel, addresses);
            MemorySegment expected = arena.allocate(result.byteSize(), 64).copyFrom(result);
            return new Job(kernel, addresses, result, expected);
        }

        private static MemorySegment operand(Layout layout, Arena arena) {
            return arena.allocate(4 * layout.shape().elements(), 64);
        }

        void check(Backend backend, long scratch) {
            result.fill((byte) 0xA5);
            backend.prepare(kernel).run(addresses, scratch);
            assertThat(result.mismatch(expected)).as(kernel.kind()).isEqualTo(-1);
        }
    }

    @Test
    void doNotDisturbEachOther() throws Exception {
        CyclicBarrier together = new CyclicBarrier(2);
        try (ExecutorService callers = Executors.newFixedThreadPool(2)) {
            List<Future<Void>> results = new ArrayList<>();
            for (int threads = 1; threads <= 2; threads++) {
                results.add(callers.submit(caller(threads, together)));
            }
            for (Future<Void> result : results) {
                result.get();
            }
        }
    }

    private static Callable<Void> caller(int threads, CyclicBarrier together) {
        return () -> {
            try (Arena arena = Arena.ofShared();
                    TilePool pool = new TilePool(threads)) {
                List<Job> jobs = new ArrayList<>();
                for (Kernel kernel : kernels()) {
                    jobs.add(Job.of(kernel, arena));
                }
                together.await();
                for (int fresh = 0; fresh < FRESH; fresh++) {
                    Backend backend = new CpuBackend(pool);
                    long scratchBytes = 64;
                    for (Job job : jobs) {
                        scratchBytes = Math.max(
                                scratchBytes, backend.prepare(job.kernel()).scratchBytes());
                    }
                    long scratch = arena.allocate(scratchBytes, 64).address();
                    for (int round = 0; round < ROUNDS; round++) {
                        for (Job job : jobs) {
                            job.check(backend, scratch);
                        }
                    }
                }
            }
            return null;
        };
    }
}
