package ingot.cpu;

import ingot.compiler.Backend;
import ingot.compiler.Kernel;
import ingot.compiler.Layout;
import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/// Runs one kernel of each kind and prints a hash of each result.
final class ScalarRun {
    private ScalarRun() {}

    public static void main(String[] arguments) {
        boolean present = ModuleLayer.boot().findModule("jdk.incubator.vector").isPresent();
        try (TilePool pool = new TilePool(2)) {
            CpuBackend backend = present ? new CpuBackend(pool, Simd.LANES, true) : new CpuBackend(pool);
            if (present != backend.describe().endsWith("vectors")) {
                throw new IllegalStateException(backend.describe());
            }
            for (Kernel kernel : kernels()) {
                System.out.println(kernel.kind() + " " + hash(kernel, backend));
            }
        }
    }

    private static List<Kernel> kernels() {
        Shape space = Shape.of(40, 77);
        Type type = new Type(DType.F32, space);
        Layout dense = Layout.rowMajor(type);

        GraphBuilder row = new GraphBuilder("row");
        Value x = row.input("0", type);
        Value sum = row.add(new Op.Reduce(ReduceKind.SUM, row.tanh(x), List.of(1), 1));
        row.output("0", row.multiply(x, row.broadcast(sum, space, List.of(0))));

        GraphBuilder column = new GraphBuilder("column");
        column.output("0", column.add(new Op.Reduce(ReduceKind.SUM, column.input("0", type), List.of(0), 4)));

        return List.of(
                KernelCheck.map(
                        space, List.of(DType.F32, DType.F32), (b, v) -> b.add(b.exp(v.get(0)), b.erf(v.get(1)))),
                new Kernel.Row(row.build(), space, List.of(dense), List.of(dense)),
                new Kernel.Column(column.build(), space, List.of(dense), List.of(Layout.rowMajor(Type.f32(77)))),
                new Kernel.Matmul(
                        dense,
                        Layout.rowMajor(Type.f32(77, 50)),
                        null,
                        Layout.rowMajor(Type.f32(40, 50)),
                        1,
                        Kernel.Matmul.Old.REPLACED),
                new Kernel.Gather(dense, Layout.rowMajor(Type.i32(9)), Layout.rowMajor(Type.f32(9, 77))),
                new Kernel.ScatterAdd(Layout.rowMajor(Type.i32(40)), dense, Layout.rowMajor(Type.f32(9, 77)), 2));
    }

    private static String hash(Kernel kernel, Backend backend) {
        Random random = new Random(3);
        List<Layout> layouts = new ArrayList<>(kernel.reads());
        layouts.addAll(kernel.writes());
        try (Arena arena = Arena.ofShared()) {
            List<MemorySegment> memory = new ArrayList<>();
            for (Layout layout : layouts) {
                MemorySegment segment = arena.allocate(layout.type().bytes(), 64);
                for (long i = 0; i < layout.shape().elements(); i++) {
                    if (layout.dtype() == DType.F32) {
                        segment.setAtIndex(ValueLayout.JAVA_FLOAT, i, (float) random.nextGaussian());
                    } else {
                        segment.setAtIndex(ValueLayout.JAVA_INT, i, random.nextInt(9));
                    }
                }
                memory.add(segment);
            }
            Backend.Executable executable = backend.prepare(kernel);
            executable.run(
                    memory.stream().mapToLong(MemorySegment::address).toArray(),
                    arena.allocate(executable.scratchBytes() + 64, 64).address());
            long hash = 0;
            for (MemorySegment segment : memory) {
                for (long i = 0; i < segment.byteSize() / 4; i++) {
                    hash = 31 * hash + segment.getAtIndex(ValueLayout.JAVA_INT, i);
                }
            }
            return Long.toHexString(hash);
        }
    }
}
