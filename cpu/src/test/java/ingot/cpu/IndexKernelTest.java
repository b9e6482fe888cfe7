package ingot.cpu;

import static ingot.ir.DType.F32;
import static ingot.ir.DType.I32;

import ingot.compiler.Kernel;
import ingot.compiler.Kernel.Matmul.Old;
import ingot.compiler.Layout;
import ingot.ir.DType;
import ingot.ir.Shape;
import ingot.ir.Type;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;

class IndexKernelTest {
    private static final KernelCheck CHECK = KernelCheck.all();

    private final Random random = new Random(17);

    @AfterAll
    static void close() {
        CHECK.close();
    }

    @Test
    void gather() {
        for (DType dtype : DType.values()) {
            CHECK.same(
                    new Kernel.Gather(
                            Layout.rowMajor(new Type(dtype, Shape.of(30, 40))),
                            Layout.rowMajor(Type.i32(7, 9)),
                            Layout.rowMajor(new Type(dtype, Shape.of(7, 9, 40)))),
                    random);
        }
    }

    @Test
    void gatherScalars() {
        CHECK.same(
                new Kernel.Gather(
                        Layout.rowMajor(Type.f32(30)), Layout.rowMajor(Type.i32(91)), Layout.rowMajor(Type.f32(91))),
                random);
        CHECK.same(
                new Kernel.Gather(
                        Layout.rowMajor(Type.f32(30, 5)), Layout.rowMajor(Type.i32()), Layout.rowMajor(Type.f32(5))),
                random);
    }

    @Test
    void gatherStrided() {
        for (int round = 0; round < 20; round++) {
            CHECK.same(
                    new Kernel.Gather(
                            KernelCheck.layout(new Type(F32, Shape.of(11, 3, 33)), true, random),
                            KernelCheck.layout(new Type(I32, Shape.of(4, 5)), true, random),
                            KernelCheck.layout(new Type(F32, Shape.of(4, 5, 3, 33)), false, random)),
                    random);
        }
    }

    @Test
    void scatterAdd() {
        for (DType dtype : List.of(F32, I32)) {
            for (int segments : new int[] {1, 2, 3, 6}) {
                CHECK.same(
                        new Kernel.ScatterAdd(
                                Layout.rowMajor(Type.i32(6, 50)),
                                Layout.rowMajor(new Type(dtype, Shape.of(6, 50, 37))),
                                Layout.rowMajor(new Type(dtype, Shape.of(25, 37))),
                                segments),
                        random);
            }
        }
    }

    @Test
    void scatterAddStrided() {
        for (int round = 0; round < 20; round++) {
            CHECK.same(
                    new Kernel.ScatterAdd(
                            KernelCheck.layout(new Type(I32, Shape.of(4, 6)), true, random),
                            KernelCheck.layout(new Type(F32, Shape.of(4, 6, 3, 18)), true, random),
                            KernelCheck.layout(new Type(F32, Shape.of(13, 3, 18)), false, random),
                            1 + round % 4),
                    random);
        }
    }

    @Test
    void scatterAddEmpty() {
        CHECK.same(
                new Kernel.ScatterAdd(
                        Layout.rowMajor(Type.i32(0)),
                        Layout.rowMajor(Type.f32(0, 8)),
                        Layout.rowMajor(Type.f32(3, 8)),
                        1),
                random);
    }

    @Test
    void matmul() {
        Layout a = Layout.rowMajor(Type.f32(2, 3, 7, 20));
        Layout b = new Layout(F32, Shape.of(2, 3, 20, 9), 0, List.of(0L, 180L, 1L, 20L));
        Layout c = Layout.rowMajor(Type.f32(2, 3, 7, 9));
        Layout bias = new Layout(F32, Shape.of(9), 0, List.of(2L));
        for (Old old : Old.values()) {
            CHECK.same(new Kernel.Matmul(a, b, null, c, 1, old), random);
            CHECK.same(new Kernel.Matmul(a, b, bias, c, old == Old.CONTINUED ? 1 : 4, old), random);
        }
    }

    @Test
    void matmulOfManyBatchAxes() {
        Layout a = new Layout(F32, Shape.of(2, 2, 3, 2, 5, 8), 0, List.of(400L, 0L, 40L, 0L, 8L, 1L));
        Layout b = Layout.rowMajor(Type.f32(2, 2, 3, 2, 8, 6));
        Layout c = Layout.rowMajor(Type.f32(2, 2, 3, 2, 5, 6));
        CHECK.same(new Kernel.Matmul(a, b, null, c, 1, Old.REPLACED), random);
    }
}
