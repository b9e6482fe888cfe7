package ingot.cpu;

import static ingot.ir.DType.BOOL;
import static ingot.ir.DType.F32;
import static ingot.ir.DType.I32;

import ingot.compiler.Kernel;
import ingot.compiler.Layout;
import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.BiFunction;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class MapKernelTest {
    private static final KernelCheck CHECK = KernelCheck.all();
    private static final DType[] DTYPES = {F32, I32, BOOL};

    private final Random random = new Random(7);

    @AfterAll
    static void close() {
        CHECK.close();
    }

    private void check(List<DType> operands, BiFunction<GraphBuilder, List<Value>, Value> body) {
        for (int length : new int[] {1, 37, 1061}) {
            Kernel.Map kernel;
            try {
                kernel = KernelCheck.map(Shape.of(length), operands, body);
            } catch (IngotException e) {
                return; // not defined for this dtype
            }
            CHECK.same(kernel, random);
        }
    }

    @ParameterizedTest
    @EnumSource(UnaryKind.class)
    void unary(UnaryKind kind) {
        for (DType dtype : DTYPES) {
            check(List.of(dtype), (b, x) -> b.unary(kind, x.get(0)));
        }
    }

    @ParameterizedTest
    @EnumSource(BinaryKind.class)
    void binary(BinaryKind kind) {
        for (DType dtype : DTYPES) {
            check(List.of(dtype, dtype), (b, x) -> b.binary(kind, x.get(0), x.get(1)));
        }
    }

    @ParameterizedTest
    @EnumSource(BinaryKind.class)
    void binaryWithConstant(BinaryKind kind) {
        check(List.of(I32), (b, x) -> b.binary(kind, x.get(0), b.fullLike(x.get(0), 37)));
        check(List.of(F32), (b, x) -> b.binary(kind, x.get(0), b.fullLike(x.get(0), -0.0)));
    }

    @ParameterizedTest
    @EnumSource(CompareKind.class)
    void compare(CompareKind kind) {
        for (DType dtype : DTYPES) {
            check(List.of(dtype, dtype), (b, x) -> b.compare(kind, x.get(0), x.get(1)));
        }
    }

    @Test
    void selectByEveryKindOfMask() {
        for (DType dtype : DTYPES) {
            check(List.of(BOOL, dtype, dtype), (b, x) -> b.select(x.get(0), x.get(1), x.get(2)));
            for (DType by : DTYPES) {
                check(
                        List.of(by, by, dtype, dtype),
                        (b, x) -> b.select(b.compare(CompareKind.LESS, x.get(0), x.get(1)), x.get(2), x.get(3)));
            }
        }
    }

    @Test
    void masksOfDifferentOrigin() {
        check(List.of(F32, I32, BOOL), (b, x) -> {
            Value f = b.compare(CompareKind.GREATER, x.get(0), b.fullLike(x.get(0), 0.25));
            Value i = b.compare(CompareKind.LESS, x.get(1), b.fullLike(x.get(1), 5));
            Value both = b.binary(BinaryKind.AND, f, i);
            Value any = b.binary(BinaryKind.OR, x.get(2), both);
            Value one = b.binary(BinaryKind.XOR, i, b.unary(UnaryKind.NOT, any));
            return b.select(one, b.select(f, any, i), b.compare(CompareKind.LESS_EQUAL, any, f));
        });
    }

    @Test
    void fmaConvertBitcast() {
        check(List.of(F32, F32, F32), (b, x) -> b.fma(x.get(0), x.get(1), x.get(2)));
        for (DType from : DTYPES) {
            for (DType to : DTYPES) {
                check(List.of(from), (b, x) -> b.convert(x.get(0), to));
            }
        }
        check(List.of(I32), (b, x) -> b.bitcast(x.get(0), F32));
        check(List.of(F32), (b, x) -> {
            Value isNumber = b.compare(CompareKind.EQUAL, x.get(0), x.get(0)); // the bits of a NaN are unspecified
            return b.bitcast(b.select(isNumber, x.get(0), b.fullLike(x.get(0), 2)), I32);
        });
    }

    @Test
    void copyAndConstantOutput() {
        for (DType dtype : DTYPES) {
            check(List.of(dtype), (_, x) -> x.get(0));
            check(List.of(dtype), (b, x) -> b.fullLike(x.get(0), 1));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 67, 511, 513, 5000, 70001})
    void lengths(int length) {
        CHECK.same(
                KernelCheck.map(Shape.of(length), List.of(F32, F32), (b, x) -> b.multiply(b.exp(x.get(0)), x.get(1))),
                random);
    }

    @Test
    void severalOutputsAndIota() {
        GraphBuilder b = new GraphBuilder("map");
        Type type = new Type(F32, Shape.of(5, 3, 40));
        Value x = b.input("0", type);
        Value count = b.iota(type.with(I32), 2);
        Value row = b.iota(type, 1);
        b.output("0", b.add(x, row));
        b.output("1", b.select(b.compare(CompareKind.LESS, count, b.fullLike(count, 9)), x, row));
        b.output("2", b.binary(BinaryKind.ADD, count, b.iota(type.with(I32), 0)));
        for (int round = 0; round < 8; round++) {
            CHECK.same(
                    new Kernel.Map(
                            b.build(),
                            List.of(KernelCheck.layout(type, true, random)),
                            KernelCheck.layouts(KernelCheck.outputs(b.build()), false, random)),
                    random);
        }
    }

    @Test
    void randomLayouts() {
        for (int round = 0; round < 80; round++) {
            int rank = 1 + random.nextInt(4);
            int[] dims = new int[rank];
            for (int axis = 0; axis < rank; axis++) {
                dims[axis] = random.nextInt(5) == 0 ? 1 : 1 + random.nextInt(rank == 1 ? 3000 : rank == 2 ? 67 : 19);
            }
            Shape shape = Shape.of(dims);
            GraphBuilder b = new GraphBuilder("map");
            Type type = new Type(F32, shape);
            Value x = b.input("0", type);
            Value y = b.input("1", type);
            Value i = b.input("2", type.with(I32));
            Value m = b.input("3", type.with(BOOL));
            Value sum = b.add(x, b.select(m, y, b.convert(i, F32)));
            b.output("0", sum);
            b.output("1", b.compare(CompareKind.LESS, sum, y));
            b.output("2", b.binary(BinaryKind.XOR, i, b.bitcast(x, I32))); // raw bits of an operand, NaN included
            List<Layout> reads = new ArrayList<>();
            for (Value input : b.build().inputs()) {
                reads.add(KernelCheck.layout(input.type(), true, random));
            }
            CHECK.same(
                    new Kernel.Map(
                            b.build(), reads, KernelCheck.layouts(KernelCheck.outputs(b.build()), false, random)),
                    random);
        }
    }

    @Test
    void longChainsOfOps() {
        check(List.of(F32, F32), (b, x) -> {
            Value v = x.get(0);
            for (int n = 0; n < 60; n++) {
                v = b.fma(v, b.fullLike(v, 0.5), b.max(x.get(1), b.fullLike(v, n * 0.01)));
            }
            return b.add(v, b.tanh(b.erf(v)));
        });
    }

    /// w, m and v of an optimizer's step are written over themselves.
    @Test
    void inPlace() {
        Shape shape = Shape.of(7, 301);
        GraphBuilder b = new GraphBuilder("map");
        Type type = new Type(F32, shape);
        Value w = b.input("0", type);
        Value m = b.input("1", type);
        Value g = b.input("2", type);
        Value next = b.fma(b.subtract(g, m), b.fullLike(g, 0.1), m);
        b.output("0", b.subtract(w, b.multiply(next, m)));
        b.output("1", next);
        for (long stride : new long[] {1, 2}) {
            Layout layout = new Layout(F32, shape, 0, List.of(301 * stride, stride));
            CHECK.sameInPlace(
                    new Kernel.Map(b.build(), List.of(layout, layout, layout), List.of(layout, layout)), 2, random);
        }
    }
}
