package ingot.cpu;

import static ingot.ir.DType.BOOL;
import static ingot.ir.DType.F32;
import static ingot.ir.DType.I32;

import ingot.compiler.Kernel;
import ingot.compiler.Layout;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class RowKernelTest {
    private static final KernelCheck CHECK = KernelCheck.all();

    private final Random random = new Random(11);

    @AfterAll
    static void close() {
        CHECK.close();
    }

    /// A row body under construction.
    private static final class Row {
        final GraphBuilder b = new GraphBuilder("row");
        final Shape space;
        final Shape outer;
        final List<Type> reads = new ArrayList<>();
        private int outputs;

        Row(int... space) {
            this.space = Shape.of(space);
            outer = this.space.without(List.of(space.length - 1));
        }

        Value element(ingot.ir.DType dtype) {
            return read(new Type(dtype, space));
        }

        Value number(ingot.ir.DType dtype) {
            return read(new Type(dtype, outer));
        }

        private Value read(Type type) {
            reads.add(type);
            return b.input(Integer.toString(reads.size() - 1), type);
        }

        Value reduce(ReduceKind kind, Value x) {
            return b.add(new Op.Reduce(kind, x, List.of(space.rank() - 1), 1));
        }

        Value spread(Value x) {
            return b.broadcast(
                    x, space, IntStream.range(0, space.rank() - 1).boxed().toList());
        }

        void output(Value value) {
            b.output(Integer.toString(outputs++), value);
        }

        Kernel.Row dense() {
            return new Kernel.Row(
                    b.build(),
                    space,
                    reads.stream().map(Layout::rowMajor).toList(),
                    KernelCheck.outputs(b.build()).stream()
                            .map(Layout::rowMajor)
                            .toList());
        }

        Kernel.Row strided(Random random) {
            return new Kernel.Row(
                    b.build(),
                    space,
                    KernelCheck.layouts(reads, true, random),
                    KernelCheck.layouts(KernelCheck.outputs(b.build()), false, random));
        }
    }

    private static Row softmax(int... space) {
        Row row = new Row(space);
        Value x = row.element(F32);
        Value e = row.b.exp(row.b.subtract(x, row.spread(row.reduce(ReduceKind.MAX, x))));
        row.output(row.b.divide(e, row.spread(row.reduce(ReduceKind.SUM, e))));
        return row;
    }

    private static Row layerNorm(int... space) {
        Row row = new Row(space);
        GraphBuilder b = row.b;
        Value x = row.element(F32);
        Value gain = row.element(F32);
        Value shift = row.number(F32);
        float scale = 1f / Math.max(1, space[space.length - 1]);
        Value mean = b.multiply(row.reduce(ReduceKind.SUM, x), scale);
        Value centred = b.subtract(x, row.spread(mean));
        Value variance = b.multiply(row.reduce(ReduceKind.SUM, b.multiply(centred, centred)), scale);
        Value inverse = b.divide(b.fullLike(variance, 1), b.sqrt(b.add(variance, 1e-5)));
        row.output(b.fma(b.multiply(centred, row.spread(inverse)), gain, row.spread(shift)));
        row.output(mean);
        row.output(inverse);
        return row;
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 3, 7, 8, 15, 16, 17, 24, 31, 33, 47, 48, 63, 64, 65, 67, 256, 1000, 1063, 5003})
    void rowLengths(int length) {
        CHECK.same(softmax(5, length).dense(), random);
        CHECK.same(layerNorm(3, length).dense(), random);
    }

    @Test
    void rowCounts() {
        for (int rows : new int[] {0, 1, 2, 15, 16, 17, 33, 300, 1025}) {
            CHECK.same(softmax(rows, 19).dense(), random);
            CHECK.same(layerNorm(rows, 16).dense(), random);
        }
    }

    @Test
    void longRow() {
        CHECK.same(softmax(2, 100_003).dense(), random);
    }

    @Test
    void stridedRows() {
        for (int round = 0; round < 25; round++) {
            CHECK.same(
                    softmax(1 + random.nextInt(4), 1 + random.nextInt(9), 1 + random.nextInt(70))
                            .strided(random),
                    random);
            CHECK.same(
                    layerNorm(1 + random.nextInt(9), 1 + random.nextInt(3), 1 + random.nextInt(70))
                            .strided(random),
                    random);
        }
    }

    @ParameterizedTest
    @EnumSource(ReduceKind.class)
    void everyReduction(ReduceKind kind) {
        for (ingot.ir.DType dtype : List.of(F32, I32, BOOL)) {
            for (int length : new int[] {0, 1, 13, 16, 45, 96}) {
                Row row = new Row(7, length);
                try {
                    row.output(row.reduce(kind, row.element(dtype)));
                } catch (ingot.ir.IngotException e) {
                    continue; // not defined for this dtype
                }
                CHECK.same(row.dense(), random);
            }
        }
    }

    @Test
    void severalReductionsInOnePass() {
        Row row = new Row(4, 6, 77);
        GraphBuilder b = row.b;
        Value x = row.element(F32);
        Value y = row.element(I32);
        Value sum = row.reduce(ReduceKind.SUM, x);
        Value least = row.reduce(ReduceKind.MIN, x);
        Value count = row.reduce(ReduceKind.SUM, y);
        Value any = row.reduce(ReduceKind.OR, b.compare(CompareKind.GREATER, x, b.fullLike(x, 2)));
        Value scaled = b.multiply(b.subtract(x, row.spread(least)), row.spread(sum));
        row.output(b.select(row.spread(any), scaled, b.convert(y, F32)));
        row.output(count);
        row.output(any);
        row.output(row.reduce(ReduceKind.PRODUCT, b.add(scaled, b.convert(row.spread(count), F32))));
        CHECK.same(row.dense(), random);
        for (int round = 0; round < 5; round++) {
            CHECK.same(row.strided(random), random);
        }
    }

    /// Loss of one row: log Σ eˣ − x[label], with the label picked by comparing it with the index.
    @Test
    void crossEntropy() {
        Row row = new Row(21, 133);
        GraphBuilder b = row.b;
        Value x = row.element(F32);
        Value label = row.number(I32);
        Value greatest = row.reduce(ReduceKind.MAX, x);
        Value shifted = b.subtract(x, row.spread(greatest));
        Value e = b.exp(shifted);
        Value sum = row.reduce(ReduceKind.SUM, e);
        Value index = b.iota(new Type(I32, row.space), 1);
        Value hit = b.compare(CompareKind.EQUAL, index, row.spread(label));
        Value picked = row.reduce(ReduceKind.SUM, b.select(hit, shifted, b.fullLike(x, 0)));
        row.output(b.subtract(b.log(sum), picked));
        row.output(b.subtract(b.divide(e, row.spread(sum)), b.select(hit, b.fullLike(x, 1), b.fullLike(x, 0))));
        row.output(b.add(b.log(sum), b.convert(b.iota(new Type(I32, row.outer), 0), F32)));
        CHECK.same(row.dense(), random);
        CHECK.same(row.strided(random), random);
    }

    @Test
    void nothingButNumbers() {
        Row row = new Row(40, 9);
        Value x = row.number(F32);
        row.output(row.b.add(x, 1));
        row.output(row.b.add(row.element(F32), row.spread(row.b.exp(x))));
        CHECK.same(row.dense(), random);
    }
}
