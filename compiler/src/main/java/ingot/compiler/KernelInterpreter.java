package ingot.compiler;

import ingot.compiler.Kernel.Matmul.Old;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Interpreter;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/// What a kernel does, by the reference interpreter: reads are gathered through their layouts, the body is evaluated,
/// writes are scattered.
///
/// The oracle for every backend. Slow: for tests and small graphs.
public final class KernelInterpreter {
    /// All of memory, as raw addresses.
    private static final MemorySegment MEMORY = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    private KernelInterpreter() {}

    /// The kernel as a graph: inputs and outputs are named by the position among reads and writes. A matmul that
    /// keeps the old result in some way has it as its last input.
    public static Graph meaning(Kernel kernel) {
        return switch (kernel) {
            case Kernel.Map map -> map.body();
            case Kernel.Row row -> row.body();
            case Kernel.Column column -> column.body();
            case Kernel.Loop loop -> loop.body();
            case Kernel.Matmul matmul -> matmul(matmul);
            case Kernel.Convolution convolution -> {
                GraphBuilder b = new GraphBuilder("convolution");
                int k = convolution.contracted();
                Value weights = b.input("0", convolution.kernel().type());
                Value windows = b.input("1", convolution.windows().type());
                List<Integer> contractA = IntStream.range(2, 2 + k).boxed().toList();
                List<Integer> contractB = IntStream.range(1, 1 + k).boxed().toList();
                List<Integer> groups = List.of(0);
                b.output(
                        "0",
                        b.add(new Op.Dot(
                                weights, windows, groups, groups, contractA, contractB, convolution.segments(), null)));
                yield b.build();
            }
            case Kernel.Gather gather -> {
                GraphBuilder b = new GraphBuilder("gather");
                Value table = b.input("0", gather.table().type());
                b.output(
                        "0",
                        b.add(new Op.Gather(table, b.input("1", gather.indices().type()), 0)));
                yield b.build();
            }
            case Kernel.ScatterAdd scatter -> {
                GraphBuilder b = new GraphBuilder("scatter");
                Value indices = b.input("0", scatter.indices().type());
                Value updates = b.input("1", scatter.updates().type());
                int size = scatter.out().shape().dim(0);
                b.output("0", b.add(new Op.ScatterAdd(indices, updates, 0, size, scatter.segments())));
                yield b.build();
            }
        };
    }

    private static Graph matmul(Kernel.Matmul matmul) {
        GraphBuilder b = new GraphBuilder("matmul");
        Value left = b.input("0", matmul.a().type());
        Value right = b.input("1", matmul.b().type());
        int rank = matmul.c().shape().rank();
        List<Integer> batch = IntStream.range(0, rank - 2).boxed().toList();
        Value bias = matmul.bias() == null ? null : b.input("2", matmul.bias().type());
        Value old = matmul.old() == Old.REPLACED
                ? null
                : b.input(bias == null ? "2" : "3", matmul.c().type());
        Value sum = b.add(new Op.Dot(
                left,
                right,
                batch,
                batch,
                List.of(rank - 1),
                List.of(rank - 2),
                matmul.segments(),
                matmul.old() == Old.CONTINUED ? old : null));
        if (bias != null) {
            sum = b.add(sum, bias);
        }
        if (matmul.old() == Old.ADDED && old != null) {
            sum = b.add(old, sum);
        }
        b.output("0", sum);
        return b.build();
    }

    /// Runs a kernel over operands at absolute addresses: its reads, then its writes.
    public static void run(Kernel kernel, long[] addresses) {
        List<Layout> reads = kernel.reads();
        List<Layout> writes = kernel.writes();
        if (addresses.length != reads.size() + writes.size()) {
            throw new IllegalArgumentException("kernel " + kernel.kind() + ": expected "
                    + (reads.size() + writes.size()) + " operands, got " + addresses.length);
        }
        Map<String, Tensor> inputs = new HashMap<>();
        for (int i = 0; i < reads.size(); i++) {
            inputs.put(Integer.toString(i), read(reads.get(i), addresses[i]));
        }
        if (kernel instanceof Kernel.Matmul matmul && matmul.old() != Old.REPLACED) {
            inputs.put(Integer.toString(reads.size()), read(matmul.c(), addresses[reads.size()]));
        }
        List<Tensor> results =
                List.copyOf(Interpreter.run(meaning(kernel), inputs, Map.of()).values());
        for (int i = 0; i < writes.size(); i++) {
            write(writes.get(i), addresses[reads.size() + i], results.get(i));
        }
    }

    /// The elements of a layout at an address, row-major over its shape.
    static Tensor read(Layout layout, long address) {
        Tensor tensor = Tensor.zeros(layout.type());
        int bytes = layout.dtype().bytes();
        long[] offsets = offsets(layout);
        for (int i = 0; i < offsets.length; i++) {
            MemorySegment.copy(MEMORY, address + offsets[i] * bytes, tensor.data(), (long) i * bytes, bytes);
        }
        return tensor;
    }

    static void write(Layout layout, long address, Tensor tensor) {
        if (!tensor.type().equals(layout.type())) {
            throw new IllegalStateException("kernel result " + tensor.type() + " for a write of " + layout.type());
        }
        int bytes = layout.dtype().bytes();
        long[] offsets = offsets(layout);
        for (int i = 0; i < offsets.length; i++) {
            MemorySegment.copy(tensor.data(), (long) i * bytes, MEMORY, address + offsets[i] * bytes, bytes);
        }
    }

    private static long[] offsets(Layout layout) {
        Shape shape = layout.shape();
        long[] offsets = new long[Math.toIntExact(shape.elements())];
        int[] index = new int[shape.rank()];
        long at = layout.offset();
        for (int i = 0; i < offsets.length; i++) {
            offsets[i] = at;
            for (int axis = shape.rank() - 1; axis >= 0; axis--) {
                at += layout.stride(axis);
                if (++index[axis] < shape.dim(axis)) {
                    break;
                }
                at -= layout.stride(axis) * shape.dim(axis);
                index[axis] = 0;
            }
        }
        return offsets;
    }

    /// Runs all calls of a lowered graph over tensors: inputs and weights in graph order → results in order.
    public static List<Tensor> run(Lowered lowered, List<Tensor> inputs, Backend backend) {
        try (var arena = java.lang.foreign.Arena.ofConfined()) {
            Map<Lowered.Slot, List<MemorySegment>> slots = new HashMap<>();
            slots.put(Lowered.Slot.INPUT, copies(arena, inputs));
            slots.put(Lowered.Slot.CONSTANT, copies(arena, lowered.constants()));
            slots.put(
                    Lowered.Slot.OUTPUT,
                    lowered.outputs().stream()
                            .map(type -> allocate(arena, type.bytes()))
                            .toList());
            slots.put(
                    Lowered.Slot.TEMPORARY,
                    lowered.temporaryBytes().stream()
                            .map(bytes -> allocate(arena, bytes))
                            .toList());
            for (Lowered.Call call : lowered.calls()) {
                long[] addresses = call.operands().stream()
                        .mapToLong(operand -> address(slots, operand))
                        .toArray();
                Backend.Executable executable = backend.prepare(call.kernel());
                executable.run(
                        addresses, allocate(arena, executable.scratchBytes()).address());
            }
            List<Tensor> results = new ArrayList<>();
            for (int i = 0; i < lowered.outputs().size(); i++) {
                Type type = lowered.outputs().get(i);
                Lowered.Operand operand = lowered.results().get(i);
                results.add(read(Layout.rowMajor(type), address(slots, operand)));
            }
            return results;
        }
    }

    private static long address(Map<Lowered.Slot, List<MemorySegment>> slots, Lowered.Operand operand) {
        List<MemorySegment> segments = slots.getOrDefault(operand.slot(), List.of());
        return segments.get(operand.index()).address() + operand.byteOffset();
    }

    private static List<MemorySegment> copies(java.lang.foreign.Arena arena, List<Tensor> tensors) {
        return tensors.stream()
                .map(tensor -> allocate(arena, tensor.type().bytes()).copyFrom(tensor.data()))
                .toList();
    }

    /// Filled with a pattern that no result should show: memory that was never written is noticed.
    private static MemorySegment allocate(java.lang.foreign.Arena arena, long bytes) {
        MemorySegment segment = arena.allocate(Math.max(64, bytes), 64);
        segment.fill((byte) 0xA5);
        return segment.asSlice(0, bytes);
    }
}
