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
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/// Loops with code of their own against the interpreter.
class LoopKernelTest {
    private static final int COUNT = 70_001;

    /// Special numbers and random bits.
    private static void fill(MemorySegment memory, DType dtype) {
        Random random = new Random(5);
        if (dtype == DType.F32) {
            KernelCheck.fill(memory, dtype, random);
            return;
        }
        for (long i = 0; i < memory.byteSize(); i++) {
            memory.set(ValueLayout.JAVA_BYTE, i, (byte) random.nextInt());
        }
    }

    private static boolean same(Kernel.Loop loop, List<DType> operands) {
        try (TilePool pool = new TilePool(2);
                Arena arena = Arena.ofShared()) {
            Backend.Executable executable = new CpuBackend(pool).prepare(loop);
            List<Layout> layouts = new ArrayList<>(loop.reads());
            layouts.addAll(loop.writes());
            long[] expected = new long[layouts.size()];
            long[] actual = new long[layouts.size()];
            List<MemorySegment> results = new ArrayList<>();
            for (int i = 0; i < layouts.size(); i++) {
                long bytes = layouts.get(i).type().bytes();
                MemorySegment one = arena.allocate(bytes, 64);
                fill(one, operands.get(i));
                MemorySegment other = arena.allocate(bytes, 64).copyFrom(one);
                expected[i] = one.address();
                actual[i] = other.address();
                results = List.of(one, other);
            }
            KernelInterpreter.run(loop, expected);
            executable.run(
                    actual, arena.allocate(executable.scratchBytes() + 64, 64).address());
            compare(loop, results.get(0), results.get(1), operands.getLast());
            return !executable.getClass().getSimpleName().equals("Interpreted");
        }
    }

    /// Any NaN equals any NaN.
    private static void compare(Kernel.Loop loop, MemorySegment expected, MemorySegment actual, DType dtype) {
        int bytes = dtype.bytes();
        for (long at = 0; at < expected.byteSize(); at += bytes) {
            if (MemorySegment.mismatch(expected, at, at + bytes, actual, at, at + bytes) >= 0) {
                assertThat(dtype).as("%s at %s", loop, at / bytes).isIn(DType.F32, DType.F16, DType.BF16);
                assertThat(isNaN(expected, at, dtype) && isNaN(actual, at, dtype))
                        .as("%s at %s", loop, at / bytes)
                        .isTrue();
            }
        }
    }

    private static boolean isNaN(MemorySegment memory, long at, DType dtype) {
        if (dtype == DType.F32) {
            return Float.isNaN(memory.get(ValueLayout.JAVA_FLOAT, at));
        }
        int bits = memory.get(ValueLayout.JAVA_SHORT, at) & 0x7FFF;
        return bits > (dtype == DType.F16 ? 0x7C00 : 0x7F80);
    }

    @Test
    void everyPairOfTypes() {
        int fast = 0;
        for (DType from : DType.values()) {
            for (DType to : DType.values()) {
                GraphBuilder b = new GraphBuilder("convert");
                Type type = new Type(from, Shape.of(COUNT));
                Value x = b.input("0", type);
                if (from == to) {
                    continue;
                }
                b.output("0", b.add(new Op.Convert(x, to)));
                Kernel.Loop loop = new Kernel.Loop(
                        b.build(), List.of(Layout.rowMajor(type)), List.of(Layout.rowMajor(type.with(to))));
                fast += same(loop, List.of(from, to)) ? 1 : 0;
            }
        }
        assertThat(fast).isEqualTo(16);
    }

    @Test
    void gatherOfBytes() {
        GraphBuilder b = new GraphBuilder("gather");
        Type table = new Type(DType.I8, Shape.of(19, 33));
        Type out = new Type(DType.I8, Shape.of(5, 7, 33));
        Value rows = b.add(new Op.Gather(b.input("0", table), b.input("1", Type.i32(5, 7)), 0));
        b.output("0", rows);
        Kernel.Loop loop = new Kernel.Loop(
                b.build(),
                List.of(Layout.rowMajor(table), Layout.rowMajor(Type.i32(5, 7))),
                List.of(Layout.rowMajor(out)));
        assertThat(same(loop, List.of(DType.I8, DType.I32, DType.I8))).isTrue();
    }

    @Test
    void pooling() {
        List<Integer> ones = List.of(1, 1, 1, 1);
        for (List<Integer> high : List.of(List.of(0, 0, 0, 0), List.of(0, 0, 1, 2), List.of(0, 1, 0, 0))) {
            for (int stride = 1; stride < 4; stride++) {
                for (int spread = 1; spread < 3; spread++) {
                    List<Integer> size = List.of(1, 1 + high.get(1), 3, 2);
                    Op.Window window = new Op.Window(
                            List.of(1, 1, stride, stride),
                            List.of(0, 0, 1, 1),
                            high,
                            List.of(1, 1, spread, 1),
                            List.of(1, 1, 1, 2));
                    window(size, window);
                    window(List.of(1, 1, 1, 1), new Op.Window(ones, List.of(0, 0, 0, 0), high, ones, ones));
                }
            }
        }
    }

    /// Sum, maximum and the gradient of the maximum.
    private static void window(List<Integer> size, Op.Window window) {
        Type type = Type.f32(3, 5, 9, 11);
        for (ReduceKind kind : List.of(ReduceKind.SUM, ReduceKind.MAX)) {
            GraphBuilder b = new GraphBuilder("pool");
            Value y = b.add(new Op.ReduceWindow(kind, b.input("0", type), size, window));
            b.output("0", y);
            assertThat(same(
                            new Kernel.Loop(
                                    b.build(), List.of(Layout.rowMajor(type)), List.of(Layout.rowMajor(y.type()))),
                            List.of(DType.F32, DType.F32)))
                    .isTrue();
            if (kind == ReduceKind.MAX) {
                GraphBuilder g = new GraphBuilder("gradient");
                Value dx = g.add(new Op.ScatterWindowMax(g.input("0", type), g.input("1", y.type()), size, window));
                g.output("0", dx);
                assertThat(same(
                                new Kernel.Loop(
                                        g.build(),
                                        List.of(Layout.rowMajor(type), Layout.rowMajor(y.type())),
                                        List.of(Layout.rowMajor(type))),
                                List.of(DType.F32, DType.F32, DType.F32)))
                        .isTrue();
            }
        }
    }
}
