package ingot.cpu;

import static ingot.ir.DType.BOOL;
import static ingot.ir.DType.F32;
import static ingot.ir.DType.I32;

import ingot.compiler.Kernel;
import ingot.compiler.Layout;
import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class ColumnKernelTest {
    private static final KernelCheck CHECK = KernelCheck.all();

    private final Random random = new Random(13);

    @AfterAll
    static void close() {
        CHECK.close();
    }

    /// Σ dy·x and Σ dy over axis 0, then a step of the outer shape: the gradients of layerNorm's gain and shift.
    private Kernel.Column gradients(int segments, boolean strided, int... dims) {
        Shape space = Shape.of(dims);
        Shape outer = space.without(List.of(0));
        GraphBuilder b = new GraphBuilder("column");
        Type type = new Type(F32, space);
        Value dy = b.input("0", type);
        Value x = b.input("1", type);
        Value old = b.input("2", new Type(F32, outer));
        Value gain = b.add(new Op.Reduce(ReduceKind.SUM, b.multiply(dy, x), List.of(0), segments));
        Value shift = b.add(new Op.Reduce(ReduceKind.SUM, dy, List.of(0), segments));
        b.output("0", b.fma(gain, b.fullLike(gain, 0.5), old));
        b.output("1", shift);
        List<Type> reads = List.of(type, type, old.type());
        List<Type> writes = KernelCheck.outputs(b.build());
        return new Kernel.Column(
                b.build(),
                space,
                strided
                        ? KernelCheck.layouts(reads, true, random)
                        : reads.stream().map(Layout::rowMajor).toList(),
                strided
                        ? KernelCheck.layouts(writes, false, random)
                        : writes.stream().map(Layout::rowMajor).toList());
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 15, 16, 17, 33, 64, 100, 1000})
    void lengths(int length) {
        for (int columns : new int[] {1, 5, 16, 40, 129}) {
            CHECK.same(gradients(1, false, length, columns), random);
        }
    }

    @Test
    void manyColumns() {
        CHECK.same(gradients(1, false, 37, 7001), random);
        CHECK.same(gradients(5, false, 35, 7001), random);
    }

    @Test
    void segments() {
        for (int segments : new int[] {1, 2, 3, 4, 5, 7, 8, 12}) {
            CHECK.same(gradients(segments, false, segments * 19, 33), random);
            CHECK.same(gradients(segments, false, segments, 600), random);
        }
    }

    @Test
    void strided() {
        for (int round = 0; round < 30; round++) {
            CHECK.same(
                    gradients(
                            1 + round % 3,
                            true,
                            (1 + round % 3) * (1 + random.nextInt(20)),
                            1 + random.nextInt(9),
                            1 + random.nextInt(40)),
                    random);
        }
    }

    @ParameterizedTest
    @EnumSource(ReduceKind.class)
    void everyReduction(ReduceKind kind) {
        for (DType dtype : List.of(F32, I32, BOOL)) {
            Shape space = Shape.of(35, 53);
            GraphBuilder b = new GraphBuilder("column");
            Type type = new Type(dtype, space);
            Value x = b.input("0", type);
            try {
                b.output("0", b.add(new Op.Reduce(kind, x, List.of(0), 1)));
            } catch (IngotException e) {
                continue; // not defined for this dtype
            }
            List<Layout> writes = KernelCheck.outputs(b.build()).stream()
                    .map(Layout::rowMajor)
                    .toList();
            CHECK.same(new Kernel.Column(b.build(), space, List.of(Layout.rowMajor(type)), writes), random);
        }
    }

    @Test
    void indicesOnBothSides() {
        Shape space = Shape.of(21, 4, 30);
        GraphBuilder b = new GraphBuilder("column");
        Type type = new Type(F32, space);
        Value x = b.input("0", type);
        Value weighted = b.multiply(x, b.add(b.iota(type, 0), b.iota(type, 2)));
        Value sum = b.add(new Op.Reduce(ReduceKind.SUM, weighted, List.of(0), 3));
        b.output("0", b.add(sum, b.iota(sum.type(), 1)));
        CHECK.same(
                new Kernel.Column(
                        b.build(), space, List.of(Layout.rowMajor(type)), List.of(Layout.rowMajor(sum.type()))),
                random);
    }
}
