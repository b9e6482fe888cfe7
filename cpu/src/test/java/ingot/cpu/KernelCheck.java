package ingot.cpu;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.compiler.Backend;
import ingot.compiler.Kernel;
import ingot.compiler.KernelInterpreter;
import ingot.compiler.Layout;
import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.function.BiFunction;

/// Runs kernels on backends of all kinds and compares every byte of the operands with what the interpreter leaves
/// there.
final class KernelCheck implements AutoCloseable {
    private static final float[] SPECIAL = {
        0f,
        -0f,
        1f,
        -1f,
        Float.NaN,
        Float.POSITIVE_INFINITY,
        Float.NEGATIVE_INFINITY,
        Float.MIN_VALUE,
        -Float.MIN_VALUE,
        1e-40f,
        -3e-39f,
        Float.MAX_VALUE,
        -Float.MAX_VALUE,
        0.5f,
        -0.5f,
        1.5f,
        2.5f,
        0x1p23f,
        -0x1p24f,
        3e9f,
        -3e9f,
        88f,
        -104f
    };
    private static final int[] INTS = {0, 1, -1, 2, 31, 32, -32, Integer.MIN_VALUE, Integer.MAX_VALUE, 0x3F800000};

    private static final List<DType> NARROW = List.of(DType.F32, DType.I32, DType.BOOL);

    private record Variant(String name, Backend backend) {}

    private final List<TilePool> pools = new ArrayList<>();
    private final List<Variant> variants = new ArrayList<>();

    /// Backends of these vector widths, each with another number of threads.
    KernelCheck(int... lanes) {
        for (int i = 0; i < lanes.length; i++) {
            TilePool pool = new TilePool(1 + i % 3);
            pools.add(pool);
            variants.add(new Variant(
                    lanes[i] + " lanes, " + pool.threads() + " threads", new CpuBackend(pool, lanes[i], true)));
        }
    }

    static KernelCheck all() {
        return new KernelCheck(1, 8, 4, 16, 1);
    }

    @Override
    public void close() {
        pools.forEach(TilePool::close);
    }

    void same(Kernel kernel, Random random) {
        sameInPlace(kernel, 0, random);
    }

    /// Write w lies on read w for w < `inPlace`.
    void sameInPlace(Kernel kernel, int inPlace, Random random) {
        int reads = kernel.reads().size();
        List<Layout> layouts = new ArrayList<>(kernel.reads());
        layouts.addAll(kernel.writes());
        try (Arena arena = Arena.ofShared()) {
            List<MemorySegment> given = new ArrayList<>();
            List<Long> origins = new ArrayList<>();
            for (int k = 0; k < layouts.size(); k++) {
                Layout layout = layouts.get(k);
                long[] range = range(layout);
                int bytes = layout.dtype().bytes();
                MemorySegment memory = arena.allocate((range[1] - range[0] + 1) * bytes + 64, 64);
                fill(memory, layout.dtype(), random);
                given.add(memory);
                origins.add(-range[0] * bytes + (k % 3) * bytes);
            }
            List<MemorySegment> expected = copy(arena, given);
            KernelInterpreter.run(kernel, addresses(expected, origins, reads, inPlace));
            for (Variant variant : variants) {
                List<MemorySegment> actual = copy(arena, given);
                Backend.Executable executable = variant.backend.prepare(kernel);
                boolean narrow = layouts.stream().allMatch(layout -> NARROW.contains(layout.dtype()));
                assertThat(executable.getClass().getSimpleName().equals("Interpreted"))
                        .as("runs by the interpreter: " + kernel)
                        .isEqualTo(!narrow);
                MemorySegment scratch = arena.allocate(executable.scratchBytes() + 64, 64);
                scratch.fill((byte) 0xA5);
                executable.run(addresses(actual, origins, reads, inPlace), scratch.address());
                for (int k = 0; k < given.size(); k++) {
                    compare(
                            variant.name + ", operand " + k + " of\n" + kernel,
                            layouts.get(k).dtype(),
                            expected.get(k),
                            actual.get(k));
                }
            }
        }
    }

    private static void compare(String what, DType dtype, MemorySegment expected, MemorySegment actual) {
        if (expected.mismatch(actual) < 0) {
            return;
        }
        if (dtype != DType.F32) {
            long at = expected.mismatch(actual) / dtype.bytes() * dtype.bytes();
            if (dtype == DType.I32) {
                assertThat(actual.get(ValueLayout.JAVA_INT, at))
                        .as(what)
                        .isEqualTo(expected.get(ValueLayout.JAVA_INT, at));
            }
            assertThat(actual.get(ValueLayout.JAVA_BYTE, at))
                    .as(what)
                    .isEqualTo(expected.get(ValueLayout.JAVA_BYTE, at));
        }
        for (long at = 0; at < expected.byteSize(); at += 4) {
            float e = expected.get(ValueLayout.JAVA_FLOAT, at);
            float a = actual.get(ValueLayout.JAVA_FLOAT, at);
            if (Float.floatToIntBits(e) != Float.floatToIntBits(a)) {
                assertThat(Float.toHexString(a)).as(what + " at " + at / 4).isEqualTo(Float.toHexString(e));
            }
        }
    }

    private static List<MemorySegment> copy(Arena arena, List<MemorySegment> segments) {
        List<MemorySegment> copies = new ArrayList<>();
        for (MemorySegment segment : segments) {
            copies.add(arena.allocate(segment.byteSize(), 64).copyFrom(segment));
        }
        return copies;
    }

    private static long[] addresses(List<MemorySegment> memory, List<Long> origins, int reads, int inPlace) {
        long[] addresses = new long[memory.size()];
        for (int k = 0; k < addresses.length; k++) {
            boolean onRead = k >= reads && k < reads + inPlace;
            addresses[k] = onRead ? addresses[k - reads] : memory.get(k).address() + origins.get(k);
        }
        return addresses;
    }

    /// Least and greatest element that a layout touches.
    private static long[] range(Layout layout) {
        long[] range = {0, 0};
        for (int axis = 0; axis < layout.shape().rank(); axis++) {
            long reach = layout.strides().get(axis) * Math.max(0, layout.shape().dim(axis) - 1);
            range[reach < 0 ? 0 : 1] += reach;
        }
        return range;
    }

    static void fill(MemorySegment memory, DType dtype, Random random) {
        for (long i = 0; i < memory.byteSize() / dtype.bytes(); i++) {
            switch (dtype) {
                case F32 -> memory.setAtIndex(ValueLayout.JAVA_FLOAT, i, number(random));
                case I32 ->
                    memory.setAtIndex(
                            ValueLayout.JAVA_INT,
                            i,
                            random.nextInt(4) == 0 ? INTS[random.nextInt(INTS.length)] : random.nextInt(64) - 16);
                default -> memory.set(ValueLayout.JAVA_BYTE, i, (byte) random.nextInt(2));
            }
        }
    }

    private static float number(Random random) {
        return switch (random.nextInt(8)) {
            case 0 -> SPECIAL[random.nextInt(SPECIAL.length)];
            case 1 -> Float.intBitsToFloat(random.nextInt());
            case 2 -> (float) random.nextGaussian() * 100;
            default -> (float) random.nextGaussian();
        };
    }

    /// A map kernel over row-major operands.
    static Kernel.Map map(Shape shape, List<DType> operands, BiFunction<GraphBuilder, List<Value>, Value> body) {
        GraphBuilder b = new GraphBuilder("map");
        List<Value> inputs = new ArrayList<>();
        List<Layout> reads = new ArrayList<>();
        for (DType dtype : operands) {
            Type type = new Type(dtype, shape);
            inputs.add(b.input(Integer.toString(inputs.size()), type));
            reads.add(Layout.rowMajor(type));
        }
        Value result = body.apply(b, inputs);
        b.output("0", result);
        return new Kernel.Map(b.build(), reads, List.of(Layout.rowMajor(result.type())));
    }

    /// A layout with axes in any order, gaps, and for reads also repeated and reversed axes.
    static Layout layout(Type type, boolean read, Random random) {
        int rank = type.shape().rank();
        List<Integer> order = new ArrayList<>();
        for (int axis = 0; axis < rank; axis++) {
            order.add(axis);
        }
        if (random.nextInt(3) == 0) {
            Collections.shuffle(order, random);
        }
        Long[] strides = new Long[rank];
        long step = random.nextInt(4) == 0 ? 2 : 1;
        for (int i = rank - 1; i >= 0; i--) {
            int axis = order.get(i);
            if (read && random.nextInt(5) == 0) {
                strides[axis] = 0L;
                continue;
            }
            strides[axis] = read && random.nextInt(10) == 0 ? -step : step;
            step *= type.shape().dim(axis);
            if (random.nextInt(6) == 0) {
                step += 3;
            }
        }
        return new Layout(type.dtype(), type.shape(), 0, List.of(strides));
    }

    /// The same kernel with random layouts.
    static List<Layout> layouts(List<Type> types, boolean reads, Random random) {
        return types.stream().map(type -> layout(type, reads, random)).toList();
    }

    static List<Type> outputs(Graph body) {
        return body.outputs().values().stream().map(Value::type).toList();
    }
}
